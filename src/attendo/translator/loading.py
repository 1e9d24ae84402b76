"""Opens folders that were exported for another engine, which decodes them without PyTorch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.core.run_folder import export_engine
from attendo.translator.backends.base import EngineName

if TYPE_CHECKING:
    import torch

    from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.onnx.backend import OnnxBackend

DEFAULT_ENGINES = ("attendo", "auto")
"""Names that leave the engine of an export to its format."""


def check_engine(engine: str) -> None:
    """Raise an error for an unknown engine."""
    if engine not in get_args(EngineName):
        hint = suggest(str(engine), get_args(EngineName))
        raise ConfigError(message("no engine '{engine}'", engine=engine), hint=hint)


def load_export(
    directory: str | Path,
    *more: str | Path,
    engine: str,
    device: torch.device | str | None,
    precision: str,
) -> CTranslate2Backend | OnnxBackend | None:
    """Open an exported folder; None if it is a model folder, which several engines can decode."""
    found = export_engine(directory)
    if found is None:
        if engine == "onnx":
            reason = message("{path} is not an export for ONNX", path=directory)
            raise ConfigError(reason, hint="export the model: attendo export MODEL --to onnx")
        return None
    reasons = []
    if engine not in (*DEFAULT_ENGINES, found):
        reasons.append(f"engine '{engine}': the folder was exported for '{found}'")
    if more:
        reasons.append("ensemble: an exported model is decoded alone")
    if device is not None and not str(device).startswith("cpu"):
        reasons.append(f"device '{device}': exported models are decoded on the CPU")
    if found == "onnx" and precision not in ("auto", "float32"):
        reasons.append(f"precision '{precision}': the graphs compute in float32")
    if reasons:
        raise ConfigError.from_reasons(str(directory), reasons)
    if found == "onnx":
        from attendo.translator.backends.onnx.backend import OnnxBackend

        return OnnxBackend(Path(directory))
    from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend

    chosen = cast("Precision", precision)  # TranslatorPool checks it
    return CTranslate2Backend(Path(directory), precision=chosen, load_native=None)


def read_export_about(directory: str | Path) -> dict[str, Any]:
    """Return what was saved with an exported model, without loading it."""
    folder = Path(directory)
    if export_engine(folder) == "onnx":
        from attendo.translator.backends.onnx.session import read_info

        return dict(read_info(folder)["about"])
    from attendo.translator.backends.ctranslate2.converter import read_info as read_ct2_info

    return dict(read_ct2_info(folder)["about"])
