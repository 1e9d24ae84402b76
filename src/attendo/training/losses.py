"""Label-smoothed cross-entropy (section 5.4), as a sum over tokens; squared error for numbers.

The true token gets 1 - epsilon of the target distribution and every token of the vocabulary
epsilon / V. Losses are sums, not means, so that micro-batches on several processes add up to the
whole batch. `model.target_type` chooses the loss ("labels" by default).
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor

from attendo.core.device import to_accurate

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


def label_smoothed_nll(
    logits: Tensor, labels: Tensor, *, smoothing: float, pad_id: int = 0
) -> Tensor:
    """Return the smoothed cross-entropy of logits (B, T, V) and labels (B, T), summed."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return F.cross_entropy(
        logits.flatten(0, 1).to(dtype),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )


def rdrop_kl(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> Tensor:
    """Return the divergence of the two halves of logits (2B, T, V), summed, without padding.

    It is the mean of the Kullback-Leibler divergences in both directions, which R-Drop (Liang et
    al. 2021) minimizes between two passes with different dropout masks.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    first, second = logits.to(dtype).log_softmax(-1).chunk(2)  # (B, T, V) each
    distance = ((first.exp() - second.exp()) * (first - second)).sum(-1) / 2  # (B, T)
    return distance.masked_fill(labels.eq(pad_id), 0.0).sum()


def squared_error(predictions: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:  # noqa: ARG001
    """Return the squared error of numbers (B, T, K) and labels (B, T, K), summed, without NaN.

    `smoothing` is ignored: a number has no neighbors in a vocabulary.
    """
    return _masked_differences(predictions, labels, labels).square().sum()


def rdrop_squared_distance(predictions: Tensor, labels: Tensor) -> Tensor:
    """Return half the squared distance of the two halves of numbers (2B, T, K), without NaN labels.

    Half, because each of the two could move halfway: the mean of both directions.
    """
    first, second = predictions.chunk(2)
    return _masked_differences(first, second, labels).square().sum() / 2


def _masked_differences(predictions: Tensor, others: Tensor, labels: Tensor) -> Tensor:
    """Return the differences, with zeros where labels are NaN, so that no gradient becomes NaN."""
    dtype = torch.promote_types(predictions.dtype, torch.float32)
    is_missing = labels.isnan()
    reference = others.to(dtype).masked_fill(is_missing, 0.0)
    return (predictions.to(dtype) - reference).masked_fill(is_missing, 0.0)


class ScoreSums(NamedTuple):
    """Sums of the teacher-forced scores of some pairs."""

    log_loss: Tensor  # not smoothed: exp(mean) is the perplexity; squared error for numbers
    num_correct: Tensor  # NaN for numbers
    num_tokens: Tensor


def score_tokens(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> ScoreSums:
    """Return the sums of the log loss and of the tokens that have the highest logit."""
    is_real = labels.ne(pad_id)
    num_correct = (logits.argmax(-1).eq(labels) & is_real).sum()
    return ScoreSums(
        to_accurate(label_smoothed_nll(logits, labels, smoothing=0.0, pad_id=pad_id)),
        num_correct,
        is_real.sum(),
    )


def score_numbers(predictions: Tensor, labels: Tensor) -> ScoreSums:
    """Return the sum of the squared error."""
    loss = to_accurate(squared_error(predictions, labels))
    return ScoreSums(loss, torch.full_like(loss, nan), labels.isnan().logical_not().sum())


class Objective(NamedTuple):
    """How a model is trained and scored."""

    loss: Callable[..., Tensor]
    rdrop: Callable[..., Tensor]
    score: Callable[..., ScoreSums]


OBJECTIVES = {
    "labels": Objective(label_smoothed_nll, rdrop_kl, score_tokens),
    "numbers": Objective(squared_error, rdrop_squared_distance, score_numbers),
}


def objective_for(model: nn.Module) -> Objective:
    """Return the objective of a model, by the type of its targets."""
    return OBJECTIVES[getattr(model, "target_type", "labels")]
