"""The model folder: weights (safetensors), config and tokenizer. Nothing in it can run code.

`bundle.json` tells the format's version, the kind and options of the model and where it comes from;
`model.safetensors` holds each parameter once, `tokenizer.*` what turns text into ids. A model of
series has `series.json` in the tokenizer's place: columns, normalisation and names of labels.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, cast

from safetensors import SafetensorError
from safetensors.torch import load_file

from attendo.baselines.factory import KINDS, Model, find_kind
from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.files import new_directory, sync_directory, write_tensors
from attendo.core.version import __version__
from attendo.data.tokenizer import PAD_ID, Tokenizer
from attendo.model.series import SeriesTransformer

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from attendo.data.series.codec import SeriesCodec

FORMAT_VERSION = 2
"""2: models from elsewhere, whose tokenizer has a vocabulary of its own; 1 still loads."""
INDEX, WEIGHTS = "bundle.json", "model.safetensors"
BUILDS: dict[str, type[Model]] = {
    **{name: kind.build for name, kind in KINDS.items()},
    SeriesTransformer.kind: SeriesTransformer,
}
"""What a folder may hold: every kind that is chosen by name, and that of series."""


class Bundle(NamedTuple):
    """A model with the tokenizer that belongs to it."""

    model: Model
    tokenizer: Tokenizer
    about: dict[str, Any]
    """Languages, training, scores: whatever was saved with it."""


class SeriesBundle(NamedTuple):
    """A model of series with the codec that belongs to it."""

    model: SeriesTransformer
    codec: SeriesCodec
    about: dict[str, Any]


class Companion(Protocol):
    """What lies beside the weights: it knows what the model's numbers mean."""

    def save(self, directory: Path) -> None:
        """Write it into a model folder."""
        ...


Source = Literal["text", "series"]
"""What a model reads; its class tells it by `source`, and reads text where it does not."""
VERBS: dict[Source, str] = {
    "text": "a model of text: attendo translate and attendo.Translator read it",
    "series": "a model of series: attendo forecast and attendo.Forecaster read it",
}


def build_model(kind: str, options: dict[str, Any], tokenizer: Tokenizer) -> Model:
    """Make a new model that fits a tokenizer."""
    build = find_kind(kind).build
    if tokenizer.is_shared:
        return build(tokenizer.src_vocab_size, pad_id=PAD_ID, **options)
    tied = {"tie_embeddings": "decoder"} | options
    return build(
        tokenizer.src_vocab_size, tgt_vocab_size=tokenizer.tgt_vocab_size, pad_id=PAD_ID, **tied
    )


def build_series_model(options: dict[str, Any], codec: SeriesCodec) -> SeriesTransformer:
    """Make a new model that fits a codec."""
    return SeriesTransformer(**{**options, **_series_sizes(codec), "pad_id": PAD_ID})


def _series_sizes(codec: SeriesCodec) -> dict[str, int]:
    return {
        "vocab_size": codec.vocab_size,
        "num_features": len(codec.features),
        "num_targets": len(codec.target_mean),
    }


def save_bundle(
    directory: Path,
    model: Model,
    beside: Companion,
    *,
    about: dict[str, Any] | None = None,
) -> None:
    """Write a model folder, whole or not at all; an older one in its place goes only then.

    Beside the weights lies a model's tokenizer, or its codec of series.
    """
    index = {
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "kind": model.kind,
        "config": model.config.model_dump(mode="json"),
        "about": about or {},
    }
    older = directory.with_name(f".{directory.name}.older")
    fresh = directory.with_name(f".{directory.name}.fresh")
    _remove(fresh)  # of a process that was killed before the last rename
    try:
        with new_directory(fresh) as partial:
            write_tensors(partial / WEIGHTS, get_weights(model))
            beside.save(partial)
            text = json.dumps(index, indent=2, ensure_ascii=False)
            (partial / INDEX).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        reason = f"{directory} could not be written: {error.strerror or error}"
        raise AttendoError(reason, remedy="make room, then run the same command again") from error
    _remove(older)
    if directory.exists():
        directory.rename(older)
    fresh.rename(directory)
    sync_directory(directory.parent)
    _remove(older)


def load_bundle(directory: str | Path, *, device: torch.device | str = "cpu") -> Bundle:
    """Read the folder of a model of text and check that everything in it belongs together."""
    path, index = _open(directory, "text")
    tokenizer = Tokenizer.load(path)
    model = _load_model(path, index)
    sizes = (model.config.vocab_size, model.tgt_vocab_size)
    if sizes != (tokenizer.src_vocab_size, tokenizer.tgt_vocab_size):
        raise InputError(
            f"{path}: the tokenizer has {tokenizer.src_vocab_size} and {tokenizer.tgt_vocab_size} "
            f"pieces, the model {sizes[0]} and {sizes[1]}",
            remedy="copy the model folder again",
        )
    return Bundle(model.to(device).eval(), tokenizer, index["about"])


