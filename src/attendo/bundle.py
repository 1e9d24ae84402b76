"""The model folder: weights (safetensors), config and tokenizer. Nothing in it can run code.

`bundle.json` has the version of the format, the kind and options of the model, and its origin;
`model.safetensors` has each parameter once; `tokenizer.*` turns text into ids. A time-series model
has `series.json` instead of the tokenizer: columns, normalization and label names.

Only loading a model imports a tensor library: a wrong folder is reported at once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from safetensors import SafetensorError

from attendo.architectures.registry import STORED_KINDS, get_model_kind
from attendo.core.device import require_torch
from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.message import message
from attendo.core.run_folder import (
    CHECKPOINT_OPTIMIZER_FILE,
    CheckpointFolder,
    ModelFolder,
)
from attendo.core.run_folder import MODEL_INDEX_FILE as INDEX_FILE
from attendo.core.run_folder import MODEL_WEIGHTS_FILE as WEIGHTS_FILE
from attendo.core.shipped_models import raise_if_not_shipped
from attendo.core.version import __version__
from attendo.text.tokenizer import PAD_ID, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch
    from torch import Tensor, nn

    from attendo.architectures.registry import InputType, Model

FORMAT_VERSION = 3
"""2 added imported models, whose tokenizer has a separate vocabulary, 3 weights in int8; older ones
can still be loaded."""
LANGUAGE_MODEL_TASK, MASKED_LM_TASK = "language", "mask"
"""The value of `task` in the folder of a language model and of a masked language model."""
EMA_PREFIX = "ema."
"""Begins the names of the averaged weights in a checkpoint's optimizer state."""


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


OTHER_INPUT_ERRORS: dict[InputType, tuple[str, str]] = {
    "text": ("{path} is a text model", "use attendo translate or attendo.Translator"),
    "series": ("{path} is a time-series model", "use attendo forecast or attendo.Forecaster"),
}
"""The reason and the hint where a model of another input type is needed."""


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
    weights: dict[str, Tensor] | None = None,
) -> None:
    """Write a model folder atomically; an older one of the same path is replaced.

    Files that the user has added to the older one are kept.

    `codec` is the model's tokenizer, or its codec of series. `weights` are those of the model in
    another precision (`attendo.core.quantization`).
    """
    from attendo.core.files import new_directory, sync_directory, write_tensors
    from attendo.core.run_files import copy_user_files

    backup = directory.with_name(f".{directory.name}.older")
    staging = directory.with_name(f".{directory.name}.fresh")
    _remove(staging)  # left by a process that was killed before the last rename
    try:
        with new_directory(staging) as partial:
            copy_user_files(directory, partial)
            write_tensors(partial / WEIGHTS_FILE, weights or get_weights(model))
            save_without_weights(partial, model, codec, about=about)
    except OSError as error:
        from attendo.core.os_errors import write_error_hint

        reason = message(
            "{path} could not be written: {detail}", path=directory, detail=error.strerror or error
        )
        raise AttendoError(reason, hint=write_error_hint(error)) from error
    _remove(backup)
    if directory.exists():
        directory.rename(backup)
    staging.rename(directory)
    sync_directory(directory.parent)
    _remove(backup)


def save_without_weights(
    directory: Path, model: Model, codec: SupportsSave, *, about: dict[str, Any] | None = None
) -> None:
    """Write what makes a folder with weights, such as a checkpoint, a model folder."""
    index = {
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "kind": model.kind,
        "config": model.config.model_dump(mode="json"),
        "about": about or {},
    }
    codec.save(directory)
    text = json.dumps(index, indent=2, ensure_ascii=False)
    (directory / INDEX_FILE).write_text(text + "\n", encoding="utf-8")


def load_bundle(directory: str | Path, *, device: torch.device | str = "cpu") -> Bundle:
    """Load the folder of a text model; raise an error unless model and tokenizer match.

    Of a run that is not finished, load the best checkpoint, with a warning.
    """
    path, index = open_bundle(directory, "text")
    tokenizer = Tokenizer.load(path)
    model = load_model(path, index)
    check_vocabulary_sizes(path, tokenizer, (model.config.vocab_size, model.tgt_vocab_size))
    return Bundle(model.to(device).eval(), tokenizer, index["about"])


