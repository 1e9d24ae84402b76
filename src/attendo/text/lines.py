r"""Streams the lines of text files, plain or gzip: memory does not grow with the file.

A line ends at `\n` or `\r\n`; at `\r` only in a file that has no `\n` (classic Mac OS). U+2028,
U+0085 or a `\r` inside a sentence must not misalign the two sides of a corpus. Gzip is recognized
by its content, whatever the name. The text is UTF-8; an invalid byte is reported with its file,
line and offset (in the decompressed text), and the encoding that the file seems to have. Every
problem with a file becomes an `InputError`.
"""

from __future__ import annotations

import gzip
import io
import re
import zlib
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, cast

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.text.encodings import (
    detect_file_type,
    guess_encoding,
    has_many_nul_bytes,
    is_damaged_utf8,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import BinaryIO

GZIP_MAGIC = b"\x1f\x8b"
GZIP_ERRORS = (gzip.BadGzipFile, zlib.error, EOFError)
MAX_LINE_BYTES = 16 * 2**20
HEAD_BYTES = 2**16
"""Size of the beginning of a file that is examined before it is read."""
LONE_CARRIAGE_RETURN = re.compile(rb"\r(?=[^\n])")
CHECK_PATH = "check the path"
ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):(/+)")
LOCAL_PROTOCOLS = frozenset({"file", "local"})
UNSUPPORTED_COMPRESSIONS = (".zip", ".tgz", ".tar", ".bz2", ".xz", ".zst", ".7z")


class Address(str):
    """The address of a file that is not on a local disk, where a path is expected.

    >>> Address("s3://corpora/news.en.gz").name
    'news.en.gz'
    """

    __slots__ = ()

    @property
    def name(self) -> str:
        """The part after the last slash."""
        return self.rstrip("/").rpartition("/")[2]

    def is_file(self) -> bool:
        """Return False: it cannot be opened like a local file."""
        return False


def find_address(text: str | Path) -> str | None:
    """Return the address that a text is, or None if it is a path on this machine.

    A `Path` has lost one of the two slashes.

    >>> find_address("s3://corpora/news.en.gz"), find_address(Path("s3://corpora/news.en.gz"))
    ('s3://corpora/news.en.gz', 's3://corpora/news.en.gz')
    >>> find_address("news.en.gz"), find_address("C:/news.en")
    (None, None)
    """
    match = ADDRESS.match(str(text))
    if match is None or Path(text).exists():
        return None
    if len(match[2]) > 1:
        return str(text)
    slashes = "///" if match[1] in LOCAL_PROTOCOLS else "//"
    return f"{match[1]}:{slashes}{str(text)[match.end() :]}"


def check_readable(path: Path) -> None:
    """Raise an `InputError` if a path is missing, a folder, or an unsupported archive."""
    check_exists(path)
    if path.is_dir():
        raise InputError(message("{path} is a folder", path=path), hint="name the file in it")
    if path.suffix.lower() in UNSUPPORTED_COMPRESSIONS:
        raise InputError(
            message("{path} is compressed as {suffix}", path=path, suffix=path.suffix),
            hint="decompress it first; only plain text and .gz can be read",
        )


def check_exists(path: Path) -> None:
    """Raise an `InputError` that suggests a name unless a path is that of a file or a folder."""
    try:
        exists = path.exists()
    except OSError as error:  # such as a name that is too long
        raise _unreadable(path, error) from None
    if not exists:
        raise InputError(message("{path} does not exist", path=path), hint=_suggest_file(path))


def _suggest_file(path: Path) -> str:
    if not path.parent.is_dir():
        return message(
            "the folder {folder} does not exist either: check the path", folder=path.parent
        )
    near = get_close_matches(path.name, (other.name for other in path.parent.iterdir()), n=1)
    return message("did you mean '{near}'?", near=path.with_name(near[0])) if near else CHECK_PATH


@contextmanager
def open_bytes(path: Path | Address, file: BinaryIO | None = None) -> Iterator[io.BufferedReader]:
    """Open a file for reading, decompressed if it is gzip; errors become `InputError`s.

    Args:
        path: the file, which errors name.
        file: its content, if it is not on a local disk; it is closed at the end.

    """
    try:
        source = io.FileIO(cast("Path", path)) if file is None else cast("io.RawIOBase", file)
        with io.BufferedReader(source, HEAD_BYTES) as raw:
            if raw.peek(2)[:2] == GZIP_MAGIC:
                with (
                    gzip.GzipFile(fileobj=raw) as unpacked,
                    io.BufferedReader(unpacked, HEAD_BYTES) as stream,
                ):
                    yield cast("io.BufferedReader", stream)
            else:
                yield cast("io.BufferedReader", raw)
    except GZIP_ERRORS as error:
        raise InputError(
            message("{path} is a damaged gzip file: {detail}", path=path, detail=str(error)),
            hint="download or compress it again; `gzip -t` checks it",
        ) from None
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path | Address, error: OSError) -> InputError:
    return InputError(
        message("cannot read {path}: {detail}", path=path, detail=error.strerror or str(error)),
        hint="check the path and its permissions",
    )


