"""Attention within the sentences of a packed row, where none may see another.

On a GPU in half precision a kernel of our own does it (Triton, `attendo.model.packed_kernels`): the
flash-attention kernels are made for long rows and spend most of their tiles on nothing where
sentences are short. Elsewhere every sentence gets a row of its own for the time of the attention.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.core.kernels import HALF_TYPES, has_kernels
from attendo.model.masks import blank_blind_rows, look_ahead_mask

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.packing import PackedMask

KERNEL_WIDTHS = (16, 32, 64, 128)
"""Of a head: what the kernel's tiles can be."""


def attend_within(joined: Tensor, mask: PackedMask, *, scale: float | None = None) -> Tensor:
    """Attend to one's own sentence: queries, keys and values (N, 3, H, K) give (N, H, K)."""
    if not _has_kernel(joined):
        query, key, value = joined.unbind(1)
        return packed_attention(query, key, value, mask, scale=scale)
    from attendo.model import packed_kernels

    own = mask.query
    output: Tensor = packed_kernels.attend_within(
        joined, own.starts, own.longest, mask.is_causal, _scale_of(joined, scale)
    )[0]
    return output


def attend_across(
    query: Tensor, pair: Tensor, mask: PackedMask, *, scale: float | None = None
) -> Tensor:
    """Attend to another row: query (N, H, K), keys and values (M, 2, H, K) give (N, H, K)."""
    if not _has_kernel(query):
        key, value = pair.unbind(1)
        return packed_attention(query, key, value, mask, scale=scale)
    from attendo.model import packed_kernels

    starts = (mask.query.starts, mask.key.starts)
    longest = (mask.query.longest, mask.key.longest)
    output: Tensor = packed_kernels.attend_across(
        query, pair, *starts, *longest, mask.is_causal, _scale_of(query, scale)
    )[0]
    return output


def packed_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, *, scale: float | None = None
) -> Tensor:
    """Do it by rows: query (N, H, K), key (M, H, K), value (M, H, V) give (N, H, V)."""
    scale = _scale_of(query, scale)
    if query.device.type == "cpu" and query.dtype in HALF_TYPES:
        # where attention is slow in halves, backward most of all
        with torch.autocast("cpu", enabled=False):
            return _attend_rows(query.float(), key.float(), value.float(), mask, scale)
    return _attend_rows(query, key, value, mask, scale)


def _attend_rows(
    query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, scale: float
) -> Tensor:
    """Give every sentence a row of its own for the time of the attention."""
    queries = mask.query.spread(query).transpose(1, 2)  # (B, H, T, K)
    keys, values = (mask.key.spread(side).transpose(1, 2) for side in (key, value))
    allowed = mask.key.mask()  # (B, 1, S)
    if mask.is_causal:
        allowed = allowed & look_ahead_mask(mask.query.longest, device=query.device)
    allowed = allowed[:, None]  # (B, 1, T or 1, S)
    heads = F.scaled_dot_product_attention(queries, keys, values, attn_mask=allowed, scale=scale)
    return mask.query.join(blank_blind_rows(heads, allowed).transpose(1, 2))


def _scale_of(heads: Tensor, scale: float | None) -> float:
    return float(heads.size(-1) ** -0.5) if scale is None else scale


def _has_kernel(heads: Tensor) -> bool:
    return has_kernels(heads) and heads.size(-1) in KERNEL_WIDTHS
