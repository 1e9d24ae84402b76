from __future__ import annotations

import queue
import threading

import pytest

from attendo.core.errors import InputError
from attendo.translator.line_stream import batch_arrivals


def test_what_waits_comes_together_and_in_order():
    lines = [str(number) for number in range(2500)]
    parts = list(batch_arrivals(lines, max_lines=1000))
    assert [line for part in parts for line in part] == lines
    assert max(map(len, parts)) <= 1000
    assert list(batch_arrivals([])) == []


def test_a_line_that_comes_alone_is_given_at_once():
    channel: queue.Queue[str | None] = queue.Queue()
    parts = batch_arrivals(iter(channel.get, None))
    for line in ("first", "second"):
        channel.put(line)
        assert next(parts) == [line]  # while the channel is still open
    channel.put(None)
    assert list(parts) == []


def test_what_goes_wrong_while_reading_comes_after_what_was_read():
    def broken():
        yield "ka"
        raise InputError("line 2 is broken")

    parts = batch_arrivals(broken())
    assert next(parts) == ["ka"]
    with pytest.raises(InputError, match="line 2 is broken"):
        next(parts)


def test_no_thread_is_left():
    before = threading.active_count()
    list(batch_arrivals(["a", "b"]))
    assert threading.active_count() <= before + 1
