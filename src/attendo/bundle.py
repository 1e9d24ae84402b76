"""The model folder: weights (safetensors), config and tokenizer. Nothing in it can run code.

`bundle.json` has the version of the format, the kind and options of the model, and its origin;
`model.safetensors` has each parameter once; `tokenizer.*` turns text into ids. A time-series model
has `series.json` instead of the tokenizer: columns, normalization and label names.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from safetensors import SafetensorError
from safetensors.torch import load_file

from attendo.architectures.registry import STORED_KINDS, get_model_kind
from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.files import new_directory, sync_directory, write_tensors
from attendo.core.message import message
from attendo.core.run_folder import MODEL_INDEX_FILE as INDEX_FILE
from attendo.core.run_folder import MODEL_WEIGHTS_FILE as WEIGHTS_FILE
from attendo.core.run_folder import ModelFolder
from attendo.core.version import __version__
from attendo.text.tokenizer import PAD_ID, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import torch
    from torch import Tensor, nn

    from attendo.architectures.registry import InputType, Model

FORMAT_VERSION = 2
"""2 added imported models, whose tokenizer has a separate vocabulary; 1 can still be loaded."""
LANGUAGE_MODEL_TASK = "language"
"""The value of `task` in a language model's folder."""


class Bundle(NamedTuple):
    """A model with the tokenizer that belongs to it."""

    model: Model
    tokenizer: Tokenizer
    about: dict[str, Any]
    """What was saved with it: languages, training, scores."""


class SupportsSave(Protocol):
    """A tokenizer or a codec of series, saved together with the weights."""

    def save(self, directory: Path) -> None:
        """Write it into a model folder."""
        ...


USAGE_HINTS: dict[InputType, str] = {
    "text": "a text model: use attendo translate or attendo.Translator",
    "series": "a time-series model: use attendo forecast or attendo.Forecaster",
}


def build_model(kind: str, options: dict[str, Any], tokenizer: Tokenizer) -> Model:
    """Return a new model for a tokenizer."""
    model_class = get_model_kind(kind).model_class
    if tokenizer.is_shared:
        return model_class(tokenizer.src_vocab_size, pad_id=PAD_ID, **options)
    tied = {"tie_embeddings": "decoder"} | options
    return model_class(
        tokenizer.src_vocab_size, tgt_vocab_size=tokenizer.tgt_vocab_size, pad_id=PAD_ID, **tied
    )


def save_bundle(
    directory: Path,
    model: Model,
    codec: SupportsSave,
    *,
    about: dict[str, Any] | None = None,
) -> None:
    """Write a model folder atomically; an older one of the same path is replaced.

    `codec` is the model's tokenizer, or its codec of series.
    """
    index = {
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "kind": model.kind,
        "config": model.config.model_dump(mode="json"),
        "about": about or {},
    }
    backup = directory.with_name(f".{directory.name}.older")
    staging = directory.with_name(f".{directory.name}.fresh")
    _remove(staging)  # left by a process that was killed before the last rename
    try:
        with new_directory(staging) as partial:
            write_tensors(partial / WEIGHTS_FILE, get_weights(model))
            codec.save(partial)
            text = json.dumps(index, indent=2, ensure_ascii=False)
            (partial / INDEX_FILE).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        reason = message(
            "{path} could not be written: {detail}", path=directory, detail=error.strerror or error
        )
        raise AttendoError(
            reason, hint="free disk space, then run the same command again"
        ) from error
    _remove(backup)
    if directory.exists():
        directory.rename(backup)
    staging.rename(directory)
    sync_directory(directory.parent)
    _remove(backup)


def load_bundle(directory: str | Path, *, device: torch.device | str = "cpu") -> Bundle:
    """Load the folder of a text model; raise an error unless model and tokenizer match."""
    path, index = open_bundle(directory, "text")
    tokenizer = Tokenizer.load(path)
    model = load_model(path, index)
    sizes = (model.config.vocab_size, model.tgt_vocab_size)
    if sizes != (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size):
        raise InputError(
            message(
                "{path}: the tokenizer has {src} and {tgt} tokens, the model {model_src} and "
                "{model_tgt}",
                path=path,
                src=tokenizer.src_vocab_size,
                tgt=tokenizer.tgt_vocab_size,
                model_src=sizes[0],
                model_tgt=sizes[1],
            ),
            hint="copy the model folder again",
        )
    return Bundle(model.to(device).eval(), tokenizer, index["about"])


def read_input_type(directory: str | Path) -> InputType:
    """Return what the model of a folder reads, without loading its weights."""
    return _input_type(_read_index(find_bundle(directory)))


def read_about(directory: str | Path) -> dict[str, Any]:
    """Return what was saved with a model, without loading the model."""
    about: dict[str, Any] = _read_index(find_bundle(directory))["about"]
    return about


