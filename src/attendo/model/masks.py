"""Masks: True = may attend (section 3.2.3).

The padding mask hides key columns, the causal mask hides the future, and the local mask restricts
self-attention to a neighborhood. Masks combine with `&` and broadcast to (B, T, S);
`MultiHeadAttention` adds the axis of the heads.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attendo.core.errors import InputError


def padding_mask(ids: Tensor, pad_id: int = 0) -> Tensor:
    """Let every query see the real tokens but no padding.

    >>> padding_mask(torch.tensor([[5, 6, 0]]))
    tensor([[[ True,  True, False]]])
    """
    return ids.ne(pad_id).unsqueeze(-2)  # (B, S) -> (B, 1, S): one row, the same for every query


def causal_mask(length: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let position i see positions j <= i.

    >>> causal_mask(3).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()  # (T, T)


def local_mask(length: int, width: int, *, device: torch.device | str | None = None) -> Tensor:
    """Let position i see the `width` positions centered on it (section 4): |i - j| <= width // 2.

    An even width sees as much as the next odd one.

    >>> local_mask(4, 3).int()
    tensor([[1, 1, 0, 0],
            [1, 1, 1, 0],
            [0, 1, 1, 1],
            [0, 0, 1, 1]], dtype=torch.int32)
    """
    positions = torch.arange(length, device=device)
    return (positions[:, None] - positions[None, :]).abs() <= width // 2  # (T, T)


def zero_fully_masked_rows(output: Tensor, mask: Tensor | None) -> Tensor:
    """Set the output (..., T, d_v) of a fused kernel to zero in rows that may attend to nothing.

    Only cuDNN's kernel needs it: it attends to everything in such a row.
    """
    if mask is None or not output.is_cuda:
        return output
    return output.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)


def resolve_mask(ids: Tensor, mask: Tensor | None, *, pad_id: int, name: str) -> Tensor:
    """Return the given padding mask of ids (B, T) after checking it, or that of `pad_id`."""
    if mask is None:
        return padding_mask(ids, pad_id)
    check_mask(mask, (ids.size(0), 1, ids.size(1)), name=name)
    return mask.expand(ids.size(0), 1, ids.size(1))


def check_mask(mask: Tensor, shape: tuple[int, ...], *, name: str = "mask") -> None:
    """Raise an error for a mask that is not boolean or does not broadcast to `shape`."""
    if mask.dtype != torch.bool:
        raise InputError(
            f"{name} has type {mask.dtype}, not torch.bool",
            hint="give booleans with True = may attend, e.g. ids != pad_id "
            "(a mask of 1s and 0s: mask.bool(); one of -inf: mask == 0)",
        )
    mask_shape = tuple(mask.shape)
    aligned = (1,) * (len(shape) - len(mask_shape)) + mask_shape
    fits = len(mask_shape) <= len(shape) and all(
        size in (1, expected) for size, expected in zip(aligned, shape, strict=True)
    )
    if not fits:
        raise InputError(
            f"{name} has shape {mask_shape}, which does not broadcast to {shape}",
            hint="padding_mask(ids, pad_id) and causal_mask(length) return the right shapes",
        )