def check_vocabulary_sizes(path: Path, tokenizer: Tokenizer, sizes: tuple[int, int]) -> None:
    """Raise an error unless a model has the vocabularies of a tokenizer."""
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
    """Raise an error for a language model or a masked language model, which cannot translate."""
    if is_language_model(about):
        reason = message("{path} is a language model: it cannot translate", path=name)
        raise InputError(reason, hint="use attendo generate")
    if about.get("task") == MASKED_LM_TASK:
        reason = message("{path} is a masked language model: it cannot translate", path=name)
        raise InputError(reason, hint="use attendo fill, with ___ for each missing word")


def open_bundle(directory: str | Path, expected: InputType) -> tuple[Path, dict[str, Any]]:
    """Return the path and index of a model folder; raise an error for another input type."""
    path = find_bundle(directory)
    index = _read_index(path)
    warn_if_unfinished(directory)
    actual = _input_type(index)
    if actual != expected:
        reason, hint = OTHER_INPUT_ERRORS[actual]
        raise InputError(message(reason, path=path), hint=hint)
    return path, index


def load_model(path: Path, index: dict[str, Any]) -> Model:
    """Load the model of a folder on the CPU."""
    require_torch()
    import torch

    from attendo.model.initialization import no_init_weights

    with no_init_weights():
        model = STORED_KINDS[index["kind"]].model_class(**index["config"])
    folder = ModelFolder(path)
    try:
        weights = read_weights(folder, framework="pt")
    except (OSError, SafetensorError) as error:
        reason = message("{path} cannot be read: {detail}", path=folder.weights_path, detail=error)
        raise InputError(reason, hint="copy the model folder again") from None
    if any(weight.dtype == torch.int8 for weight in weights.values()):
        from attendo.core.quantization import restore_weights

        weights = restore_weights(weights)
    # A copy: the tensors of a safetensors file are views of a memory map, which are not aligned (so
    # that products differ in the last bits) and change when the file is overwritten.
    set_weights(model, weights, name=str(path))
    return model


def read_weights(folder: ModelFolder, *, framework: Literal["pt", "np"]) -> dict[str, Any]:
    """Return the stored weights of a model folder, as tensors or as NumPy arrays.

    Of a checkpoint they are the moving average, if the run computes one.
    """
    if folder.checkpoint.exists():
        averaged = _read_averaged_weights(folder.checkpoint, framework)
        if averaged:
            return averaged
    if framework == "np":
        from safetensors.numpy import load_file as load_arrays

        return dict(load_arrays(folder.weights_path))
    from safetensors.torch import load_file

    return dict(load_file(folder.weights_path))


def _read_averaged_weights(checkpoint: CheckpointFolder, framework: str) -> dict[str, Any]:
    """Return the moving average of the weights of a checkpoint; none if there is none."""
    from safetensors import safe_open

    from attendo.core.files import checksum

    for name, expected in checkpoint.read_index().get("files", {}).items():
        if checksum(checkpoint.path / name) != expected:
            raise InputError(
                message("{path} is damaged: it does not match its checksums", path=checkpoint.path),
                hint="delete this folder; the previous checkpoint is used",
            )
    with safe_open(checkpoint.path / CHECKPOINT_OPTIMIZER_FILE, framework=framework) as state:
        names = [name for name in state.keys() if name.startswith(EMA_PREFIX)]  # noqa: SIM118
        return {name.removeprefix(EMA_PREFIX): state.get_tensor(name) for name in names}


def find_bundle(directory: str | Path) -> Path:
    """Return the model folder, which may be given by its run folder."""
    return ModelFolder.find(directory).path


def warn_if_unfinished(directory: str | Path) -> None:
    """Log which checkpoint stands for the model of a run that is not finished."""
    found = ModelFolder.find(directory)
    if found.path != Path(directory) and found.checkpoint.exists():
        from attendo.core.unfinished_run import warn_about_checkpoint

        warn_about_checkpoint(directory, found.checkpoint)


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
    raise_if_not_shipped(path)
    if not (path / INDEX_FILE).is_file():
        from attendo.core.unfinished_run import raise_if_unfinished

        raise_if_unfinished(path)
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
