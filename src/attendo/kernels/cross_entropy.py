"""Label-smoothed cross-entropy and its gradient by the logits as one Triton kernel.

A program processes one token. It reads the logits once for the sum of their exponentials and once
more, while they are still cached, for their gradient. The vocabulary size is a constant of the
kernel, which then knows the alignment of rows and reads eight logits at a time. The same in PyTorch
is `attendo.training.fused_linear_cross_entropy._cross_entropy`.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

BLOCK = 8192
"""Logits that a program loads at a time."""


@triton.jit
def _cross_entropy_kernel(
    logits_pointer, labels_pointer, losses_pointer, gradients_pointer, smoothing, pad_id,
    VOCAB: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(labels_pointer + row)
    logits, gradients = logits_pointer + row * VOCAB, gradients_pointer + row * VOCAB
    dtype = gradients_pointer.dtype.element_ty
    offsets = tl.arange(0, BLOCK)
    if label == pad_id:
        tl.store(losses_pointer + row, 0.0)
        for start in range(0, VOCAB, BLOCK):
            columns = start + offsets
            tl.store(gradients + columns, tl.zeros((BLOCK,), dtype), mask=columns < VOCAB)
    else:
        label_logit = tl.load(logits + label).to(tl.float32)
        running_max = float("-inf")
        exp_sums = tl.zeros((BLOCK,), tl.float32)
        logit_sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, VOCAB, BLOCK):
            columns = start + offsets
            inside = columns < VOCAB
            x = tl.load(logits + columns, mask=inside, other=float("-inf")).to(tl.float32)
            new_max = tl.maximum(running_max, tl.max(x, 0))
            exp_sums = exp_sums * tl.exp(running_max - new_max) + tl.exp(x - new_max)
            logit_sums += tl.where(inside, x, 0.0)
            running_max = new_max
        log_sum = running_max + tl.log(tl.sum(exp_sums, 0))
        mean = tl.sum(logit_sums, 0) / VOCAB
        loss = log_sum - (1.0 - smoothing) * label_logit - smoothing * mean
        tl.store(losses_pointer + row, loss)
        for start in range(0, VOCAB, BLOCK):
            columns = start + offsets
            inside = columns < VOCAB
            x = tl.load(logits + columns, mask=inside, other=0.0).to(tl.float32)
            targets = smoothing / VOCAB + tl.where(columns == label, 1.0 - smoothing, 0.0)
            gradient = tl.exp(x - log_sum) - targets
            tl.store(gradients + columns, gradient.to(dtype), mask=inside)


@torch.library.custom_op("attendo::cross_entropy_from_logits", mutates_args=())
def cross_entropy_with_gradient(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Return the loss (n,) of each token, and its gradient by the logits (n, V)."""
    logits, labels = logits.contiguous(), labels.contiguous()
    losses, gradients = torch.empty(logits.size(0), device=logits.device), torch.empty_like(logits)
    _cross_entropy_kernel[(logits.size(0),)](
        logits, labels, losses, gradients, smoothing, pad_id, logits.size(1), BLOCK, num_warps=8
    )
    return losses, gradients


@cross_entropy_with_gradient.register_fake
def _(logits, labels, smoothing, pad_id):
    return logits.new_empty(logits.size(0), dtype=torch.float32), logits.new_empty(logits.shape)