def check_gzip(path: Path | Address) -> None:
    """Raise an `InputError` if a file is damaged gzip, whose checksum is at its end.

    Call it when the content of a file turns out to be invalid: that may be the damage.
    """
    if path.is_file():
        with open_bytes(path) as stream:
            if isinstance(cast("object", stream.raw), gzip.GzipFile):
                while stream.read(HEAD_BYTES):
                    pass


def read_lines(path: Path | Address, file: BinaryIO | None = None) -> Generator[str, None, None]:
    """Yield each line without its line end, and without the byte order mark.

    Args:
        path: the file, which errors name.
        file: its content, if it is not on a local disk; it is closed at the end.

    """
    offset = 0
    with open_bytes(path, file) as stream:
        head = stream.peek(HEAD_BYTES)
        _reject_binary(head, path)
        for number, raw in enumerate(_split_lines(stream, head), 1):
            if len(raw) > MAX_LINE_BYTES:
                raise InputError(
                    message(
                        "{path}, line {line} is longer than {limit} bytes",
                        path=path,
                        line=number,
                        limit=f"{MAX_LINE_BYTES:,}",
                    ),
                    hint="write one sentence per line",
                )
            text = decode_utf8(raw, path, number, offset)
            if offset == 0:
                text = text.removeprefix("\ufeff")
            yield text.removesuffix("\n").removesuffix("\r")
            offset += len(raw)


def _split_lines(stream: io.BufferedReader, head: bytes) -> Iterator[bytes]:
    if b"\n" in head or not LONE_CARRIAGE_RETURN.search(head):
        return iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b"")
    return _split_at_carriage_returns(stream)


def _split_at_carriage_returns(stream: io.BufferedReader) -> Iterator[bytes]:
    rest = b""
    while block := stream.read1():
        *lines, rest = (rest + block).split(b"\r")
        yield from (line + b"\r" for line in lines)
        if len(rest) > MAX_LINE_BYTES:
            break
    if rest:
        yield rest


def _reject_binary(head: bytes, path: Path | Address) -> None:
    """Raise an error for what is not a text file, even if some of its lines are valid UTF-8."""
    file_type = detect_file_type(head)
    if file_type:
        raise InputError(
            message("{path} is not text: it is a {type} file", path=path, type=file_type),
            hint="extract or export its text as UTF-8",
        )
    if has_many_nul_bytes(head):
        raise _undecodable(message("{path} is not UTF-8 text", path=path), path, head)


def decode_utf8(raw: bytes, path: Path | Address, first_line: int = 1, offset: int = 0) -> str:
    """Decode bytes that begin at `first_line` and `offset` of `path`, or report the bad byte."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        check_gzip(path)
        reason = message(
            "{path}, line {line}, byte {offset}: {byte} is not valid UTF-8",
            path=path,
            line=first_line + raw.count(b"\n", 0, error.start),
            offset=offset + error.start,
            byte=f"0x{raw[error.start]:02x}",
        )
        raise _undecodable(reason, path, _sample(path, offset) or raw) from None


def _sample(path: Path | Address, offset: int) -> bytes:
    """Return the beginning of a file if it is regular, up to some text after an offset."""
    if not path.is_file():
        return b""
    with open_bytes(path) as stream:
        start = max(0, offset - HEAD_BYTES) // 2 * 2
        stream.seek(start)
        return stream.read(offset - start + HEAD_BYTES)


def _undecodable(reason: str, path: Path | Address, sample: bytes) -> InputError:
    """Return the error about a text that is not UTF-8, with what it seems to be instead."""
    encoding = guess_encoding(sample)
    if is_damaged_utf8(sample):
        return InputError(
            reason, hint="the rest of the file is UTF-8: correct or delete the damaged line"
        )
    if encoding:
        hint = message(
            "it seems to be {encoding}: iconv -f {encoding} -t UTF-8 {name} > new",
            encoding=encoding,
            name=path.name,
        )
        return InputError(reason, hint=hint)
    if b"\0" in sample:
        return InputError(
            message("{reason}; it seems to be a binary file", reason=reason),
            hint="give a text file; export the text of a document as UTF-8",
        )
    return InputError(
        reason,
        hint=message(
            "find out its encoding (`file -i {name}`) and convert it: "
            "iconv -f ENCODING -t UTF-8 {name} > new",
            name=path.name,
        ),
    )
