"""Attention within the sentences of a packed row.

On a GPU in half precision a Triton kernel computes it (`attendo.kernels.varlen_attention`): the
FlashAttention kernels are made for long rows and waste most of their tiles on short sentences.
Elsewhere the sentences are padded for the time of the attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.kernels.dispatch import HALF_DTYPES, KERNEL_HEAD_SIZES, can_use_kernels
from attendo.model.attention import stacked_linear
from attendo.model.masks import causal_mask, zero_fully_masked_rows

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.attention import MultiHeadAttention
    from attendo.model.fast.packed_sequences import PackedMask


def attend_packed(
    attention: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor, mask: PackedMask
) -> Tensor:
    """Apply an attention module to packed rows: query (1, N, D), key and value (1, M, D).

    In training, queries, keys and values that are projected together are not split apart.
    """
    is_fused = attention.training and key is value
    if is_fused and attention.key.out_features == attention.value.out_features:
        heads = _attend_fused(attention, query, key, mask)
    else:
        projected = (attention.query(query), attention.key(key), attention.value(value))
        q, k, v = (side.squeeze(0).unflatten(1, (attention.num_heads, -1)) for side in projected)
        heads = packed_attention(q, k, v, mask, scale=attention.scale)
    attended: Tensor = attention.output(heads.flatten(1).unsqueeze(0))
    return attended  # (1, N, D)


def _attend_fused(
    attention: MultiHeadAttention, query: Tensor, key: Tensor, mask: PackedMask
) -> Tensor:
    width = (attention.num_heads, attention.key.out_features // attention.num_heads)
    if query is key:
        qkv = stacked_linear(query, attention.query, attention.key, attention.value)
        return varlen_self_attention(qkv.view(-1, 3, *width), mask, scale=attention.scale)
    kv = stacked_linear(key, attention.key, attention.value).view(-1, 2, *width)
    queries = attention.query(query).view(-1, *width)
    return varlen_cross_attention(queries, kv, mask, scale=attention.scale)


def varlen_self_attention(qkv: Tensor, mask: PackedMask, *, scale: float | None = None) -> Tensor:
    """Attend within sentences: queries, keys and values (N, 3, H, K) -> (N, H, K)."""
    if not _can_use_kernel(qkv):
        query, key, value = qkv.unbind(1)
        return packed_attention(query, key, value, mask, scale=scale)
    from attendo.kernels import varlen_attention

    packing = mask.query
    output: Tensor = varlen_attention.varlen_self_attention(
        qkv, packing.cu_seqlens, packing.max_seqlen, mask.is_causal, _resolve_scale(qkv, scale)
    )[0]
    return output


def varlen_cross_attention(
    query: Tensor, kv: Tensor, mask: PackedMask, *, scale: float | None = None
) -> Tensor:
    """Attend to another row: query (N, H, K), keys and values (M, 2, H, K) -> (N, H, K)."""
    if not _can_use_kernel(query):
        key, value = kv.unbind(1)
        return packed_attention(query, key, value, mask, scale=scale)
    from attendo.kernels import varlen_attention

    cu_seqlens = (mask.query.cu_seqlens, mask.key.cu_seqlens)
    max_seqlens = (mask.query.max_seqlen, mask.key.max_seqlen)
    output: Tensor = varlen_attention.varlen_cross_attention(
        query, kv, *cu_seqlens, *max_seqlens, mask.is_causal, _resolve_scale(query, scale)
    )[0]
    return output


def packed_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, *, scale: float | None = None
) -> Tensor:
    """Attend with padded rows: query (N, H, K), key (M, H, K), value (M, H, V) -> (N, H, V)."""
    scale = _resolve_scale(query, scale)
    if query.device.type == "cpu" and query.dtype in HALF_DTYPES:
        # Attention in half precision is slow on a CPU, most of all its backward pass.
        with torch.autocast("cpu", enabled=False):
            return _attend_padded(query.float(), key.float(), value.float(), mask, scale)
    return _attend_padded(query, key, value, mask, scale)


def _attend_padded(
    query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, scale: float
) -> Tensor:
    """Pad the sentences, attend, and pack the result again."""
    queries = mask.query.to_padded(query).transpose(1, 2)  # (B, H, T, K)
    keys, values = (mask.key.to_padded(side).transpose(1, 2) for side in (key, value))
    allowed = mask.key.padding_mask()  # (B, 1, S)
    if mask.is_causal:
        allowed = allowed & causal_mask(mask.query.max_seqlen, device=query.device)
    allowed = allowed[:, None]  # (B, 1, T or 1, S)
    heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed, scale=scale)
    return mask.query.to_packed(zero_fully_masked_rows(heads, allowed).transpose(1, 2))


def _resolve_scale(heads: Tensor, scale: float | None) -> float:
    return float(heads.size(-1) ** -0.5) if scale is None else scale


def _can_use_kernel(heads: Tensor) -> bool:
    return can_use_kernels(heads) and heads.size(-1) in KERNEL_HEAD_SIZES
