"""Converts model folders to CTranslate2 once, and caches them by their content.

The files under `cache_dir()/ctranslate2` can be deleted at any time; they are created again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NoReturn, get_args

from attendo.bundle import load_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError, suggest
from attendo.core.files import cache_dir, new_directory
from attendo.core.logs import get_logger
from attendo.core.process_lock import process_lock
from attendo.core.run_folder import ModelFolder
from attendo.data.fingerprint import content_fingerprint
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.ctranslate2.converter import (
    FORMAT_VERSION,
    INFO_FILE,
    USE_NATIVE_HINT,
    import_ctranslate2,
    unsupported_reasons,
    write,
)
from attendo.translator.backends.ctranslate2.loader import check_precision
from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from pathlib import Path

    import torch

    from attendo.translator.backends.ctranslate2.loader import Precision

EngineName = Literal["attendo", "ctranslate2", "auto"]
_log = get_logger(__name__)


def load_ctranslate2(
    directory: str | Path,
    *more: str | Path,
    engine: EngineName,
    device: torch.device | None,
    precision: Precision,
) -> CTranslate2Backend | None:
    """Load a model with CTranslate2; with "auto", return None if CTranslate2 cannot run it.

    `device` is the one that was requested, or that PyTorch would use.
    """
    if engine not in get_args(EngineName):
        hint = suggest(str(engine), get_args(EngineName))
        raise ConfigError(f"no engine '{engine}'", hint=hint)
    check_precision(precision)
    reasons = ["ensemble: CTranslate2 decodes with one model"] if more else []
    if device is not None and device.type != "cpu":
        reasons.append(f"device '{device}': CTranslate2 is supported on the CPU only")
    try:
        if reasons:
            _raise_unsupported(reasons)
        converted_dir = cached_conversion(directory)
        return CTranslate2Backend(
            converted_dir,
            precision=precision,
            load_native=lambda: PyTorchBackend(load_bundle(directory).model),
        )
    except AttendoError as error:
        if engine != "auto" or isinstance(error, InputError):
            raise
        reason = " ".join(error.reason.split())
        _log.info("PyTorch decodes %s: %s", directory, reason)
        return None


def cached_conversion(directory: str | Path) -> Path:
    """Return the converted folder of a model folder, converting it if necessary."""
    import_ctranslate2()
    model_folder = ModelFolder.find(directory)
    path = model_folder.path
    if not model_folder.exists():
        load_bundle(path)  # raises the error
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
    names = [one.name for one in files]
    key = content_fingerprint(files, {"format_version": FORMAT_VERSION, "names": names})
    converted_dir = cache_dir() / "ctranslate2" / key[:32]
    if not (converted_dir / INFO_FILE).is_file():
        _convert(path, converted_dir)
    return converted_dir


def _convert(path: Path, target_dir: Path) -> None:
    bundle = load_bundle(path)
    if reasons := unsupported_reasons(bundle):
        _raise_unsupported(reasons)
    try:
        target_dir.parent.mkdir(parents=True, exist_ok=True)
        with process_lock(target_dir.parent / ".lock"):
            if (target_dir / INFO_FILE).is_file():  # another process has converted it
                return
            with new_directory(target_dir) as partial:
                write(bundle, partial)
    except OSError as error:
        reason = f"{target_dir.parent} cannot be written: {error.strerror or error}"
        hint = f"free disk space, set ATTENDO_CACHE to another folder, or {USE_NATIVE_HINT}"
        raise AttendoError(reason, hint=hint) from error
    _log.info("converted %s for CTranslate2", path)


def _raise_unsupported(reasons: list[str]) -> NoReturn:
    listing = "".join(f"\n  - {reason}" for reason in reasons)
    reason = f"CTranslate2 cannot run this model{listing}"
    raise ConfigError(reason, hint=USE_NATIVE_HINT, reasons=reasons)
