"""pyarrow, an optional library: its import, and its errors as `InputError`s."""

from __future__ import annotations

import gzip
import zipfile
import zlib
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

T = TypeVar("T")

DAMAGED_FILE_HINT = "download or write it again"


def import_pyarrow(module: str = "pyarrow", *, extra: str = "series") -> Any:
    """Import a module of pyarrow, or raise an error that names the extra."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("pyarrow", extra) from None


def read_or_raise(read: Callable[[], T], path: Path, kind: str, hint: str) -> T:
    """Call a reader of `path`; turn its errors into an `InputError`."""
    try:
        return read()
    except InputError:
        raise
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile, zlib.error) as error:
        # pyarrow's errors are ValueErrors and OSErrors
        if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile) and path.suffix == ".gz":
            raise  # `open_bytes` turns it into an InputError
        reason = message(
            "{path} cannot be read as {kind}: {detail}",
            path=path,
            kind=kind,
            detail=" ".join(str(error).split()),
        )
        raise InputError(reason, hint=hint) from None
