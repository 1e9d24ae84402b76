"""The one door out: a model folder for another library, checked against ours.

Every reason why a model cannot be expressed is gathered before anything is written; the folder then
appears whole or not at all; and the library itself, where it is installed, is asked whether it
computes the same (`attendo.interop.parity`).
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.bundle import load_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
from attendo.core.files import new_directory
from attendo.core.message import message
from attendo.interop.parity import compare

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.bundle import Bundle
    from attendo.decoding.options import LengthNorm
    from attendo.interop.parity import Parity


class Format(NamedTuple):
    """Where a format is written, and how its library ranks hypotheses in the comparison."""

    module: str
    length_norm: LengthNorm = "paper"
    quantizations: tuple[str, ...] = ()


FORMATS = {
    "hf-marian": Format("attendo.interop.marian.model_folder", "power"),
    "ctranslate2": Format(
        "attendo.interop.ctranslate2", quantizations=("int8", "int8_bfloat16", "float16")
    ),
    "onnx": Format("attendo.interop.onnx.export"),
}


@dataclass(frozen=True)
class ExportReport:
    """What was written, and whether it is the same model."""

    format: str
    folder: Path
    quantization: str | None
    num_bytes: int
    parity: Parity | None
    unchecked: str | None = None
    """Why nothing was compared, where nothing was."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "format": self.format,
            "folder": str(self.folder),
            "quantization": self.quantization,
            "num_bytes": self.num_bytes,
            "parity": None if self.parity is None else self.parity.to_dict(),
            "unchecked": self.unchecked,
        }


def export(
    model_dir: str | Path,
    *,
    to: str,
    out: str | Path,
    quantization: str | None = None,
    sentences: Sequence[str] | None = None,
) -> ExportReport:
    """Write a model folder for another library, and compare the two.

    Args:
        model_dir: of the model, or of the run that made it.
        to: hf-marian, ctranslate2 or onnx.
        out: a new folder.
        quantization: for ctranslate2: int8, int8_bfloat16 or float16; float32 without.
        sentences: sources for the comparison; without them some are made up.

    """
    if to not in FORMATS:
        raise ConfigError(f"no format '{to}'", hint=suggest(to, FORMATS))
    folder, known = Path(out), FORMATS[to]
    if folder.exists():
        raise InputError(message("{path} exists", path=folder), hint="name a new folder")
    bundle = load_bundle(model_dir)
    module = import_module(known.module)
    _check_supported(to, quantization, module.unsupported_reasons(bundle))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with new_directory(folder) as partial:
            module.write(bundle, partial, quantization=quantization)
    except OSError as error:
        reason = message(
            "{path} could not be written: {detail}", path=folder, detail=error.strerror or error
        )
        raise AttendoError(reason, hint="check the place and its room") from error
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    parity, unchecked = _check_parity(bundle, to, folder, sentences)
    return ExportReport(to, folder, quantization, size, parity, unchecked)


def _check_supported(to: str, quantization: str | None, reasons: Sequence[str]) -> None:
    """Raise every reason against an export at once."""
    problems, known = list(reasons), FORMATS[to].quantizations
    if quantization is not None and quantization not in known:
        supported = f"there are {', '.join(known)}" if known else "it holds float32"
        problems.append(f"quantization '{quantization}': {supported}")
    if problems:
        listing = "".join(f"\n  - {reason}" for reason in problems)
        raise ConfigError(f"this model cannot be exported to {to}{listing}", reasons=problems)


def _check_parity(
    bundle: Bundle, to: str, folder: Path, sentences: Sequence[str] | None
) -> tuple[Parity | None, str | None]:
    try:
        reference = import_module(FORMATS[to].module).load_reference(folder)
    except MissingExtraError as error:
        return None, f"not compared: {error.reason} ({error.hint})"
    return compare(bundle, reference, sentences, length_norm=FORMATS[to].length_norm), None
