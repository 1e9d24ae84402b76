"""The training kernels as functions of PyTorch modules.

Each function computes what its modules compute one after the other. The kernels themselves are
imported on first use: Triton is not installed everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


def fused_linear_relu(x: Tensor, linear: nn.Linear) -> Tensor:
    """Return max(0, linear(x)) for x (B, T, D)."""
    from attendo.kernels.linear_relu import linear_relu

    parameters = (linear.weight.to(x.dtype), linear.bias.to(x.dtype))
    hidden: Tensor = linear_relu(x.flatten(0, -2), *parameters)
    return hidden.view(*x.shape[:-1], -1)


def fused_add_norm(x: Tensor, y: Tensor, norm: nn.LayerNorm, dropout: nn.Dropout) -> Tensor:
    """Return norm(x + dropout(y)) in training mode, for x and y (B, T, D)."""
    from attendo.kernels.add_norm import add_and_norm

    seed = torch.randint(2**63 - 1, (1,), device=x.device)
    rows = (x.flatten(0, -2), y.flatten(0, -2))
    normed: Tensor = add_and_norm(*rows, norm.weight, norm.bias, seed, dropout.p, norm.eps)[0]
    return normed.view_as(y)
