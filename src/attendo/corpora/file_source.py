"""Fetches one file from its URL or from a mirror, and verifies its checksum.

The checksum comes from the catalog. If the catalog has none, the first download stores its checksum
in `<file>.sha256`, and every later download must match it. A file has a temporary name until it is
complete and verified.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.corpora.download import (
    MAX_FILE_BYTES,
    FetchError,
    MissingRemoteError,
    RetryPolicy,
    check_space,
    discard_partial,
    download,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.corpora.download import Progress
    from attendo.corpora.entries import RemoteFile

COPY_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class FileSource:
    """Where files come from: their published URLs, or a mirror (a folder or a URL)."""

    mirror: str | None = None
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not self.is_remote and not Path(str(self.mirror)).is_dir():
            raise InputError(
                message("the mirror {mirror} is not a folder", mirror=self.mirror),
                hint="give a folder or an http URL",
            )

    @property
    def is_remote(self) -> bool:
        """Whether files are downloaded rather than copied."""
        return self.mirror is None or self.mirror.startswith(("http://", "https://"))

    def fetch_to(self, file: RemoteFile, mirror_paths: Sequence[str], partial: Path) -> None:
        """Download or copy a file to `partial`; on a mirror, try `mirror_paths` in order."""
        if self.mirror is None:
            if file.url is None:
                raise MissingRemoteError(
                    message("{name} has no URL", name=file.name), hint="use a mirror"
                )
            self._download(file.url, file, partial)
            return
        for mirror_path in mirror_paths:
            if self.is_remote:
                try:
                    self._download(f"{self.mirror.rstrip('/')}/{mirror_path}", file, partial)
                except MissingRemoteError:
                    continue
                return
            path = Path(self.mirror) / mirror_path
            if path.is_file():
                self._copy(path, file, partial)
                return
        raise MissingRemoteError(message("no {names}", names=" or ".join(mirror_paths)))

    def _download(self, url: str, file: RemoteFile, partial: Path) -> None:
        download(
            url,
            partial,
            max_bytes=file.num_bytes or MAX_FILE_BYTES,
            retry=self.retry,
            progress=lambda done, total: self._report(file.name, done, total),
        )

    def _copy(self, path: Path, file: RemoteFile, partial: Path) -> None:
        total, done = path.stat().st_size, 0
        discard_partial(partial)
        check_space(str(path), partial, 0, total, file.num_bytes or MAX_FILE_BYTES)
        with path.open("rb") as input_file, partial.open("wb") as output_file:
            while chunk := input_file.read(COPY_BYTES):
                output_file.write(chunk)
                done += len(chunk)
                self._report(file.name, done, total)

    def _report(self, name: str, done: int, total: int | None) -> None:
        if self.progress is not None:
            self.progress(name, done, total)


def ensure_file(
    source: FileSource, file: RemoteFile, mirror_paths: Sequence[str], path: Path
) -> str:
    """Fetch a file to `path` unless it exists, verify it, and return its checksum."""
    sidecar = path.with_name(f"{path.name}.sha256")
    expected = file.sha256 or _read_sidecar(sidecar)
    if path.exists():
        return _verify_checksum(
            path,
            path,
            expected,
            sidecar,
            hint=message("delete {path} and download it again", path=path),
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    source.fetch_to(file, mirror_paths, partial)
    hint = "download it again, or from another mirror"
    if file.sha256 is None:
        hint += f"; if the publisher has changed it, delete {sidecar} to accept the new file"
    try:
        digest = _verify_checksum(partial, path, expected, sidecar, hint=hint)
    except FetchError:
        discard_partial(partial)
        raise
    partial.replace(path)
    return digest


def _verify_checksum(
    actual: Path, path: Path, expected: str | None, sidecar: Path, *, hint: str
) -> str:
    """Compare a checksum with the expected one, or store it if there is none."""
    with actual.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if expected is not None and digest != expected:
        raise FetchError(
            message(
                "{path} has the wrong checksum: sha256 {digest}, expected {expected}",
                path=path,
                digest=digest,
                expected=expected,
            ),
            hint=hint,
        )
    if expected is None:
        sidecar.write_text(f"{digest}  {path.name}\n", encoding="utf-8")
    return digest


def _read_sidecar(sidecar: Path) -> str | None:
    if not sidecar.exists():
        return None
    words = sidecar.read_text(encoding="utf-8").split()
    return words[0] if words else None
