"""Loads model folders with the engine that decodes them: PyTorch, CTranslate2 or ONNX.

A folder that was exported for CTranslate2 or ONNX is decoded by its own engine, without PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from attendo.bundle import load_bundle
from attendo.core.device import has_torch, resolve_device, resolve_device_type
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.message import message
from attendo.core.run_folder import export_engine
from attendo.text.tokenizer import Tokenizer
from attendo.translator.backends.base import EngineName, NativePrecision

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from attendo.core.protocols import Seq2SeqModel
    from attendo.translator.backends.base import Backend
    from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.onnx.backend import OnnxBackend

DEFAULT_ENGINES = ("attendo", "auto")
"""Names that leave the engine of an export to its format."""


class LoadedModel(NamedTuple):
    """What a translator is made of."""

    model: Seq2SeqModel[Any]
    """A model, or an ensemble."""
    tokenizer: Tokenizer
    about: Mapping[str, Any]
    backend: Backend


def load_models(
    directory: str | Path,
    *more: str | Path,
    engine: str,
    device: torch.device | str | None,
    precision: str,
) -> LoadedModel:
    """Load a model folder or an export, or several folders as an ensemble.

    The arguments are those of `attendo.translator.translator.Translator.load`.
    """
    check_engine(engine)
    exported = load_export(directory, *more, engine=engine, device=device, precision=precision)
    if exported is not None:
        return _with_tokenizer(exported)
    if engine == "attendo" and not has_torch():
        from attendo.core.logs import get_logger

        get_logger(__name__).info("PyTorch is not installed: CTranslate2 decodes %s", directory)
        engine = "ctranslate2"
    if engine == "attendo" and precision not in get_args(NativePrecision):
        hint = "engine 'attendo' has float32 and bfloat16; 'ctranslate2' has int8 and float32"
        raise ConfigError(
            message("engine 'attendo' has no precision '{name}'", name=precision), hint=hint
        )
    if engine == "ctranslate2" or (engine != "attendo" and precision != "bfloat16"):
        from attendo.translator.backends.ctranslate2.conversion_cache import load_ctranslate2

        is_free = device is None and engine == "ctranslate2"
        converted = load_ctranslate2(
            directory,
            *more,
            engine=cast("EngineName", engine),  # check_engine has checked it
            device_type=None if is_free else resolve_device_type(device),
            precision=cast("Precision", precision),  # load_ctranslate2 checks it
        )
        if converted is not None:
            return _with_tokenizer(converted)
    return _load_native(directory, *more, device=device, precision=precision)


def _with_tokenizer(backend: CTranslate2Backend | OnnxBackend) -> LoadedModel:
    tokenizer = Tokenizer.load(backend.folder)
    return LoadedModel(backend.model, tokenizer, backend.info["about"], backend)


def _load_native(
    directory: str | Path, *more: str | Path, device: torch.device | str | None, precision: str
) -> LoadedModel:
    """Load one model or an ensemble with PyTorch."""
    chosen_device = resolve_device(device)
    first, *others = (load_bundle(path, device=chosen_device) for path in (directory, *more))
    for path, bundle in zip(more, others, strict=True):
        if bundle.tokenizer.fingerprint != first.tokenizer.fingerprint:
            raise InputError(
                message(
                    "{path} and {directory} have different tokenizers",
                    path=path,
                    directory=directory,
                ),
                hint="the models of an ensemble must be trained on the same prepared data",
            )
    model: Seq2SeqModel[Any] = first.model
    if others:
        from attendo.decoding.ensemble import Ensemble

        model = Ensemble([model, *(one.model for one in others)])
    from attendo.translator.backends.pytorch import BFloat16Backend, PyTorchBackend

    backend = (
        BFloat16Backend(model)
        if precision == "bfloat16"
        else PyTorchBackend(model, is_exact=precision == "float32")
    )
    return LoadedModel(model, first.tokenizer, first.about, backend)


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
        reasons.append(
            message(
                "engine '{engine}': the folder was exported for '{format}'",
                engine=engine,
                format=found,
            )
        )
    if more:
        reasons.append(message("ensemble: an exported model is decoded alone"))
    if device is not None and not str(device).startswith("cpu"):
        reasons.append(
            message("device '{device}': exported models are decoded on the CPU", device=device)
        )
    if found == "onnx" and precision not in ("auto", "float32"):
        reasons.append(
            message("precision '{precision}': the graphs compute in float32", precision=precision)
        )
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