def _input_type(index: dict[str, Any]) -> InputType:
    return STORED_KINDS[index["kind"]].input_type


def is_language_model(about: Mapping[str, Any]) -> bool:
    """Return whether a model continues texts rather than translating them, by its `about`.

    >>> is_language_model({"task": "language"}), is_language_model({"src_lang": "ko"})
    (True, False)
    """
    return about.get("task") == LANGUAGE_MODEL_TASK


def is_language_model_folder(directory: str | Path) -> bool:
    """Return whether a folder has a language model, without loading the model."""
    return is_language_model(read_about(directory))


def raise_if_language_model(about: Mapping[str, Any], name: str | Path) -> None:
    """Raise an error for a language model, which cannot translate."""
    if is_language_model(about):
        reason = message("{path} is a language model: it cannot translate", path=name)
        raise InputError(reason, hint="use attendo generate")


def open_bundle(directory: str | Path, expected: InputType) -> tuple[Path, dict[str, Any]]:
    """Return the path and index of a model folder; raise an error for another input type."""
    path = find_bundle(directory)
    index = _read_index(path)
    actual = _input_type(index)
    if actual != expected:
        reason, hint = USAGE_HINTS[actual].split(": ")
        raise InputError(f"{path} is {reason}", hint=hint)
    return path, index


def load_model(path: Path, index: dict[str, Any]) -> Model:
    """Load the model of a folder on the CPU."""
    from attendo.model.fast.no_init import no_init_weights

    with no_init_weights():
        model = STORED_KINDS[index["kind"]].model_class(**index["config"])
    try:
        weights = load_file(path / WEIGHTS_FILE)
    except (OSError, SafetensorError) as error:
        reason = message("{path} cannot be read: {detail}", path=path / WEIGHTS_FILE, detail=error)
        raise InputError(reason, hint="copy the model folder again") from None
    # A copy: the tensors of a safetensors file are views of a memory map, which are not aligned (so
    # that products differ in the last bits) and change when the file is overwritten.
    set_weights(model, weights, name=str(path))
    return model


def find_bundle(directory: str | Path) -> Path:
    """Return the model folder, which may be given by its run folder."""
    return ModelFolder.find(directory).path


def get_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return each parameter once, shared ones under their first name."""
    return {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}


def set_weights(model: nn.Module, weights: dict[str, Tensor], *, name: str = "the weights") -> None:
    """Copy weights into a model; raise an error unless every parameter is there and fits."""
    import torch

    check_weights(model, weights, name=name)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            parameter.copy_(weights[key])


def check_weights(model: nn.Module, weights: dict[str, Tensor], *, name: str) -> None:
    """Raise an error unless `weights` are the parameters of a model, in their shapes."""
    parameters = dict(model.named_parameters())
    missing = sorted(set(parameters) - set(weights))
    unexpected = sorted(set(weights) - set(parameters))
    mismatched = [
        key for key, p in parameters.items() if key in weights and weights[key].shape != p.shape
    ]
    if missing or unexpected or mismatched:
        parts = {"missing": missing, "unknown": unexpected, "of another shape": mismatched}
        summary = "; ".join(
            f"{len(keys)} {problem} ({keys[0]} ...)" for problem, keys in parts.items() if keys
        )
        raise InputError(
            message("{path} does not match its config: {problems}", path=name, problems=summary),
            hint="copy the folder again",
        )


def _read_index(path: Path) -> dict[str, Any]:
    hint = "give a folder that attendo train wrote (OUT/model), or OUT itself"
    if not (path / INDEX_FILE).is_file():
        raise InputError(
            message(
                "{path} is not a model folder: {index} is missing", path=path, index=INDEX_FILE
            ),
            hint=hint,
        )
    try:
        index: dict[str, Any] = json.loads((path / INDEX_FILE).read_text(encoding="utf-8"))
        version, kind = int(index["format_version"]), index["kind"]
        dict(**index["config"]), dict(**index["about"])
    except (ValueError, KeyError, TypeError):
        raise InputError(message("{path} is damaged", path=path / INDEX_FILE), hint=hint) from None
    if version > FORMAT_VERSION:
        raise InputError(
            message(
                "{path} has format {version}; attendo {current} supports formats up to {known}",
                path=path,
                version=version,
                current=__version__,
                known=FORMAT_VERSION,
            ),
            hint="update Attendo",
        )
    if kind not in STORED_KINDS:
        reason = message("{path} has a model of unknown kind '{kind}'", path=path, kind=kind)
        raise InputError(
            reason,
            hint=message("update Attendo, or: {detail}", detail=suggest(str(kind), STORED_KINDS)),
        )
    return index


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
