"""A model folder in the form of CTranslate2, made once: what it holds is its name in the cache.

The files under `cache_dir()/ctranslate2` can be deleted at any time; they are made again.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, get_args

from attendo.bundle import INDEX, load_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError, suggest
from attendo.core.files import cache_dir, new_directory
from attendo.core.logs import get_logger
from attendo.data.content_key import content_key
from attendo.data.process_lock import hold_lock
from attendo.translator.ctranslate2_engine import CTranslate2Engine
from attendo.translator.ctranslate2_runner import check_precision
from attendo.translator.ctranslate2_spec import (
    FORMAT_VERSION,
    INFO_FILE,
    REMEDY,
    require,
    why_not,
    write,
)
from attendo.translator.engine import Engine

if TYPE_CHECKING:
    import torch

    from attendo.translator.ctranslate2_runner import Precision

EngineName = Literal["attendo", "ctranslate2", "auto"]
_log = get_logger(__name__)


def open_converted(
    directory: str | Path,
    *more: str | Path,
    engine: EngineName,
    device: torch.device | None,
    precision: Precision,
) -> CTranslate2Engine | None:
    """Open a model by CTranslate2; "auto" may come to None, and our own engine decodes.

    A `device` is one that was asked for, or that our own engine would take.
    """
    if engine not in get_args(EngineName):
        remedy = suggest(str(engine), get_args(EngineName))
        raise ConfigError(f"no engine '{engine}'", remedy=remedy)
    check_precision(precision)
    reasons = ["an ensemble: CTranslate2 decodes with one model"] if more else []
    if device is not None and device.type != "cpu":
        reasons.append(f"device '{device}': it is for the CPU here")
    try:
        if reasons:
            _refuse(reasons)
        place = convert_once(directory)
        return CTranslate2Engine(
            place, precision=precision, open_own=lambda: Engine(load_bundle(directory).model)
        )
    except AttendoError as error:
        if engine != "auto" or isinstance(error, InputError):
            raise
        told = " ".join(error.reason.split())
        _log.info("our own engine decodes %s: %s", directory, told)
        return None


def convert_once(directory: str | Path) -> Path:
    """Give the folder of CTranslate2 for a model folder; it is made where there is none yet."""
    require()
    path = Path(directory)
    if not (path / INDEX).is_file() and (path / "model" / INDEX).is_file():
        path = path / "model"  # the folder of a run
    if not (path / INDEX).is_file():
        load_bundle(path)  # says what is wrong
    files = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
    names = [one.name for one in files]
    key = content_key(files, {"format_version": FORMAT_VERSION, "names": names})
    place = cache_dir() / "ctranslate2" / key[:32]
    if not (place / INFO_FILE).is_file():
        _convert(path, place)
    return place


def _convert(path: Path, place: Path) -> None:
    bundle = load_bundle(path)
    if reasons := why_not(bundle):
        _refuse(reasons)
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with hold_lock(place.parent / ".lock"):
            if (place / INFO_FILE).is_file():  # another process was quicker
                return
            with new_directory(place) as partial:
                write(bundle, partial)
    except OSError as error:
        reason = f"{place.parent} cannot be written: {error.strerror or error}"
        remedy = f"make room, set ATTENDO_CACHE to another folder, or {REMEDY}"
        raise AttendoError(reason, remedy=remedy) from error
    _log.info("%s is converted for CTranslate2", path)


def _refuse(reasons: list[str]) -> NoReturn:
    listing = "".join(f"\n  - {reason}" for reason in reasons)
    told = f"CTranslate2 cannot run this model{listing}"
    raise ConfigError(told, remedy=REMEDY, reasons=reasons)
