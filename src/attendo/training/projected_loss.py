"""The smoothed loss straight from the decoder's states: no logits of a whole batch are kept.

At 25,000 tokens and a vocabulary of 37,000 the logits of one step are a billion numbers, and their
gradient another. Here a part of the tokens at a time is projected, scored, and turned into the
gradients of states and matrix at once; then its logits are let go of. The backward pass only
multiplies. The same sums as `attendo.training.loss.smoothed_loss`, held equal by tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attendo.core.kernels import has_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

LOGITS_AT_ONCE, TOKENS_AT_ONCE = 1 << 28, 512
"""How large a part is: on a GPU half a gigabyte of logits, on a CPU what its products like."""


def projected_loss(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    smoothing: float,
    pad_id: int = 0,
) -> Tensor:
    """Sum the smoothed cross-entropy of states (N, D) @ weight (V, D)^T + bias against labels (N,).

    Differentiable once, in states, weight and bias. Under autocast products are in its type.
    """
    device = states.device.type
    if torch.is_autocast_enabled(device):
        low = torch.get_autocast_dtype(device)
        states, weight = states.to(low), weight.to(low)
        bias = bias if bias is None else bias.to(low)
    needs_gradient = torch.is_grad_enabled() and (states.requires_grad or weight.requires_grad)
    with torch.autocast(device, enabled=False):
        loss: Tensor = _ProjectedLoss.apply(  # type: ignore[no-untyped-call]
            states, weight, bias, labels, smoothing, pad_id, needs_gradient
        )
    return loss


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        labels: Tensor,
        smoothing: float,
        pad_id: int,
        needs_gradient: bool,
    ) -> Tensor:
        precise = torch.promote_types(states.dtype, torch.float32)
        total = states.new_zeros((), dtype=precise)
        d_states = torch.empty_like(states)
        d_weight = torch.zeros_like(weight, dtype=precise)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=precise)
        for part in _parts(states.size(0), weight.size(0), states.device.type):
            x, y = states[part], labels[part]
            logits = torch.nn.functional.linear(x, weight, bias)  # (n, V)
            loss, slopes = _choose_score(logits)(logits, y, smoothing, pad_id)
            total = total + loss
            if not needs_gradient:
                continue
            d_states[part] = slopes @ weight
            d_weight += (slopes.t() @ x).to(precise)
            if d_bias is not None:
                d_bias += slopes.sum(0, dtype=precise)
        if needs_gradient:
            d_bias = d_bias if d_bias is None or bias is None else d_bias.to(bias.dtype)
            ctx.save_for_backward(d_states, d_weight, d_bias)
            ctx.weight_type = weight.dtype
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        d_states, d_weight, d_bias = ctx.saved_tensors
        return (
            d_states * gradient.to(d_states.dtype),
            (d_weight * gradient).to(ctx.weight_type),
            None if d_bias is None else d_bias * gradient.to(d_bias.dtype),
            *(None,) * 4,
        )


def _choose_score(logits: Tensor) -> Callable[[Tensor, Tensor, float, int], tuple[Tensor, Tensor]]:
    if has_kernels(logits):
        return _score_by_kernel
    return _score_in_place if logits.device.type == "cpu" else _score


def _score(logits: Tensor, labels: Tensor, smoothing: float, pad_id: int) -> tuple[Tensor, Tensor]:
    """Give the loss of some tokens, summed, and its slopes by their logits (n, V)."""
    vocab_size = logits.size(1)
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32))
    real = labels.ne(pad_id)
    sums = precise.logsumexp(1)  # (n,)
    right = precise.gather(1, labels[:, None]).squeeze(1)
    losses = sums - (1.0 - smoothing) * right - smoothing * precise.mean(1)
    is_right = torch.arange(vocab_size, device=labels.device) == labels[:, None]
    goals = smoothing / vocab_size + (1.0 - smoothing) * is_right.to(precise.dtype)
    slopes = ((precise - sums[:, None]).exp() - goals) * real[:, None]
    return losses.mul(real).sum(), slopes.to(logits.dtype)


def _score_in_place(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Do the same in as few passes over memory as single operations can, where nothing is fused."""
    vocab_size = logits.size(1)
    real, right = labels.ne(pad_id), labels[:, None]
    chances = logits.log_softmax(1, dtype=torch.promote_types(logits.dtype, torch.float32))
    losses = -(1.0 - smoothing) * chances.gather(1, right).squeeze(1) - smoothing * chances.mean(1)
    slopes = chances.exp_().sub_(smoothing / vocab_size)
    slopes.scatter_add_(1, right, slopes.new_full(right.shape, smoothing - 1.0))
    if not real.all():
        slopes[~real] = 0.0
    return losses.mul(real).sum(), slopes.to(logits.dtype)


def _score_by_kernel(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Do the same in one kernel."""
    from attendo.training.loss_kernels import score_logits

    losses, slopes = score_logits(logits, labels, smoothing, pad_id)
    return losses.sum(), slopes


def _parts(num_tokens: int, vocab_size: int, device: str) -> list[slice]:
    """Cut the tokens into equal parts that fit."""
    most = TOKENS_AT_ONCE if device == "cpu" else max(1, LOGITS_AT_ONCE // vocab_size)
    num_parts = max(1, -(-num_tokens // most))
    size = -(-num_tokens // num_parts)
    return [slice(first, first + size) for first in range(0, num_tokens, size)]
