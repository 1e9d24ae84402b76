"""Digests of the content of files and folders, and the keys of steps.

A file that was moved, touched or compressed again has the same digest. Digests are remembered with
the size and the time of the file, so that looking at a large build takes no time.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.text.lines import GZIP_MAGIC, check_readable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

BLOCK_BYTES = 2**20
KEY_LENGTH = 16
MAX_REMEMBERED = 10_000


def make_key(version: int, settings: Any, inputs: Mapping[str, str]) -> str:
    """Return the key of a step: a hash of its code's version, its settings and its inputs."""
    parts = {"version": version, "settings": settings, "inputs": dict(inputs)}
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_LENGTH]


class DigestCache:
    """Computes digests and remembers them in a file.

    Args:
        path: the file; None remembers nothing beyond this process.

    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._entries: dict[str, list[Any]] = {}
        self._is_changed = False
        if path is not None and path.is_file():
            try:
                self._entries = dict(json.loads(path.read_text(encoding="utf-8")))
            except (OSError, ValueError, TypeError):
                self._entries = {}

    def digest(self, path: Path) -> str:
        """Return the digest of a file, or of the files in a folder and their names."""
        if not path.is_dir():
            return self._digest_file(path)
        files = sorted(
            one
            for one in path.rglob("*")
            if one.is_file() and not any(p[0] == "." for p in one.relative_to(path).parts)
        )
        parts = [[one.relative_to(path).as_posix(), self._digest_file(one)] for one in files]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _digest_file(self, path: Path) -> str:
        check_readable(path)
        status = path.stat()
        facts = [status.st_size, status.st_mtime_ns, status.st_ino]
        name = str(path.resolve())
        known = self._entries.get(name)
        if isinstance(known, list) and known[:-1] == facts:
            return str(known[-1])
        digest = _hash_content(path)
        self._entries[name] = [*facts, digest]
        self._is_changed = True
        return digest

    def save(self) -> None:
        """Write what was computed since the last time."""
        if self._path is None or not self._is_changed:
            return
        newest = dict(list(self._entries.items())[-MAX_REMEMBERED:])
        write_atomically(self._path, json.dumps(newest))
        self._is_changed = False


def _hash_content(path: Path) -> str:
    """Return the SHA-256 of a file, of its text if it is gzip."""
    digest = hashlib.sha256()
    try:
        with path.open("rb") as raw:
            is_gzip = raw.read(2) == GZIP_MAGIC
            raw.seek(0)
            stream = gzip.GzipFile(fileobj=raw) if is_gzip else raw
            while block := stream.read(BLOCK_BYTES):
                digest.update(block)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        reason = message("{path} is a damaged gzip file: {detail}", path=path, detail=str(error))
        raise InputError(reason, hint="download or compress it again") from None
    except OSError as error:
        reason = message("cannot read {path}: {detail}", path=path, detail=error.strerror)
        raise InputError(reason, hint="check the path and its permissions") from None
    return digest.hexdigest()
