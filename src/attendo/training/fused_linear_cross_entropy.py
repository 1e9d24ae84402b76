"""Output projection and smoothed cross-entropy in one operation, without storing all logits.

With 25,000 tokens and a vocabulary of 37,000, the logits of one step are a billion numbers, and so
is their gradient. Here the tokens are processed in chunks: each chunk is projected, scored and
turned into the gradients of states and weights at once; then its logits are freed. The backward
pass only multiplies. Tests compare the result with `attendo.training.losses.label_smoothed_nll`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attendo.kernels.dispatch import can_use_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LOGITS_PER_CHUNK, CPU_TOKENS_PER_CHUNK = 1 << 28, 512
"""Size of a chunk: half a gigabyte of logits on a GPU, the fastest matrix size on a CPU."""


def fused_linear_cross_entropy(
    states: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    labels: Tensor,
    *,
    smoothing: float,
    pad_id: int = 0,
) -> Tensor:
    """Return the smoothed cross-entropy of states (N, D) @ weight (V, D)^T + bias, summed.

    `labels` are (N,). The result is differentiable once, in states, weight and bias. Under
    autocast, matrix products use the autocast type.
    """
    device = states.device.type
    if torch.is_autocast_enabled(device):
        autocast_dtype = torch.get_autocast_dtype(device)
        states, weight = states.to(autocast_dtype), weight.to(autocast_dtype)
        bias = bias if bias is None else bias.to(autocast_dtype)
    needs_gradient = torch.is_grad_enabled() and (states.requires_grad or weight.requires_grad)
    with torch.autocast(device, enabled=False):
        loss: Tensor = _FusedLinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
            states, weight, bias, labels, smoothing, pad_id, needs_gradient
        )
    return loss


class _FusedLinearCrossEntropy(torch.autograd.Function):
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
        dtype = torch.promote_types(states.dtype, torch.float32)
        total = states.new_zeros((), dtype=dtype)
        d_states = torch.empty_like(states)
        d_weight = torch.zeros_like(weight, dtype=dtype)
        d_bias = None if bias is None else torch.zeros_like(bias, dtype=dtype)
        for chunk in _chunks(states.size(0), weight.size(0), states.device.type):
            x, y = states[chunk], labels[chunk]
            logits = torch.nn.functional.linear(x, weight, bias)  # (n, V)
            loss, d_logits = _choose_cross_entropy(logits)(logits, y, smoothing, pad_id)
            total = total + loss
            if not needs_gradient:
                continue
            d_states[chunk] = d_logits @ weight
            d_weight += (d_logits.t() @ x).to(dtype)
            if d_bias is not None:
                d_bias += d_logits.sum(0, dtype=dtype)
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


def _choose_cross_entropy(
    logits: Tensor,
) -> Callable[[Tensor, Tensor, float, int], tuple[Tensor, Tensor]]:
    if can_use_kernels(logits):
        return _cross_entropy_triton
    return _cross_entropy_in_place if logits.device.type == "cpu" else _cross_entropy


def _cross_entropy(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Return the summed loss of a chunk and its gradient with respect to the logits (n, V)."""
    vocab_size = logits.size(1)
    logits_fp32 = logits.to(torch.promote_types(logits.dtype, torch.float32))
    is_real = labels.ne(pad_id)
    log_sums = logits_fp32.logsumexp(1)  # (n,)
    label_logits = logits_fp32.gather(1, labels[:, None]).squeeze(1)
    losses = log_sums - (1.0 - smoothing) * label_logits - smoothing * logits_fp32.mean(1)
    is_label = torch.arange(vocab_size, device=labels.device) == labels[:, None]
    targets = smoothing / vocab_size + (1.0 - smoothing) * is_label.to(logits_fp32.dtype)
    d_logits = ((logits_fp32 - log_sums[:, None]).exp() - targets) * is_real[:, None]
    return losses.mul(is_real).sum(), d_logits.to(logits.dtype)


def _cross_entropy_in_place(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Compute the same on a CPU, in as few passes over memory as separate operations allow."""
    vocab_size = logits.size(1)
    is_real, label_index = labels.ne(pad_id), labels[:, None]
    log_probs = logits.log_softmax(1, dtype=torch.promote_types(logits.dtype, torch.float32))
    losses = -(1.0 - smoothing) * log_probs.gather(1, label_index).squeeze(
        1
    ) - smoothing * log_probs.mean(1)
    d_logits = log_probs.exp_().sub_(smoothing / vocab_size)
    d_logits.scatter_add_(1, label_index, d_logits.new_full(label_index.shape, smoothing - 1.0))
    if not is_real.all():
        d_logits[~is_real] = 0.0
    return losses.mul(is_real).sum(), d_logits.to(logits.dtype)


def _cross_entropy_triton(
    logits: Tensor, labels: Tensor, smoothing: float, pad_id: int
) -> tuple[Tensor, Tensor]:
    """Compute the same in one Triton kernel."""
    from attendo.kernels.cross_entropy import cross_entropy_with_gradient

    losses, d_logits = cross_entropy_with_gradient(logits, labels, smoothing, pad_id)
    return losses.sum(), d_logits


def _chunks(num_tokens: int, vocab_size: int, device: str) -> list[slice]:
    """Return equal slices of the tokens that fit the limit."""
    max_tokens = (
        CPU_TOKENS_PER_CHUNK if device == "cpu" else max(1, MAX_LOGITS_PER_CHUNK // vocab_size)
    )
    num_parts = max(1, -(-num_tokens // max_tokens))
    size = -(-num_tokens // num_parts)
    return [slice(start, start + size) for start in range(0, num_tokens, size)]
