"""Weights in int8: each row of a matrix has its own scale, as in CTranslate2.

CTranslate2 computes the same int8 values and scales from the restored weights, so that a model that
was stored in int8 gives the same translations there as one that was converted from float32.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

SCALE_SUFFIX = ".scale"
MAX_INT8 = 127


def quantize_weights(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return matrices in int8, each with a tensor of scales (one per row); the rest unchanged."""
    import torch

    stored: dict[str, Tensor] = {}
    for name, weight in weights.items():
        if weight.dim() != 2:
            stored[name] = weight
            continue
        largest = weight.float().abs().amax(dim=1)
        scale = torch.where(largest > 0, largest, torch.ones_like(largest)) / MAX_INT8
        stored[name] = (weight.float() / scale[:, None]).round().to(torch.int8)
        stored[name + SCALE_SUFFIX] = scale
    return stored


def restore_weights(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the weights in float32; those that are not in int8 stay as they are."""
    import torch

    restored: dict[str, Tensor] = {}
    for name, weight in stored.items():
        if weight.dtype == torch.int8 and name + SCALE_SUFFIX in stored:
            restored[name] = weight.float() * stored[name + SCALE_SUFFIX][:, None]
        elif name.removesuffix(SCALE_SUFFIX) not in stored or not name.endswith(SCALE_SUFFIX):
            restored[name] = weight
    return restored
