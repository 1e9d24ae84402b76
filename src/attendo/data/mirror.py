"""Bring one file here, from the net or from a mirror, and hold it to its checksum.

The checksum is the catalogue's; where that has none, the first fetch writes down the one it saw
beside the file (`<file>.sha256`), and every later fetch is held to it. A file that is being written
carries another name until it is whole and checked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.data.download import (
    MAX_FILE_BYTES,
    FetchError,
    MissingRemoteError,
    Retry,
    check_room,
    download,
    forget,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.catalog_entry import RemoteFile
    from attendo.data.download import Progress

COPY_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Source:
    """Where files come from: their own addresses, or a mirror (a folder or an address)."""

    mirror: str | None = None
    retry: Retry = field(default_factory=Retry)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not self.is_remote and not Path(str(self.mirror)).is_dir():
            raise InputError(
                f"the mirror {self.mirror} is no folder", remedy="name a folder or an http address"
            )

    @property
    def is_remote(self) -> bool:
        """Whether files come over the net."""
        return self.mirror is None or self.mirror.startswith(("http://", "https://"))

    def bring(self, file: RemoteFile, places: Sequence[str], partial: Path) -> None:
        """Download or copy a file to `partial`; in a mirror it is at the first of `places`."""
        if self.mirror is None:
            if file.url is None:
                raise MissingRemoteError(f"{file.name} has no address", remedy="use a mirror")
            self._download(file.url, file, partial)
            return
        for place in places:
            if self.is_remote:
                try:
                    self._download(f"{self.mirror.rstrip('/')}/{place}", file, partial)
                except MissingRemoteError:
                    continue
                return
            path = Path(self.mirror) / place
            if path.is_file():
                self._copy(path, file, partial)
                return
        raise MissingRemoteError(f"no {' or '.join(places)}")

    def _download(self, url: str, file: RemoteFile, partial: Path) -> None:
        download(
            url,
            partial,
            max_bytes=file.num_bytes or MAX_FILE_BYTES,
            retry=self.retry,
            progress=lambda done, total: self._tell(file.name, done, total),
        )

    def _copy(self, path: Path, file: RemoteFile, partial: Path) -> None:
        total, done = path.stat().st_size, 0
        forget(partial)
        check_room(str(path), partial, 0, total, file.num_bytes or MAX_FILE_BYTES)
        with path.open("rb") as original, partial.open("wb") as copy:
            while chunk := original.read(COPY_BYTES):
                copy.write(chunk)
                done += len(chunk)
                self._tell(file.name, done, total)

    def _tell(self, name: str, done: int, total: int | None) -> None:
        if self.progress is not None:
            self.progress(name, done, total)


def obtain(source: Source, file: RemoteFile, places: Sequence[str], path: Path) -> str:
    """Bring a file to `path`, unless it is there already, and give its checksum."""
    sidecar = path.with_name(f"{path.name}.sha256")
    expected = file.sha256 or _read_sidecar(sidecar)
    if path.exists():
        return _hold(path, path, expected, sidecar, remedy=f"delete {path} and fetch it again")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    source.bring(file, places, partial)
    remedy = "fetch it again, or from another place"
    if file.sha256 is None:
        remedy += f"; if its publisher has changed it, delete {sidecar} to accept that"
    try:
        digest = _hold(partial, path, expected, sidecar, remedy=remedy)
    except FetchError:
        forget(partial)
        raise
    partial.replace(path)
    return digest


def _hold(actual: Path, path: Path, expected: str | None, sidecar: Path, *, remedy: str) -> str:
    """Compare a checksum with the expected one, or write down what is seen for the first time."""
    with actual.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if expected is not None and digest != expected:
        raise FetchError(
            f"{path} has another checksum: sha256 {digest}, expected {expected}", remedy=remedy
        )
    if expected is None:
        sidecar.write_text(f"{digest}  {path.name}\n", encoding="utf-8")
    return digest


def _read_sidecar(sidecar: Path) -> str | None:
    if not sidecar.exists():
        return None
    words = sidecar.read_text(encoding="utf-8").split()
    return words[0] if words else None
