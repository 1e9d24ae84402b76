"""Label-smoothed cross-entropy (section 5.4), as a sum over tokens; squared error for numbers.

The true token gets 1 - epsilon of the target distribution and every token of the vocabulary
epsilon / V. A sum, not a mean: pieces of a batch on many processes add up to the whole. What a
model says (`model.says`, labels when it does not tell) decides by which loss it is taught.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import nn


def label_smoothed_nll(
    logits: Tensor, labels: Tensor, *, smoothing: float, pad_id: int = 0
) -> Tensor:
    """Sum the smoothed cross-entropy of logits (B, T, V) against labels (B, T) but for padding."""
    dtype = torch.promote_types(logits.dtype, torch.float32)
    return F.cross_entropy(
        logits.flatten(0, 1).to(dtype),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )


def rdrop_kl(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> Tensor:
    """Sum how far the two halves of logits (2B, T, V) are apart, but for padding of labels (B, T).

    The mean of the Kullback-Leibler divergences in both directions: what R-Drop (Liang et al. 2021)
    makes small between two passes that differ by their dropout.
    """
    dtype = torch.promote_types(logits.dtype, torch.float32)
    first, second = logits.to(dtype).log_softmax(-1).chunk(2)  # (B, T, V) each
    distance = ((first.exp() - second.exp()) * (first - second)).sum(-1) / 2  # (B, T)
    return distance.masked_fill(labels.eq(pad_id), 0.0).sum()


def squared_error(predictions: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:  # noqa: ARG001
    """Sum the squared errors of numbers (B, T, K) against labels (B, T, K) but for NaN.

    There is nothing to smooth: a number has no neighbours in a vocabulary.
    """
    return _masked_differences(predictions, labels, labels).square().sum()


def rdrop_squared_distance(predictions: Tensor, labels: Tensor) -> Tensor:
    """Sum the squared distances of the two halves of numbers (2B, T, K), but where labels are NaN.

    Half of it, since both halves could go half the way: the mean of both directions.
    """
    first, second = predictions.chunk(2)
    return _masked_differences(first, second, labels).square().sum() / 2


def _masked_differences(predictions: Tensor, others: Tensor, labels: Tensor) -> Tensor:
    """Subtract without letting a NaN of the labels into any gradient."""
    dtype = torch.promote_types(predictions.dtype, torch.float32)
    is_missing = labels.isnan()
    reference = others.to(dtype).masked_fill(is_missing, 0.0)
    return (predictions.to(dtype) - reference).masked_fill(is_missing, 0.0)


class ScoreSums(NamedTuple):
    """What teacher forcing tells of some pairs, in sums."""

    log_loss: Tensor  # not smoothed: its mean's exponential is the perplexity; squared for numbers
    num_correct: Tensor  # NaN for numbers: none is ever quite right
    num_tokens: Tensor


def score_tokens(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> ScoreSums:
    """Sum up the plain log loss and the tokens that would have been chosen."""
    is_real = labels.ne(pad_id)
    num_correct = (logits.argmax(-1).eq(labels) & is_real).sum()
    return ScoreSums(
        label_smoothed_nll(logits, labels, smoothing=0.0, pad_id=pad_id).double(),
        num_correct,
        is_real.sum(),
    )


def score_numbers(predictions: Tensor, labels: Tensor) -> ScoreSums:
    """Sum up the squared error."""
    loss = squared_error(predictions, labels).double()
    return ScoreSums(loss, torch.full_like(loss, nan), labels.isnan().logical_not().sum())


class Objective(NamedTuple):
    """By what a model is taught and measured."""

    loss: Callable[..., Tensor]
    rdrop: Callable[..., Tensor]
    score: Callable[..., ScoreSums]


OBJECTIVES = {
    "labels": Objective(label_smoothed_nll, rdrop_kl, score_tokens),
    "numbers": Objective(squared_error, rdrop_squared_distance, score_numbers),
}


def objective_for(model: nn.Module) -> Objective:
    """Give the aim of what a model says."""
    return OBJECTIVES[getattr(model, "target_type", "labels")]
