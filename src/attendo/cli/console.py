"""The console of the commands: whole lines in files and pipes; a closed terminal does no harm."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

UNWRAPPED_WIDTH = 100_000
"""A width that no line reaches."""
CLOSED = frozenset({errno.EIO, errno.EPIPE})
"""What a write returns after the terminal or the reader of a pipe is gone."""


def make_console(*, stderr: bool = False, quiet: bool = False) -> Console:
    """Return a console without highlighting; only on a terminal are lines wrapped to its width.

    In a file or a pipe, a line that is broken cannot be searched or copied. COLUMNS sets a width.
    """
    from rich.console import Console

    console = Console(stderr=stderr, quiet=quiet, highlight=False)
    if not console.is_terminal and not os.environ.get("COLUMNS"):
        console.width = UNWRAPPED_WIDTH
    return console


@contextmanager
def survive_closed_terminal() -> Iterator[None]:
    """Discard the output, instead of failing, once the terminal or the pipe is closed.

    A training must not end because nobody reads its progress: its log has everything.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", _SurvivingStream(stream)) for stream in streams)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


class _SurvivingStream:
    """A text stream that continues into nothing when it is closed at the other end."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._discard(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._discard(error)

    def _discard(self, error: OSError) -> None:
        """Connect the stream to nothing if nobody will read it again."""
        if error.errno in CLOSED:
            with suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, self._stream.fileno())
                os.close(null)
