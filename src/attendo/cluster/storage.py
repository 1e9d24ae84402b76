"""Files on local disks, network drives and object stores, by fsspec.

An address is a path, or a URL such as `s3://bucket/mono/*.gz`. Whatever a file system raises
becomes an `InputError` that names the address: each has exceptions of its own.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.files import sync, sync_directory
from attendo.core.message import message
from attendo.core.os_errors import write_error_hint
from attendo.core.process_lock import process_lock
from attendo.text.lines import Address, check_readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fsspec import AbstractFileSystem

ATOMIC_PROTOCOLS = frozenset({"s3", "s3a", "gs", "gcs", "abfs", "az", "adl", "oci", "r2", "memory"})
"""Stores in which an object appears when it is complete: nothing needs to be renamed."""
PARTIAL_SUFFIX = ".partial"
PROBE_BYTES = 2**16
"""Read from both ends of a file to notice that it has changed."""
CREDENTIAL_WORDS = ("credential", "forbidden", "unauthorized", "accessdenied", "access denied")
CREDENTIALS_HINT = (
    "set the credentials of this storage on all machines, e.g. AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY"
)
NUM_THREADS = 16
VERSION_FIELDS = ("ETag", "etag", "md5Hash", "content_md5", "LastModified", "mtime", "created")
"""What file systems call that which changes with the content of a file."""
DIGEST_LENGTH = 16
CHUNK_BYTES = 2**22


class Source(NamedTuple):
    """A file that is read."""

    address: str
    size: int
    digest: str
    """Of its size, its beginning and its end."""


class Folder:
    """A folder in any file system.

    Args:
        address: a path, or a URL that fsspec knows.

    """

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/") or "/"
        self.filesystem, self.root = open_filesystem(self.address)
        self.is_local = is_local(self.filesystem)

    def path(self, *names: str) -> str:
        """Return the path of a file in the folder."""
        return "/".join((self.root, *names))

    def write(self, name: str, content: bytes) -> None:
        """Write a file such that it appears complete or not at all."""
        path = self.path(name)
        with explain_errors(f"{self.address}/{name}", is_output=True):
            if not self.is_local:
                self._write_remote(path, content)
                return
            target = Path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            partial = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}{PARTIAL_SUFFIX}")
            try:
                partial.write_bytes(content)
                sync(partial)
                partial.replace(target)
            finally:
                partial.unlink(missing_ok=True)
            sync_directory(target.parent)

    def _write_remote(self, path: str, content: bytes) -> None:
        if set(protocols(self.filesystem)) & ATOMIC_PROTOCOLS:
            self.filesystem.pipe_file(path, content)
            return
        parent, _, name = path.rpartition("/")
        self.filesystem.makedirs(parent, exist_ok=True)
        partial = f"{parent}/.{name}.{uuid.uuid4().hex[:8]}{PARTIAL_SUFFIX}"
        self.filesystem.pipe_file(partial, content)
        self.filesystem.mv(partial, path)

    def upload(self, path: Path, name: str) -> None:
        """Copy a local file of any size into the folder; it appears complete or not at all."""
        target = self.path(name)
        with explain_errors(f"{self.address}/{name}", is_output=True):
            if set(protocols(self.filesystem)) & ATOMIC_PROTOCOLS:
                self.filesystem.put_file(str(path), target)
                return
            parent, _, last = target.rpartition("/")
            self.filesystem.makedirs(parent, exist_ok=True)
            partial = f"{parent}/.{last}.{uuid.uuid4().hex[:8]}{PARTIAL_SUFFIX}"
            self.filesystem.put_file(str(path), partial)
            self.filesystem.mv(partial, target)

    def download(self, name: str, path: Path) -> None:
        """Copy a file of the folder to a local path."""
        with explain_errors(f"{self.address}/{name}"):
            self.filesystem.get_file(self.path(name), str(path))

    def exists(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        with explain_errors(f"{self.address}/{name}"):
            return bool(self.filesystem.exists(self.path(name)))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is none."""
        with explain_errors(f"{self.address}/{name}"):
            try:
                return cast("bytes", self.filesystem.cat_file(self.path(name)))
            except FileNotFoundError:
                return None

    def names(self) -> list[str]:
        """Return the paths of all files below the folder, relative to it."""
        with explain_errors(self.address):
            self.filesystem.invalidate_cache()
            found = self.filesystem.find(self.root)
            return [path[len(self.root) :].lstrip("/") for path in found]

    def remove(self, names: Iterable[str]) -> None:
        """Delete files."""
        with explain_errors(self.address, is_output=True):
            for name in names:
                self.filesystem.rm_file(self.path(name))

    def file_url(self, name: str) -> str:
        """Return the address of a file in the folder."""
        return f"{self.address}/{name}"


