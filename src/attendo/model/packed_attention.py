"""Attention over packed rows: by one kernel where there is one, else over rows of a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.model.kernels import HALF_TYPES, has_kernels
from attendo.model.masks import blank_blind_rows, look_ahead_mask

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.packing import PackedMask

KERNEL_WIDTHS = (16, 32, 64, 128)
"""Of a head: what the kernel's tiles can be."""


def packed_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: PackedMask, *, scale: float | None = None
) -> Tensor:
    """Attend within sentences: query (N, H, K), key (M, H, K), value (M, H, V) give (N, H, V)."""
    scale = query.size(-1) ** -0.5 if scale is None else scale
    if _has_kernel(query, value):
        from attendo.model.packed_kernels import attend_packed

        starts = (mask.query.starts, mask.key.starts)
        longest = (mask.query.longest, mask.key.longest)
        output: Tensor = attend_packed(query, key, value, *starts, *longest, mask.is_causal, scale)[
            0
        ]
        return output
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


def _has_kernel(query: Tensor, value: Tensor) -> bool:
    width = query.size(-1)
    return has_kernels(query) and width == value.size(-1) and width in KERNEL_WIDTHS
