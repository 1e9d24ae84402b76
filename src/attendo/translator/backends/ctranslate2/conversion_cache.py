"""Converts model folders to CTranslate2 once, and caches them by their content.

The files under `cache_dir()/ctranslate2` can be deleted at any time; they are created again. If
the cache cannot be written, a private folder in the temporary folder is used. Old conversions are
removed when a new one is added and all of them are too large.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.bundle import load_bundle, open_bundle, warn_if_unfinished
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.files import cache_dir, new_directory
from attendo.core.logs import get_logger
from attendo.core.message import join_messages, message
from attendo.core.process_lock import process_lock
from attendo.core.run_folder import ModelFolder
from attendo.data.fingerprint import content_fingerprint
from attendo.model.config import TransformerConfig
from attendo.stored_model import StoredModel
from attendo.translator.backends.base import USE_NATIVE_HINT
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.ctranslate2.converter import (
    FORMAT_VERSION,
    INFO_FILE,
    import_ctranslate2,
    unsupported_reasons,
    write,
)
from attendo.translator.backends.ctranslate2.loader import check_precision

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.translator.backends.base import EngineName
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.pytorch import PyTorchBackend

MAX_CACHE_BYTES = 4_000_000_000
MIN_CONVERSIONS = 2
"""Conversions that are kept whatever their size."""
_log = get_logger(__name__)


class NativeOnlyError(ConfigError):
    """Only PyTorch runs such a model or uses such a device: nothing that a user could repair."""


def load_ctranslate2(
    directory: str | Path,
    *more: str | Path,
    engine: EngineName,
    device_type: str | None,
    precision: Precision,
) -> CTranslate2Backend | None:
    """Load a model with CTranslate2; with "auto", return None if CTranslate2 cannot run it.

    `device_type` is of the one that was requested, or that PyTorch would use.
    """
    check_precision(precision)
    reasons = [message("ensemble: CTranslate2 decodes with one model")] if more else []
    if device_type not in (None, "cpu"):
        reasons.append(
            message(
                "device '{device}': CTranslate2 is supported on the CPU only", device=device_type
            )
        )
    try:
        if reasons:
            raise _unsupported_error(NativeOnlyError, reasons)
        converted_dir = cached_conversion(directory)
        return CTranslate2Backend(
            converted_dir,
            precision=precision,
            load_native=lambda: _load_native(directory),
        )
    except AttendoError as error:
        if engine != "auto" or isinstance(error, InputError):
            raise
        reason = " ".join(error.reason.split())
        if isinstance(error, NativeOnlyError):
            _log.info("PyTorch decodes %s: %s", directory, reason)
        else:
            _log.warning("PyTorch decodes %s, which is slower than CTranslate2: %s",
                         directory, reason)  # fmt: skip
        return None


def _load_native(directory: str | Path) -> PyTorchBackend:
    from attendo.translator.backends.pytorch import PyTorchBackend

    return PyTorchBackend(load_bundle(directory).model)


def cached_conversion(directory: str | Path) -> Path:
    """Return the converted folder of a model folder, converting it if necessary."""
    import_ctranslate2()
    model_folder = ModelFolder.find(directory)
    path = model_folder.path
    if not model_folder.exists():
        open_bundle(path, "text")  # raises the error
    warn_if_unfinished(directory)
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
    names = [one.name for one in files]
    key = content_fingerprint(files, {"format_version": FORMAT_VERSION, "names": names})
    roots = (cache_dir(), temporary_cache_dir())
    candidates = [root / "ctranslate2" / key[:32] for root in roots if root is not None]
    for converted_dir in candidates:
        if (converted_dir / INFO_FILE).is_file():
            with suppress(OSError):
                os.utime(converted_dir / INFO_FILE)  # the least recently used one is removed first
            return converted_dir
    model = StoredModel.read(path)
    if reasons := unsupported_reasons(model):
        is_other_kind = not isinstance(model.config, TransformerConfig)
        raise _unsupported_error(NativeOnlyError if is_other_kind else ConfigError, reasons)
    return _convert(model, path, candidates)


def _convert(model: StoredModel, path: Path, candidates: Sequence[Path]) -> Path:
    """Convert into the first folder that can be written."""
    errors: list[AttendoError] = []
    for converted_dir in candidates:
        try:
            _write_conversion(model, converted_dir)
        except AttendoError as error:
            errors.append(error)
            continue
        _log.info("converted %s for CTranslate2, in %s", path, converted_dir.parent)
        remove_old_conversions(converted_dir.parent)
        return converted_dir
    raise errors[0]


def _write_conversion(model: StoredModel, target_dir: Path) -> None:
    root = target_dir.parent.parent
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        target_dir.parent.mkdir(exist_ok=True)
        with process_lock(target_dir.parent / ".lock"):
            if (target_dir / INFO_FILE).is_file():  # another process has converted it
                return
            with new_directory(target_dir) as partial:
                write(model, partial)
    except OSError as error:
        reason = message(
            "{parent} cannot be written: {strerror}",
            parent=target_dir.parent,
            strerror=error.strerror or error,
        )
        hint = message(
            "free disk space, set ATTENDO_CACHE to another folder, or {native}",
            native=USE_NATIVE_HINT,
        )
        raise AttendoError(reason, hint=hint) from error


def temporary_cache_dir() -> Path | None:
    """Return a folder for when the cache cannot be written; None if it belongs to someone else.

    A shared folder could have been made by another user, with another model in it.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    folder = Path(tempfile.gettempdir()) / f"attendo-{user}"
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return folder
    except OSError:
        return None
    is_own = not hasattr(os, "getuid") or status.st_uid == os.getuid()
    is_private = stat.S_ISDIR(status.st_mode) and not status.st_mode & 0o022
    return folder if is_own and is_private else None


def remove_old_conversions(root: Path, *, max_bytes: int = MAX_CACHE_BYTES) -> None:
    """Remove the least recently used conversions that do not fit; the newest ones are kept."""
    try:
        with process_lock(root / ".lock"):
            info_files = [one / INFO_FILE for one in root.iterdir() if (one / INFO_FILE).is_file()]
            newest_first = sorted(info_files, key=lambda one: one.stat().st_mtime, reverse=True)
            size = 0
            for rank, info_file in enumerate(newest_first):
                size += sum(one.stat().st_size for one in info_file.parent.iterdir())
                if rank >= MIN_CONVERSIONS and size > max_bytes:
                    shutil.rmtree(info_file.parent, ignore_errors=True)
                    _log.info("removed an old conversion: %s", info_file.parent)
    except OSError as error:
        _log.info("%s cannot be cleaned: %s", root, error.strerror)


def _unsupported_error(kind: type[ConfigError], reasons: list[str]) -> ConfigError:
    listing = join_messages("\n  - ", ["", *reasons])
    reason = message("CTranslate2 cannot run this model{listing}", listing=listing)
    return kind(reason, hint=USE_NATIVE_HINT, reasons=reasons)
