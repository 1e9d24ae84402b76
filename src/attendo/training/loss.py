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


def smoothed_loss(logits: Tensor, labels: Tensor, *, smoothing: float, pad_id: int = 0) -> Tensor:
    """Sum the smoothed cross-entropy of logits (B, T, V) against labels (B, T) but for padding."""
    precise = torch.promote_types(logits.dtype, torch.float32)
    return F.cross_entropy(
        logits.flatten(0, 1).to(precise),
        labels.flatten(),
        ignore_index=pad_id,
        label_smoothing=smoothing,
        reduction="sum",
    )


def disagreement(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> Tensor:
    """Sum how far the two halves of logits (2B, T, V) are apart, but for padding of labels (B, T).

    The mean of the Kullback-Leibler divergences in both directions: what R-Drop (Liang et al. 2021)
    makes small between two passes that differ by their dropout.
    """
    precise = torch.promote_types(logits.dtype, torch.float32)
    one, other = logits.to(precise).log_softmax(-1).chunk(2)  # (B, T, V) each
    distance = ((one.exp() - other.exp()) * (one - other)).sum(-1) / 2  # (B, T)
    return distance.masked_fill(labels.eq(pad_id), 0.0).sum()


def squared_error(numbers: Tensor, labels: Tensor, *, smoothing: float = 0.0) -> Tensor:  # noqa: ARG001
    """Sum the squared errors of numbers (B, T, K) against labels (B, T, K) but for NaN.

    There is nothing to smooth: a number has no neighbours in a vocabulary.
    """
    return _distances(numbers, labels, labels).square().sum()


def number_disagreement(numbers: Tensor, labels: Tensor) -> Tensor:
    """Sum the squared distances of the two halves of numbers (2B, T, K), but where labels are NaN.

    Half of it, since both halves could go half the way: the mean of both directions.
    """
    one, other = numbers.chunk(2)
    return _distances(one, other, labels).square().sum() / 2


def _distances(numbers: Tensor, others: Tensor, labels: Tensor) -> Tensor:
    """Subtract without letting a NaN of the labels into any gradient."""
    precise = torch.promote_types(numbers.dtype, torch.float32)
    is_missing = labels.isnan()
    kept = others.to(precise).masked_fill(is_missing, 0.0)
    return (numbers.to(precise) - kept).masked_fill(is_missing, 0.0)


class Score(NamedTuple):
    """What teacher forcing tells of some pairs, in sums."""

    log_loss: Tensor  # not smoothed: its mean's exponential is the perplexity; squared for numbers
    num_right: Tensor  # NaN for numbers: none is ever quite right
    num_tokens: Tensor


def score(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> Score:
    """Sum up the plain log loss and the tokens that would have been chosen."""
    real = labels.ne(pad_id)
    right = (logits.argmax(-1).eq(labels) & real).sum()
    return Score(
        smoothed_loss(logits, labels, smoothing=0.0, pad_id=pad_id).double(), right, real.sum()
    )


def score_numbers(numbers: Tensor, labels: Tensor) -> Score:
    """Sum up the squared error."""
    loss = squared_error(numbers, labels).double()
    return Score(loss, torch.full_like(loss, nan), labels.isnan().logical_not().sum())


class Aim(NamedTuple):
    """By what a model is taught and measured."""

    loss: Callable[..., Tensor]
    disagreement: Callable[..., Tensor]
    score: Callable[..., Score]


AIMS = {
    "labels": Aim(smoothed_loss, disagreement, score),
    "numbers": Aim(squared_error, number_disagreement, score_numbers),
}


def find_aim(model: nn.Module) -> Aim:
    """Give the aim of what a model says."""
    return AIMS[getattr(model, "says", "labels")]