def download(address: str, cache: Path, progress: Callable[[int, int], None] | None = None) -> Path:
    """Return a copy of a file in a cache folder, downloaded once per version of the file.

    Args:
        address: of the file.
        cache: the folder of the copies.
        progress: called with the bytes that are done and those of the file.

    """
    filesystem, path = open_filesystem(address)
    if is_local(filesystem):
        return Path(path)
    with explain_errors(address):
        info = filesystem.info(path)
        if info.get("type") == "directory":
            raise InputError(
                message("{path} is a folder", path=address), hint="name the file in it"
            )
    size = info.get("size")
    version = [address, size, *(str(info[name]) for name in VERSION_FIELDS if name in info)]
    digest = hashlib.sha256(json.dumps(version).encode()).hexdigest()
    folder = cache / digest[:DIGEST_LENGTH]
    target = folder / Address(address.partition("?")[0]).name
    with explain_errors(str(target), is_output=True):
        folder.mkdir(parents=True, exist_ok=True)
    with process_lock(folder / ".lock"):
        if not target.is_file():
            _download(filesystem, path, address, target, size, progress)
    return target


def _download(
    filesystem: AbstractFileSystem,
    path: str,
    address: str,
    target: Path,
    size: int | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    partial = target.with_name(f".{target.name}{PARTIAL_SUFFIX}")
    count = 0
    try:
        with (
            explain_errors(address),
            filesystem.open(path, "rb") as source,
            explain_errors(str(target), is_output=True),
            partial.open("wb") as file,
        ):
            while chunk := _read_chunk(source, address):
                file.write(chunk)
                count += len(chunk)
                if progress is not None:
                    progress(count, size or count)
        if size is not None and count != size:
            raise InputError(
                message("{path} ended after {count} of {size} bytes", path=address, count=count,
                        size=size),
                hint="run the same command again",
            )  # fmt: skip
        with explain_errors(str(target), is_output=True):
            sync(partial)
            partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _read_chunk(source: Any, address: str) -> bytes:
    with explain_errors(address):
        return cast("bytes", source.read(CHUNK_BYTES))


def open_filesystem(address: str) -> tuple[AbstractFileSystem, str]:
    """Return the file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtraError("fsspec", "cluster") from None
    with explain_errors(address):
        filesystem, path = url_to_fs(address)
        return filesystem, str(path)


def protocols(filesystem: AbstractFileSystem) -> tuple[str, ...]:
    """Return the names of the protocols of a file system."""
    protocol = filesystem.protocol
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def is_local(filesystem: AbstractFileSystem) -> bool:
    """Return whether a file system is that of this machine."""
    return "file" in protocols(filesystem)


def find_sources(pattern: str) -> list[Source]:
    """Return the files that an address, a pattern with * or a folder names, sorted."""
    filesystem, path = open_filesystem(pattern)
    with explain_errors(pattern):
        if filesystem.isdir(path):
            found = sorted(one for one in filesystem.find(path) if not is_hidden(one, path))
        elif any(character in path for character in "*?["):
            found = sorted(one for one in filesystem.glob(path) if filesystem.isfile(one))
        else:
            found = [path]
            if is_local(filesystem):
                check_readable(Path(path))
        if not found:
            raise InputError(
                message("no file matches {pattern}", pattern=pattern), hint="check the path"
            )
        addresses = [one if is_local(filesystem) else filesystem.unstrip_protocol(one)
                     for one in found]  # fmt: skip
        with ThreadPoolExecutor(NUM_THREADS) as pool:
            return list(pool.map(_examine, addresses))


def list_files(pattern: str) -> list[str]:
    """Return the addresses of the files that match a pattern with *, sorted."""
    filesystem, path = open_filesystem(pattern)
    with explain_errors(pattern):
        found = sorted(one for one in filesystem.glob(path) if filesystem.isfile(one))
        if not found:
            raise InputError(
                message("no file matches {pattern}", pattern=pattern), hint="check the path"
            )
        return [one if is_local(filesystem) else filesystem.unstrip_protocol(one)
                for one in found]  # fmt: skip


def is_hidden(path: str, root: str) -> bool:
    """Return whether a part of a path below a root begins with a full stop or an underscore."""
    return any(part.startswith((".", "_")) for part in path[len(root) :].split("/"))


def _examine(address: str) -> Source:
    filesystem, path = open_filesystem(address)
    with explain_errors(address):
        size = int(filesystem.size(path) or 0)
        with filesystem.open(path, "rb") as file:
            ends = file.read(PROBE_BYTES)
            if size > PROBE_BYTES:
                file.seek(max(PROBE_BYTES, size - PROBE_BYTES))
                ends += file.read(PROBE_BYTES)
    digest = hashlib.sha256(str(size).encode() + b"\n" + ends).hexdigest()
    return Source(address, size, digest)


class ReadPosition:
    """How many bytes of a file were read, before decompression."""

    def __init__(self) -> None:
        self.file: Any = None

    def __int__(self) -> int:
        """Return the position; 0 for a file that is closed."""
        return 0 if self.file is None or self.file.closed else int(self.file.tell())


@contextmanager
def open_source(
    address: str, position: ReadPosition | None = None
) -> Iterator[tuple[Path | Address, BinaryIO]]:
    """Yield what `attendo.text.lines.read_lines` needs to read a file, wherever it is."""
    filesystem, path = open_filesystem(address)
    if is_local(filesystem):
        with explain_errors(address):
            file: Any = Path(path).open("rb", buffering=0)  # noqa: SIM115 - closed below
        name: Path | Address = Path(path)
    else:
        with explain_errors(address):
            file = filesystem.open(path, "rb")
        name = Address(address)
    if position is not None:
        position.file = file
    with explain_errors(address), file:
        yield name, file


@contextmanager
def open_seekable(address: str, position: ReadPosition | None = None) -> Iterator[Any]:
    """Open a file for reading at any position."""
    filesystem, path = open_filesystem(address)
    with explain_errors(address), filesystem.open(path, "rb") as file:
        if position is not None:
            position.file = file
        yield file


@contextmanager
def explain_errors(address: str, *, is_output: bool = False) -> Iterator[None]:
    """Turn what a file system raises into an `InputError` that names the address."""
    try:
        yield
    except AttendoError:
        raise
    except ImportError as error:
        raise InputError(
            message("{name}: {detail}", name=address, detail=_one_line(error)),
            hint="install the fsspec package of this kind of address on all machines",
        ) from error
    except OSError as error:
        raise _describe_os_error(error, address, is_output=is_output) from error
    except Exception as error:  # every file system has exceptions of its own
        raise _describe_other(error, address) from error


def _describe_os_error(error: OSError, address: str, *, is_output: bool) -> InputError:
    if error.errno is None and not isinstance(error, (FileNotFoundError, PermissionError)):
        return _describe_other(error, address)
    if is_output:
        detail = error.strerror or _one_line(error)
        return InputError(
            message("cannot write {path}: {detail}", path=address, detail=detail),
            hint=write_error_hint(error),
        )
    if isinstance(error, FileNotFoundError) or error.errno == errno.ENOENT:
        return InputError(message("{path} does not exist", path=address), hint="check the path")
    if isinstance(error, PermissionError) and error.errno is None:
        return _describe_other(error, address)
    return InputError(
        message(
            "cannot read {path}: {detail}",
            path=address,
            detail=error.strerror or _one_line(error),
        ),
        hint="check the path and its permissions",
    )


def _describe_other(error: Exception, address: str) -> InputError:
    names = " ".join(one.__name__ for one in type(error).__mro__)
    text = f"{names} {error}".casefold()
    hint = None
    if isinstance(error, PermissionError) or any(word in text for word in CREDENTIAL_WORDS):
        hint = CREDENTIALS_HINT
    reason = message("{name}: {detail}", name=address, detail=_one_line(error))
    return InputError(reason, hint=hint)


def _one_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def read_json(folder: Folder, name: str) -> dict[str, Any] | None:
    """Return an object from a JSON file; None if there is no such file."""
    content = folder.read(name)
    if content is None:
        return None
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise InputError(
            message("{path} is damaged", path=folder.file_url(name)),
            hint="use --force to begin again",
        )
    return value


def same_file_system(address: str) -> str:
    """Return an address that is valid in any working folder: local paths become absolute."""
    filesystem, path = open_filesystem(address)
    return os.path.abspath(path) if is_local(filesystem) else address  # noqa: PTH100 - may not exist
