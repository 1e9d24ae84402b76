"""A lock file that lets one process at a time do some work while the others wait for its result."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterator

PROC_LOCKS = Path("/proc/locks")
"""Lists the held locks on Linux; trying to take a lock could disturb its owner."""


@contextmanager
def process_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock file `path`; the system releases the lock of a process that is killed.

    A file system without locks (some network disks) does not stop anyone.

    Args:
        path: The lock file; it is created if necessary.
        wait: Wait until another process releases the lock, instead of raising an error.

    Raises:
        AttendoError: If another process holds the lock and `wait` is False.

    """
    from filelock import FileLock, Timeout

    path.touch()  # raises if the folder cannot be written; later errors are about locking only
    lock = FileLock(path, timeout=-1 if wait else 0)
    try:
        lock.acquire()
    except Timeout:
        reason = message("another process is working in {folder}", folder=path.parent)
        raise AttendoError(reason, hint="wait until it ends, or stop it") from None
    except (NotImplementedError, OSError):
        pass
    try:
        yield
    finally:
        lock.release()


def is_locked(path: Path) -> bool:
    """Return whether a process holds a lock file, if the system reports it (Linux)."""
    try:
        inode = path.stat().st_ino
        locks = PROC_LOCKS.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    rows = (line.split() for line in locks.splitlines())  # ... FLOCK ... 08:01:INODE 0 EOF
    return any("FLOCK" in row and row[-3].endswith(f":{inode}") for row in rows)