def load_series_bundle(
    directory: str | Path, *, device: torch.device | str = "cpu"
) -> SeriesBundle:
    """Read the folder of a model of series and check that everything in it belongs together."""
    from attendo.data.series.codec import SeriesCodec

    path, index = _open(directory, "series")
    codec = SeriesCodec.load(path)
    model = cast("SeriesTransformer", _load_model(path, index))
    there = {name: getattr(model.config, name) for name in _series_sizes(codec)}
    if there != _series_sizes(codec):
        listing = ", ".join(
            f"{name} {size} and {there[name]}" for name, size in _series_sizes(codec).items()
        )
        raise InputError(
            f"{path}: the codec and the model do not fit: {listing}",
            remedy="copy the model folder again",
        )
    return SeriesBundle(model.to(device).eval(), codec, index["about"])


def find_source(directory: str | Path) -> Source:
    """Tell what the model of a folder reads, without its weights."""
    return _source(_read_index(find_bundle(directory)))


def read_about(directory: str | Path) -> dict[str, Any]:
    """Read what was saved with a model, and nothing else of it."""
    about: dict[str, Any] = _read_index(find_bundle(directory))["about"]
    return about


def _source(index: dict[str, Any]) -> Source:
    return getattr(BUILDS[index["kind"]], "source", "text")


def _open(directory: str | Path, wanted: Source) -> tuple[Path, dict[str, Any]]:
    """Read the index of a model folder; refuse a model of the other sort."""
    path = find_bundle(directory)
    index = _read_index(path)
    found = _source(index)
    if found != wanted:
        reason, remedy = VERBS[found].split(": ")
        raise InputError(f"{path} holds {reason}", remedy=remedy)
    return path, index


def _load_model(path: Path, index: dict[str, Any]) -> Model:
    model = BUILDS[index["kind"]](**index["config"])
    try:
        weights = load_file(path / WEIGHTS)
    except (OSError, SafetensorError) as error:
        reason = f"{path / WEIGHTS} cannot be read: {error}"
        raise InputError(reason, remedy="copy the model folder again") from None
    set_weights(model, weights, name=str(path))
    return model


def choose_device(device: torch.device | str | None) -> torch.device:
    """Take a GPU where there is one; refuse what is not there before anything is read."""
    import torch

    try:
        chosen = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        torch.zeros(1, device=chosen)
    except (AssertionError, RuntimeError, NotImplementedError):
        remedy = "take cpu, or leave it out; attendo doctor --tensors tells of GPUs"
        raise InputError(f"no device '{device}' here", remedy=remedy) from None
    return chosen


def find_bundle(directory: str | Path) -> Path:
    """Give the model folder itself, where that of a run is named."""
    path = Path(directory)
    is_run = not (path / INDEX).is_file() and (path / "model" / INDEX).is_file()
    return path / "model" if is_run else path


def get_weights(model: nn.Module) -> dict[str, Tensor]:
    """Give each parameter once, shared ones under their first name."""
    return {name: p.detach().cpu().contiguous() for name, p in model.named_parameters()}


def set_weights(model: nn.Module, weights: dict[str, Tensor], *, name: str = "the weights") -> None:
    """Fill a model; every parameter must be there and fit."""
    import torch

    parameters = dict(model.named_parameters())
    missing = sorted(set(parameters) - set(weights))
    strange = sorted(set(weights) - set(parameters))
    wrong = [
        key for key, p in parameters.items() if key in weights and weights[key].shape != p.shape
    ]
    if missing or strange or wrong:
        parts = {"missing": missing, "unknown": strange, "of another shape": wrong}
        told = "; ".join(
            f"{len(keys)} {what} ({keys[0]} ...)" for what, keys in parts.items() if keys
        )
        raise InputError(f"{name} does not fit its config: {told}", remedy="copy the folder again")
    with torch.no_grad():
        for key, parameter in parameters.items():
            parameter.copy_(weights[key])


def _read_index(path: Path) -> dict[str, Any]:
    remedy = "give a folder that attendo train wrote (OUT/model), or OUT itself"
    if not (path / INDEX).is_file():
        raise InputError(f"{path} is no model folder: it has no {INDEX}", remedy=remedy)
    try:
        index: dict[str, Any] = json.loads((path / INDEX).read_text(encoding="utf-8"))
        version, kind = int(index["format_version"]), index["kind"]
        dict(**index["config"]), dict(**index["about"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path / INDEX} is damaged", remedy=remedy) from None
    if version > FORMAT_VERSION:
        raise InputError(
            f"{path} has format {version}; attendo {__version__} knows {FORMAT_VERSION}",
            remedy="update Attendo",
        )
    if kind not in BUILDS:
        reason = f"{path} holds a model of the kind '{kind}'"
        raise InputError(reason, remedy=f"update Attendo, or: {suggest(str(kind), BUILDS)}")
    return index


def _remove(path: Path) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)
