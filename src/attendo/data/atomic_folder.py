"""Folders and files that are there whole or not at all.

A folder is filled under the name `<name>.partial` and renamed when every byte is on the disk: a
process that is killed leaves a partial folder, which the next one replaces.
"""

from __future__ import annotations

import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def build_folder(directory: Path) -> Iterator[Path]:
    """Give an empty folder to fill; it becomes `directory` at the end, or vanishes on an error.

    Where another process has made `directory` in the meantime, its folder stays.
    """
    partial = directory.with_name(f"{directory.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for path in (*partial.rglob("*"), partial):
            _sync(path)
        try:
            partial.rename(directory)
        except OSError:
            if not directory.is_dir():
                raise
        _sync(directory.parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Let one process at a time in; the lock of a process that dies is free at once.

    Where the system has no such locks, nobody waits: work may be done twice, never wrongly.
    """
    with path.open("ab") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        except (ImportError, OSError):  # not on Windows, nor on every network disk
            pass
        yield


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
