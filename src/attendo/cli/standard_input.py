"""Texts of a command: its arguments, or else the lines of a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def read_texts(arguments: Sequence[str] | None, *, default: str | None = None) -> Iterator[str]:
    """Yield the arguments as valid text, or else the lines of a pipe or a file, as they come.

    `default` stands for no text at all. A terminal is not read: nobody expects it to be.
    """
    is_empty = True
    for text in arguments or _read_pipe():
        is_empty = False
        yield text.encode(errors="surrogateescape").decode(errors="replace")
    if is_empty and default is not None:
        yield default


def _read_pipe() -> Iterable[str]:
    if sys.stdin is None or sys.stdin.isatty():
        return ()
    from attendo.cli.translate import read_standard_input

    return read_standard_input()
