"""Safe extraction of texts from archives.

Only the members listed in the catalog are read, and each is written to a path of our choice: an
archive cannot write anywhere else. Links and special files are rejected, sizes are limited, nothing
is executed. WMT's SGML and IWSLT's formats are converted to plain lines.
"""

from __future__ import annotations

import html
import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING

from attendo.core.errors import suggest
from attendo.core.message import message
from attendo.corpora.download import FetchError
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from attendo.corpora.entries import Markup

MAX_EXPANSION = 100
"""Text compresses about five times; a hundred times the archive size is a decompression bomb."""
ALWAYS_ALLOWED_BYTES = 64 * 2**20
"""A member up to this size is always extracted."""
CHUNK_BYTES = 2**20
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
TALK_TAG = re.compile(
    r"\s*</?(url|keywords|speaker|talkid|title|description|reviewer|translator|doc|transcript)\b"
)
ARCHIVE_ERRORS = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    OSError,
)


def extract_members(archive: Path, members: Mapping[str, Path]) -> None:
    """Extract each named member of a zip or tar archive to its path, or raise a `FetchError`."""
    max_bytes = max(ALWAYS_ALLOWED_BYTES, MAX_EXPANSION * archive.stat().st_size)
    extract = _extract_zip if archive.suffix.lower() == ".zip" else _extract_tar
    try:
        missing, names = extract(archive, members, max_bytes)
    except ARCHIVE_ERRORS as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not the archive
            reason, hint = error.strerror, "free some space, or choose another folder"
        else:
            reason = message("it is damaged ({error})", error=error)
            hint = "delete it and download it again"
        raise FetchError(
            message("cannot extract {archive}: {reason}", archive=archive, reason=reason), hint=hint
        ) from None
    if missing:
        raise FetchError(
            message("{archive} does not contain '{missing}'", archive=archive, missing=missing[0]),
            hint=suggest(missing[0], sorted(names)[:50]),
        )


def _extract_zip(
    path: Path, members: Mapping[str, Path], max_bytes: int
) -> tuple[list[str], set[str]]:
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        for name in names & members.keys():
            info = archive.getinfo(name)
            mode = info.external_attr >> 16
            is_regular_file = not info.is_dir() and (stat.S_ISREG(mode) or not stat.S_IFMT(mode))
            if not is_regular_file or info.flag_bits & 1:
                raise _unsafe_member_error(path, name, message("is a link, a folder or encrypted"))
            with archive.open(info) as source:
                _write_member(source, members[name], path, max_bytes)
    return [name for name in members if name not in names], names


def _extract_tar(
    path: Path, members: Mapping[str, Path], max_bytes: int
) -> tuple[list[str], set[str]]:
    names: set[str] = set()
    missing = dict(members)
    with tarfile.open(path, "r|*") as archive:  # streaming: a seek in a compressed tar starts over
        for info in archive:
            name = info.name.removeprefix("./")
            names.add(name)
            if name not in missing:
                continue
            source = archive.extractfile(info) if info.isreg() else None
            if source is None:
                raise _unsafe_member_error(path, name, message("is not a regular file"))
            with source:
                _write_member(source, missing.pop(name), path, max_bytes)
            if not missing:
                break
    return list(missing), names


def _unsafe_member_error(archive: Path, name: str, reason: str) -> FetchError:
    return FetchError(
        message("{archive}: '{name}' {reason}", archive=archive, name=name, reason=reason),
        hint="download the corpus from another mirror",
    )


def _write_member(source: IO[bytes], target: Path, archive: Path, max_bytes: int) -> None:
    partial = target.with_name(f".{target.name}.partial")
    num_bytes = 0
    try:
        with partial.open("wb") as file:
            while chunk := source.read(CHUNK_BYTES):
                num_bytes += len(chunk)
                if num_bytes > max_bytes:
                    raise _unsafe_member_error(
                        archive,
                        target.name,
                        message("is larger than {count:,} bytes", count=max_bytes),
                    )
                file.write(chunk)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def remove_markup(path: Path, markup: Markup) -> None:
    """Convert a file to plain lines, one sentence per line."""
    if markup == "text":
        return
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in _text_lines(path, markup))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def _text_lines(path: Path, markup: Markup) -> Iterator[str]:
    for line in read_lines(path):
        if markup == "tags":
            if not TALK_TAG.match(line):
                yield line.strip()
        elif match := SEGMENT.search(line):
            # WMT's SGML has no escapes, and papers score it as it is; XML escapes & and <.
            text = match[1].strip()
            yield html.unescape(text) if markup == "xml" else text
