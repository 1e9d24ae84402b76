"""Opens a folder that was exported to ONNX: its description, and its two graphs."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.hardware import usable_cores
from attendo.core.message import message
from attendo.core.run_folder import EXPORT_INDEX_FILES
from attendo.core.version import __version__

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

FORMAT_VERSION = 1
INFO_FILE = EXPORT_INDEX_FILES["onnx"]
ENCODER_FILE, DECODER_FILE = "encoder.onnx", "decoder.onnx"
REQUIRED_KEYS = ("start_id", "end_id", "pad_id", "unk_id", "max_positions")
"""The special ids in the order of `SpecialIds`."""


def read_info(folder: Path) -> dict[str, Any]:
    """Read the file `onnx.json` that `attendo export --to onnx` creates."""
    hint = "export the model again"
    try:
        info: dict[str, Any] = json.loads((folder / INFO_FILE).read_text(encoding="utf-8"))
        version = int(info["format_version"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = message(
            "{folder} is not an Attendo ONNX folder: cannot read {info_file} ({error!r})",
            folder=folder,
            info_file=INFO_FILE,
            error=error,
        )
        raise InputError(reason, hint=hint) from None
    if version > FORMAT_VERSION:
        reason = message(
            "{folder} has ONNX format {version}; attendo {attendo_version} reads {format_version}",
            folder=folder,
            version=version,
            attendo_version=__version__,
            format_version=FORMAT_VERSION,
        )
        raise InputError(reason, hint="update Attendo")
    missing = [name for name in REQUIRED_KEYS if name not in info]
    if missing:
        reason = message(
            "{folder} does not contain {names}", folder=folder / INFO_FILE, names=", ".join(missing)
        )
        raise InputError(reason, hint=hint)
    wrong = [
        name
        for name in REQUIRED_KEYS
        if not (isinstance(info[name], int) or (name == "max_positions" and info[name] is None))
    ]
    if wrong:
        reason = message("{path} is damaged: {names}", path=folder / INFO_FILE, names=wrong[0])
        raise InputError(reason, hint=hint)
    info["about"] = _read_about(info)
    return info


def _read_about(info: dict[str, Any]) -> dict[str, Any]:
    """Return what was saved with the model; older exports have only a part of it."""
    about = info.get("about")
    if isinstance(about, dict):
        return about
    return {
        "src_lang": info.get("src_lang"),
        "tgt_lang": info.get("tgt_lang"),
        "max_src_tokens": info.get("max_src_tokens"),
        "num_sentences": info.get("sentences_per_line"),
    }


def open_session(path: Path, *, num_threads: int | None = None) -> Any:
    """Open a graph with ONNX Runtime."""
    runtime = import_optional("onnxruntime")
    errors = import_optional("onnxruntime.capi.onnxruntime_pybind11_state")
    settings = runtime.SessionOptions()
    settings.intra_op_num_threads = num_threads or usable_cores()
    try:
        return runtime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    except (errors.NoSuchFile, errors.InvalidProtobuf, errors.InvalidGraph, errors.Fail) as error:
        reason = message("ONNX Runtime cannot open {path}: {error}", path=path, error=error)
        raise InputError(reason, hint="export the model again") from None


def import_optional(library: str) -> ModuleType:
    """Import an optional library, or name the extra that installs it."""
    try:
        return import_module(library)
    except ModuleNotFoundError:
        extra = "onnx" if library.startswith("onnxruntime") else "interop"
        raise MissingExtraError(library, extra) from None
