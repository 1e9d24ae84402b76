"""A lock file that lets one process at a time do some work while the others wait for its result."""

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
