"""The cache key of a prepared corpus: a hash of the content of its files and of its settings.

Names, paths and times of files do not matter: the same texts are prepared once, wherever they are.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.text.lines import GZIP_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

READ_BLOCK_BYTES = 2**20
PLAIN_SIZE_FACTOR, GZIP_SIZE_FACTOR = 4, 12
"""Disk space that preparation needs, relative to the input: cleaned text twice, then ids."""
RESERVED_BYTES = 100 * 10**6


def content_fingerprint(
    paths: Sequence[Path], settings: Any, progress: Callable[[int, int], None] | None = None
) -> str:
    """Return the SHA-256 of the files, in order, and of the settings (any JSON value).

    `progress` is called with the number of bytes read and their total.
    """
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    done, total = 0, sum(path.stat().st_size for path in paths)
    for path in paths:
        file_digest = hashlib.sha256()
        try:
            with path.open("rb", buffering=0) as file:
                while block := file.read(READ_BLOCK_BYTES):
                    file_digest.update(block)
                    done += len(block)
                    if progress is not None:
                        progress(done, total)
        except OSError as error:
            reason = f"cannot read {path}: {error.strerror}"
            raise InputError(reason, hint="check the path and its permissions") from None
        digest.update(file_digest.digest())
    return digest.hexdigest()


def check_disk_space(paths: Iterable[Path], directory: Path) -> None:
    """Raise an error if the disk of `directory` has too little free space for the preparation."""
    needed = RESERVED_BYTES + sum(_estimated_bytes(path) for path in paths)
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise InputError(
            f"preparing the data needs about {needed / 1e9:.1f} GB on the disk of {directory}, "
            f"{free / 1e9:.1f} GB are free",
            hint="free some space, or choose a cache folder on another disk",
        )


def _estimated_bytes(path: Path) -> int:
    with path.open("rb") as file:
        factor = GZIP_SIZE_FACTOR if file.read(2) == GZIP_MAGIC else PLAIN_SIZE_FACTOR
    return factor * path.stat().st_size
