"""The numbers inside of the tiny time series model: its input layer, its mask, its first logits."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.architectures.time_series import presence_mask
from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import train_forecaster
from attendo.tasks.forecasting.codec import NUM_SPECIAL_IDS
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import Values


class InputLayer(NamedTuple):
    """The linear layer instead of the embedding table, and what it makes of each day."""

    weight: Tensor  # (D, 2): for the value, and for its presence
    bias: Tensor  # (D,)
    embedded: Tensor  # (S, D), without positions


class TwoDays(NamedTuple):
    """The probabilities of a typhoon on the first two days."""

    logits: Tensor  # (2,), of no and yes on the first day
    first: float
    after_no: float
    """On the second day, if the first had none."""
    after_yes: float


def normalize(temperatures: Values) -> Tensor:
    """Return a month (S,) as the input (1, S, 1) of the model, NaN = missing."""
    return torch.from_numpy(train_forecaster().codec.normalize(temperatures[None, :, None]))


def input_layer(temperatures: Values) -> InputLayer:
    """Return the weights of the input layer, and its output for each day."""
    embedding = train_forecaster().model.src_embedding
    with torch.inference_mode():
        embedded = embedding(normalize(temperatures))[0]
    linear = embedding.get_submodule("linear")
    weight, bias = (linear.get_parameter(name).detach() for name in ("weight", "bias"))
    return InputLayer(weight, bias, embedded)


def visible_days(temperatures: Values) -> list[bool]:
    """Return which days the attention may see."""
    visible: list[bool] = presence_mask(normalize(temperatures))[0, 0].tolist()
    return visible


def attention_by_day(temperatures: Values) -> Tensor:
    """Return the cross-attention (S,) of the first predicted day, the mean of the heads."""
    with torch.inference_mode():
        explanation = train_forecaster().model.explain(
            normalize(temperatures), torch.tensor([[START_ID]])
        )
    return explanation.cross[-1][0, :, 0].mean(0)


def predict_two_days(temperatures: Values) -> TwoDays:
    """Return the logits of the first day, and the second day after each label of the first."""
    model = train_forecaster().model
    src = normalize(temperatures).expand(2, -1, -1)
    labels = torch.arange(2) + NUM_SPECIAL_IDS
    tgt_ids = torch.stack([torch.full_like(labels, START_ID), labels], dim=1)  # (2, 2)
    with torch.inference_mode():
        logits = model(src, tgt_ids)[..., NUM_SPECIAL_IDS:].double()  # (2, 2, labels)
    probabilities = logits.softmax(-1)[..., 1]
    return TwoDays(logits[0, 0], *map(float, (probabilities[0, 0], *probabilities[:, 1])))
