r"""Streams the lines of text files, plain or gzip: memory does not grow with the file.

A line ends only at `\n`: U+2028, U+0085 or a lone `\r` inside a sentence must not misalign the two
sides of a corpus. The text is UTF-8; an invalid byte is reported with its file, line and offset (in
the decompressed text). Every problem with a file becomes an `InputError`.
"""

from __future__ import annotations

import gzip
import io
import zlib
from contextlib import contextmanager
from difflib import get_close_matches
from typing import IO, TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

GZIP_MAGIC = b"\x1f\x8b"
UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
MAX_LINE_BYTES = 16 * 2**20
UNSUPPORTED_COMPRESSIONS = (".zip", ".tgz", ".tar", ".bz2", ".xz", ".zst", ".7z")


def check_readable(path: Path) -> None:
    """Raise an `InputError` if a path is missing, a folder, or an unsupported archive."""
    if path.is_dir():
        raise InputError(message("{path} is a folder", path=path), hint="name the file in it")
    if not path.exists():
        raise InputError(f"{path} does not exist", hint=_suggest_file(path))
    if path.suffix.lower() in UNSUPPORTED_COMPRESSIONS:
        raise InputError(
            f"{path} is compressed as {path.suffix}",
            hint="decompress it first; only plain text and .gz can be read",
        )


def _suggest_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"the folder {path.parent} does not exist either: check the path"
    suggestion = get_close_matches(path.name, (other.name for other in path.parent.iterdir()), n=1)
    return f"did you mean '{path.with_name(suggestion[0])}'?" if suggestion else "check the path"


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, decompressed if it is gzip; errors become `InputError`s."""
    try:
        with path.open("rb") as raw:
            if raw.peek(2)[:2] == GZIP_MAGIC:
                with gzip.GzipFile(fileobj=raw) as unpacked, io.BufferedReader(unpacked) as stream:
                    yield stream
            elif path.suffix.lower() == ".gz":
                raise InputError(f"{path} is not a gzip file", hint="rename it, or gzip it")
            else:
                yield raw
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        reason = f"{path} is a damaged gzip file: {error}"
        raise InputError(
            reason, hint="download or compress it again; `gzip -t` checks it"
        ) from None
    except OSError as error:
        reason = f"cannot read {path}: {error.strerror or error}"
        raise InputError(reason, hint="check the path and its permissions") from None


def read_lines(path: Path) -> Generator[str, None, None]:
    r"""Yield each line without its `\n` or `\r\n`, and without the byte order mark."""
    offset = 0
    with open_bytes(path) as stream:
        for number, raw in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""), 1):
            if len(raw) > MAX_LINE_BYTES:
                raise InputError(
                    f"{path}, line {number} is longer than {MAX_LINE_BYTES:,} bytes",
                    hint="write one sentence per line",
                )
            yield _decode_line(raw, path, number, offset)
            offset += len(raw)


def _decode_line(raw: bytes, path: Path, number: int, offset: int) -> str:
    if offset == 0:
        if raw.startswith(UTF16_BOMS):
            hint = f"convert it: iconv -f UTF-16 -t UTF-8 {path.name} > new"
            raise InputError(f"{path}, line 1, byte 0: 0x{raw[0]:02x} begins UTF-16", hint=hint)
        text = decode_utf8(raw, path, number, offset).removeprefix("\ufeff")
    else:
        text = decode_utf8(raw, path, number, offset)
    return text.removesuffix("\n").removesuffix("\r")


def decode_utf8(raw: bytes, path: Path, first_line: int = 1, offset: int = 0) -> str:
    """Decode bytes that begin at `first_line` and `offset` of `path`, or report the bad byte."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = first_line + raw.count(b"\n", 0, error.start)
        column, value = offset + error.start, raw[error.start]
        raise InputError(
            f"{path}, line {line}, byte {column}: 0x{value:02x} is not valid UTF-8",
            hint=f"convert it from its encoding: iconv -f CP949 -t UTF-8 {path.name} > new",
        ) from None
