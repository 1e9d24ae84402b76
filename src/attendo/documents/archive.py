"""Zip archives of documents, in memory: parts are replaced, the others keep their bytes.

Nothing is written to a disk, and a name in the archive is never a path of this machine. What an
archive says about its sizes is not believed: parts are unpacked up to the limit.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_PARTS = 10_000
CHUNK_BYTES = 2**20
ENCRYPTED = 0x1


class Archive:
    """A zip archive.

    Args:
        content: its bytes.
        max_unpacked_bytes: what all of its parts may have, unpacked.

    Raises:
        InputError: it is not a zip archive, encrypted, or too large when it is unpacked.

    """

    def __init__(self, content: bytes, max_unpacked_bytes: int) -> None:
        self._content = content
        self._left = max_unpacked_bytes
        self._limit = max_unpacked_bytes
        try:
            with self._open() as file:
                self._infos = file.infolist()
        except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
            raise _broken() from None
        self.names = [info.filename for info in self._infos]
        if len(self.names) > MAX_PARTS:
            reason = message("the file has {count} parts", count=len(self.names))
            raise InputError(reason, hint=message("at most {count} are allowed", count=MAX_PARTS))
        if len(set(self.names)) != len(self.names):
            raise _broken()
        if any(info.flag_bits & ENCRYPTED for info in self._infos):
            raise InputError("the file is encrypted", hint="save it without a password")
        if sum(info.file_size for info in self._infos) > max_unpacked_bytes:
            raise self._too_large()

    def read(self, name: str) -> bytes:
        """Return a part; all parts together may not be larger than the limit."""
        parts: list[bytes] = []
        try:
            with self._open() as file, file.open(name) as stream:
                while part := stream.read(CHUNK_BYTES):
                    self._left -= len(part)
                    if self._left < 0:
                        raise self._too_large()
                    parts.append(part)
        except InputError:
            raise
        except (zipfile.BadZipFile, zlib.error, EOFError, LookupError, ValueError, OSError):
            raise _broken() from None
        except RuntimeError:  # encrypted, or an unknown method of compression
            raise _broken() from None
        return b"".join(parts)

    def write(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with some parts replaced, in the same order."""
        if not changed:
            return self._content
        output = io.BytesIO()
        self._left = self._limit
        with zipfile.ZipFile(output, "w") as file:
            for info in self._infos:
                content = changed.get(info.filename)
                if content is None:
                    content = self.read(info.filename)
                copy = zipfile.ZipInfo(info.filename, info.date_time)
                copy.compress_type = (
                    zipfile.ZIP_STORED
                    if info.compress_type == zipfile.ZIP_STORED
                    else zipfile.ZIP_DEFLATED
                )
                copy.external_attr, copy.comment = info.external_attr, info.comment
                copy.create_system = info.create_system
                file.writestr(copy, content)
        return output.getvalue()

    def _open(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(io.BytesIO(self._content))

    def _too_large(self) -> InputError:
        reason = message("the file has more than {count:,} bytes, unpacked", count=self._limit)
        return InputError(reason, hint="split it, or raise max_unpacked_bytes")


def _broken() -> InputError:
    return InputError("the file is damaged, or of another format", hint="open and save it again")
