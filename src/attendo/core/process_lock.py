"""A lock between processes: the others wait for a result instead of computing it again."""

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
    """Hold a lock file; the lock is released when its process ends.

    Other processes wait, or get an error if `wait` is false. On systems without file locks this
    does nothing.
    """
    with path.open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            reason = message("another process is working in {folder}", folder=path.parent)
            raise AttendoError(reason, hint="wait until it ends, or stop it") from None
        except (ImportError, OSError):  # not on Windows, nor on every network disk
            pass
        yield
