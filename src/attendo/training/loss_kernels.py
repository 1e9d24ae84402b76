"""The smoothed loss and its slopes by the logits as one kernel, in Triton.

A program takes one token. It reads the logits once for the sum of their exponentials and once more,
while they are still near, for their slopes. The vocabulary's size is part of the kernel, which then
knows how rows lie and reads eight logits at a time. `projected_loss._score` does the same in the
words of PyTorch.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 8192
"""Logits that a program has in hand at a time."""


@triton.jit
def _score_kernel(
    logits_pointer, labels_pointer, losses_pointer, slopes_pointer, smoothing, pad_id,
    VOCAB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_pointer + row)
    logits, slopes = logits_pointer + row * VOCAB, slopes_pointer + row * VOCAB
    kind = slopes_pointer.dtype.element_ty
    places = tl.arange(0, BLOCK)
    if label == pad_id:
        tl.store(losses_pointer + row, 0.0)
        for first in range(0, VOCAB, BLOCK):
            columns = first + places
            tl.store(slopes + columns, tl.zeros((BLOCK,), kind), mask=columns < VOCAB)
    else:
        right = tl.load(logits + label).to(tl.float32)
        largest = float("-inf")
        chances = tl.zeros((BLOCK,), tl.float32)
        heights = tl.zeros((BLOCK,), tl.float32)
        for first in range(0, VOCAB, BLOCK):
            columns = first + places
            inside = columns < VOCAB
            x = tl.load(logits + columns, mask=inside, other=float("-inf")).to(tl.float32)
            larger = tl.maximum(largest, tl.max(x, 0))
            chances = chances * tl.exp(largest - larger) + tl.exp(x - larger)
            heights += tl.where(inside, x, 0.0)
            largest = larger
        log_sum = largest + tl.log(tl.sum(chances, 0))
        mean = tl.sum(heights, 0) / VOCAB
        loss = log_sum - (1.0 - smoothing) * right - smoothing * mean
        tl.store(losses_pointer + row, loss)
        for first in range(0, VOCAB, BLOCK):
            columns = first + places
            inside = columns < VOCAB
            x = tl.load(logits + columns, mask=inside, other=0.0).to(tl.float32)
            goals = smoothing / VOCAB + tl.where(columns == label, 1.0 - smoothing, 0.0)
            found = tl.exp(x - log_sum) - goals
            tl.store(slopes + columns, found.to(kind), mask=inside)


@torch.library.custom_op("attendo::score_logits", mutates_args=())
def score_logits(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Give the loss (n,) of each token, and its slopes by the logits (n, V)."""
    logits, labels = logits.contiguous(), labels.contiguous()
    losses, slopes = torch.empty(logits.size(0), device=logits.device), torch.empty_like(logits)
    _score_kernel[(logits.size(0),)](
        logits, labels, losses, slopes, smoothing, pad_id, logits.size(1), BLOCK, num_warps=8
    )
    return losses, slopes


@score_logits.register_fake
def _(logits, labels, smoothing, pad_id):
    return logits.new_empty(logits.size(0), dtype=torch.float32), logits.new_empty(logits.shape)
