"""Attention over packed sentences as custom operators for autograd and `torch.compile`.

Queries, keys and values are in one tensor, as their stacked projection outputs them, and so is
their gradient: nothing is split or concatenated in between.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attendo.kernels.varlen_attention_triton import varlen_attention, varlen_attention_backward


@torch.library.custom_op("attendo::varlen_self_attention", mutates_args=())
def varlen_self_attention(
    qkv: Tensor, cu_seqlens: Tensor, max_seqlen: int, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend within sentences: queries, keys and values (N, 3, H, K) -> (N, H, K).

    Also returns log2 of each row's sum of exponentials (N, H), for the backward pass.
    """
    qkv = qkv.contiguous()
    sides = (qkv[:, 0], qkv[:, 1:])
    return varlen_attention(
        *sides, (cu_seqlens, cu_seqlens), (max_seqlen, max_seqlen), is_causal, scale
    )


@varlen_self_attention.register_fake
def _(qkv, cu_seqlens, max_seqlen, is_causal, scale):
    output = qkv.new_empty(qkv.size(0), *qkv.shape[2:])
    return output, qkv.new_empty(output.shape[:2], dtype=torch.float32)


@torch.library.custom_op("attendo::varlen_self_attention_backward", mutates_args=())
def varlen_self_attention_backward(
    gradient: Tensor, qkv: Tensor, output: Tensor, lse: Tensor, cu_seqlens: Tensor, max_seqlen: int,
    is_causal: bool, scale: float,
) -> Tensor:  # fmt: skip
    """Return the gradient of queries, keys and values together."""
    qkv = qkv.contiguous()
    grad_qkv = torch.empty_like(qkv)
    varlen_attention_backward(
        gradient, qkv[:, 0], qkv[:, 1:], output, lse, grad_qkv[:, 0], grad_qkv[:, 1:],
        (cu_seqlens, cu_seqlens), (max_seqlen, max_seqlen), is_causal, scale,
    )  # fmt: skip
    return grad_qkv


@varlen_self_attention_backward.register_fake
def _(gradient, qkv, *_others):
    return qkv.new_empty(qkv.shape)


@torch.library.custom_op("attendo::varlen_cross_attention", mutates_args=())
def varlen_cross_attention(
    query: Tensor, kv: Tensor, query_cu_seqlens: Tensor, key_cu_seqlens: Tensor,
    query_max_seqlen: int, key_max_seqlen: int, is_causal: bool, scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attend from query (N, H, K) to keys and values (M, 2, H, K) of the same sentence.

    Returns (N, H, K) and, for the backward pass, log2 of each row's sum of exponentials (N, H).
    """
    sides = (query.contiguous(), kv.contiguous())
    max_seqlens = (query_max_seqlen, key_max_seqlen)
    return varlen_attention(
        *sides, (query_cu_seqlens, key_cu_seqlens), max_seqlens, is_causal, scale
    )


@varlen_cross_attention.register_fake
def _(query, kv, *_others):
    return query.new_empty(query.shape), query.new_empty(query.shape[:2], dtype=torch.float32)


@torch.library.custom_op("attendo::varlen_cross_attention_backward", mutates_args=())
def varlen_cross_attention_backward(
    gradient: Tensor, query: Tensor, kv: Tensor, output: Tensor, lse: Tensor,
    query_cu_seqlens: Tensor, key_cu_seqlens: Tensor, query_max_seqlen: int, key_max_seqlen: int,
    is_causal: bool, scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Return the gradients of the queries, and of keys and values together."""
    query, kv = query.contiguous(), kv.contiguous()
    dq, d_kv = torch.empty_like(query), torch.empty_like(kv)
    varlen_attention_backward(
        gradient, query, kv, output, lse, dq, d_kv, (query_cu_seqlens, key_cu_seqlens),
        (query_max_seqlen, key_max_seqlen), is_causal, scale,
    )  # fmt: skip
    return dq, d_kv


@varlen_cross_attention_backward.register_fake
def _(gradient, query, kv, *_others):
    return query.new_empty(query.shape), kv.new_empty(kv.shape)


def _setup_self_attention(ctx, inputs, output):
    qkv, cu_seqlens, *ctx.options = inputs
    ctx.save_for_backward(qkv, *output, cu_seqlens)


def _self_attention_backward(ctx, gradient, _):
    grad_qkv = varlen_self_attention_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return grad_qkv, *(None,) * 4


def _setup_cross_attention(ctx, inputs, output):
    query, kv, query_cu_seqlens, key_cu_seqlens, *ctx.options = inputs
    ctx.save_for_backward(query, kv, *output, query_cu_seqlens, key_cu_seqlens)


def _cross_attention_backward(ctx, gradient, _):
    gradients = varlen_cross_attention_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return *gradients, *(None,) * 6


varlen_self_attention.register_autograd(
    _self_attention_backward, setup_context=_setup_self_attention
)
varlen_cross_attention.register_autograd(
    _cross_attention_backward, setup_context=_setup_cross_attention
)
