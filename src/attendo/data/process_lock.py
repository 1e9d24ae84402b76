"""One process at a time: the others wait for its work instead of doing it again."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Let one process at a time in; the lock of a process that dies is free at once.

    Where the system has no such locks, nobody waits.
    """
    with path.open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # not on Windows, nor on every network disk
            pass
        yield
