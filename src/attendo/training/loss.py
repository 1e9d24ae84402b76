"""Label-smoothed cross-entropy (section 5.4), as a sum over tokens.

The true token gets 1 - epsilon of the target distribution and every token of the vocabulary
epsilon / V. A sum, not a mean: pieces of a batch on many processes add up to the whole.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor


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


class Score(NamedTuple):
    """What teacher forcing tells of some pairs, in sums."""

    log_loss: Tensor  # not smoothed: its mean's exponential is the perplexity
    num_right: Tensor
    num_tokens: Tensor


def score(logits: Tensor, labels: Tensor, *, pad_id: int = 0) -> Score:
    """Sum up the plain log loss and the tokens that would have been chosen."""
    real = labels.ne(pad_id)
    right = (logits.argmax(-1).eq(labels) & real).sum()
    return Score(
        smoothed_loss(logits, labels, smoothing=0.0, pad_id=pad_id).double(), right, real.sum()
    )
