"""The cache key of a prepared corpus: a hash of the content of its files and of its settings.

Prepared data has checksums of its own, by which damage is found.

Names, paths and times of files do not matter: the same texts are prepared once, wherever they are.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.files import checksum
from attendo.core.message import message
from attendo.text.lines import GZIP_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

CHECKSUMS_FILE = "checksums.json"
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
    return combine_digests(hash_files(paths, progress), settings)


def combine_digests(file_digests: Sequence[str], settings: Any) -> str:
    """Return the fingerprint of files with these digests, as `content_fingerprint` does."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for file_digest in file_digests:
        digest.update(bytes.fromhex(file_digest))
    return digest.hexdigest()


def hash_files(
    paths: Sequence[Path], progress: Callable[[int, int], None] | None = None
) -> list[str]:
    """Return the SHA-256 of each file; `progress` as in `content_fingerprint`."""
    digests = []
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
            reason = message("cannot read {path}: {detail}", path=path, detail=error.strerror)
            raise InputError(reason, hint="check the path and its permissions") from None
        digests.append(file_digest.hexdigest())
    return digests


def write_checksums(directory: Path) -> None:
    """Write the SHA-256 of every file in a folder of prepared data."""
    sums = {
        path.relative_to(directory).as_posix(): checksum(path)
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    (directory / CHECKSUMS_FILE).write_text(json.dumps(sums, indent=2), encoding="utf-8")


def find_damaged_file(directory: Path) -> str | None:
    """Return the first file that does not match its checksum; None if all do.

    Data of earlier versions has no checksums: what reads it checks its structure.
    """
    path = directory / CHECKSUMS_FILE
    if not path.exists():
        return None
    try:
        sums = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return CHECKSUMS_FILE
    for name, expected in sums.items():
        try:
            if checksum(directory / name) != expected:
                return str(name)
        except OSError:
            return str(name)
    return None


def check_disk_space(paths: Iterable[Path], directory: Path) -> None:
    """Raise an error if the disk of `directory` has too little free space for the preparation."""
    needed = RESERVED_BYTES + sum(_estimated_bytes(path) for path in paths)
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise InputError(
            message(
                "preparing the data needs about {needed:.1f} GB on the disk of "
                "{directory}, {free:.1f} GB are free",
                needed=needed / 1000000000.0,
                directory=directory,
                free=free / 1000000000.0,
            ),
            hint="free some space, or set ATTENDO_CACHE to a folder on another disk",
        )


def _estimated_bytes(path: Path) -> int:
    with path.open("rb") as file:
        factor = GZIP_SIZE_FACTOR if file.read(2) == GZIP_MAGIC else PLAIN_SIZE_FACTOR
    return factor * path.stat().st_size
