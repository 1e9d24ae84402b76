"""Texts of a command: its arguments, or else the lines of a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

from attendo.cli.inputs import decode_argument
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import BinaryIO

NON_UTF8_SIGNATURES = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")
"""First bytes of UTF-16 and gzip."""


def read_texts(arguments: Sequence[str] | None, *, default: str | None = None) -> Iterator[str]:
    """Yield the arguments as valid text, or else the lines of a pipe or a file, as they come.

    `default` stands for no text at all. A terminal is not read: nobody expects it to be.
    """
    is_empty = True
    for text in arguments or _read_pipe():
        is_empty = False
        yield decode_argument(text)
    if is_empty and default is not None:
        yield default


def _read_pipe() -> Iterable[str]:
    if sys.stdin is None or sys.stdin.isatty():
        return ()
    return read_standard_input()


def read_standard_input() -> Iterator[str]:
    """Yield the lines of standard input; invalid UTF-8 is replaced, with a warning."""
    for number, raw in enumerate(open_standard_input(), 1):
        if number == 1 and raw.startswith(NON_UTF8_SIGNATURES):
            reason = "standard input is UTF-16 or gzip, not UTF-8 text"
            raise InputError(
                reason, hint="decompress or convert it first, or pass the file with -i"
            )
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            detail = message("invalid UTF-8 was replaced by \ufffd")
            note = message("line {number}: {error}", number=number, error=detail)
            typer.echo(translate_message(note, choose_language()), err=True)
        yield text.removeprefix("\ufeff") if number == 1 else text


def open_standard_input() -> BinaryIO:
    """Open standard input with a separate reader.

    A thread blocks on it; with `sys.stdin.buffer`, that thread would hold its lock at exit and
    abort the process.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a real file, in tests
        return sys.stdin.buffer
