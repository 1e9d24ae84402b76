"""One process at a time: the others wait for its work instead of doing it again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def process_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Let one process at a time in; the lock of a process that dies is free at once.

    Another one waits, or is refused without `wait`. Where the system has no such locks, nobody is.
    """
    with path.open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = message("another process works in {folder}", folder=path.parent)
            raise AttendoError(reason, hint="wait until it is done, or end it") from None
        except (ImportError, OSError):  # not on Windows, nor on every network disk
            pass
        yield
