"""A log that nobody reads does not stop the server."""

from __future__ import annotations

import contextlib
import logging
import os
import threading

import pytest

from attendo.serving.transport.log_writer import BackgroundHandler

PATIENCE = 120.0


class Stream:
    """A stream whose writes wait until they may go on."""

    def __init__(self) -> None:
        self.may_write, self.is_waiting = threading.Event(), threading.Event()
        self.text = ""

    def write(self, text: str) -> None:
        self.is_waiting.set()
        assert self.may_write.wait(PATIENCE)
        self.text += text

    def flush(self) -> None:
        pass


def make_record(text: str) -> logging.LogRecord:
    return logging.LogRecord("a", logging.INFO, "", 0, "%s", (text,), None)


def test_a_stalled_reader_loses_lines_that_are_counted():
    stream = Stream()
    handler = BackgroundHandler(stream, lambda count: make_record(f"dropped {count}"), max_lines=2)
    handler.handle(make_record("1"))
    assert stream.is_waiting.wait(PATIENCE)
    for text in "2345":  # the queue has room for two
        handler.handle(make_record(text))
    stream.may_write.set()
    while not handler._is_idle.is_set():
        handler.flush()
    handler.handle(make_record("6"))
    while not handler._is_idle.is_set():
        handler.flush()
    assert stream.text.split("\n") == ["1", "2", "3", "dropped 2", "6", ""]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")  # noqa: PTH110
def test_a_full_disk_and_a_closed_stream_are_survived(tmp_path):
    full = open("/dev/full", "w")  # noqa: SIM115, PTH123
    handler = BackgroundHandler(full, lambda _: make_record("dropped"))
    handler.handle(make_record("1"))
    while not handler._is_idle.is_set():
        handler.flush()
    closed = (tmp_path / "log").open("w")
    closed.close()
    handler = BackgroundHandler(closed, lambda _: make_record("dropped"))
    handler.handle(make_record("1"))
    while not handler._is_idle.is_set():
        handler.flush()
    assert handler._thread.is_alive()
    with contextlib.suppress(OSError):
        full.close()
