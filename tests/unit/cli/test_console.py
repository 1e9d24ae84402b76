from __future__ import annotations

import io
import os
import sys

import pytest
from rich.table import Table

from attendo.cli.console import make_console, survive_closed_terminal

LONG = " ".join(["word"] * 60)


def print_long_lines(monkeypatch, columns: str | None) -> list[str]:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    console = make_console()
    console.print(LONG)
    table = Table(box=None)
    table.add_column("path")
    table.add_row("/a/" + "b" * 200)
    console.print(table)
    return stream.getvalue().splitlines()


def test_a_file_gets_whole_lines(monkeypatch):
    text, heading, row = print_long_lines(monkeypatch, None)
    assert text == LONG
    assert (heading.split(), row.split()) == (["path"], ["/a/" + "b" * 200])


def test_a_width_that_is_set_is_kept(monkeypatch):
    assert all(len(line) <= 50 for line in print_long_lines(monkeypatch, "50"))


@pytest.mark.parametrize("is_terminal", [True, False])
def test_output_that_nobody_reads_is_discarded(monkeypatch, is_terminal):
    """A write to a closed terminal raises EIO, to a closed pipe EPIPE."""
    reader, writer = os.openpty() if is_terminal else os.pipe()
    stream = os.fdopen(writer, "w", encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    os.close(reader)
    with survive_closed_terminal():
        assert sys.stdout.encoding == "utf-8"
        for _ in range(2):
            print("hello", flush=True)
    assert sys.stdout is stream
    stream.write("and at the end")
    stream.close()  # as the interpreter does, without an error
