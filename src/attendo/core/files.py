"""Atomic writes: files and folders appear complete or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

NO_HOME = Path("/nonexistent")
"""The home of a user without one."""


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file such that a crash at any moment leaves the old content or the new."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    data = content.encode() if isinstance(content, str) else content
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_directory(path.parent)


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yield a temporary folder next to `path` and rename it when it is complete."""
    partial = path.with_name(f".{path.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        for entry in partial.rglob("*"):
            sync_directory(entry) if entry.is_dir() else sync(entry)
        sync_directory(partial)
        partial.rename(path)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    sync_directory(path.parent)


def write_tensors(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write a safetensors file; its errors, such as a full disk, are raised as OSError."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    try:
        save_file(tensors, path)
        path.chmod(0o666 & ~_umask())  # safetensors makes them readable by their owner only
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise OSError(str(error)) from error
        raise OSError(int(number[1]), os.strerror(int(number[1])), str(path)) from error


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def sync(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: Path) -> None:
    """Wait until a folder's entries are on the disk, if the system supports it."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        return
    finally:
        os.close(descriptor)


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cache_dir() -> Path:
    """Return the cache folder: ATTENDO_CACHE, or ~/.cache/attendo.

    It cannot be written if the user has no home, as in containers that run as any user.
    """
    if override := os.environ.get("ATTENDO_CACHE"):
        return Path(override)
    if cache_home := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache_home) / "attendo"
    try:
        home = Path.home()
    except RuntimeError:
        home = NO_HOME
    return home / ".cache/attendo"
