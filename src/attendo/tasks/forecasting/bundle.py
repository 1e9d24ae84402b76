"""The model folder of a time series model: weights and codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import load_model, open_bundle
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.text.tokenizer import PAD_ID

if TYPE_CHECKING:
    from pathlib import Path

    import torch


class SeriesBundle(NamedTuple):
    """A time series model and its codec."""

    model: SeriesTransformer
    codec: SeriesCodec
    about: dict[str, Any]


def build_series_model(options: dict[str, Any], codec: SeriesCodec) -> SeriesTransformer:
    """Return a new model that fits a codec."""
    return SeriesTransformer(**{**options, **_series_sizes(codec), "pad_id": PAD_ID})


def _series_sizes(codec: SeriesCodec) -> dict[str, int]:
    return {
        "vocab_size": codec.vocab_size,
        "num_features": len(codec.features),
        "num_targets": len(codec.target_mean),
    }


def load_series_bundle(
    directory: str | Path, *, device: torch.device | str = "cpu"
) -> SeriesBundle:
    """Load the model folder of a time series model, and check that model and codec fit."""
    path, index = open_bundle(directory, "series")
    codec = SeriesCodec.load(path)
    model = cast("SeriesTransformer", load_model(path, index))
    model_sizes = {name: getattr(model.config, name) for name in _series_sizes(codec)}
    if model_sizes != _series_sizes(codec):
        listing = ", ".join(
            f"{name} {size} and {model_sizes[name]}" for name, size in _series_sizes(codec).items()
        )
        raise InputError(
            message(
                "{path}: the codec and the model do not fit: {listing}", path=path, listing=listing
            ),
            hint="copy the model folder again",
        )
    return SeriesBundle(model.to(device).eval(), codec, index["about"])
