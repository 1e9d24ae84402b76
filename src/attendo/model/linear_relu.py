"""max(0, x W^T + b) as one kernel: cuBLAS adds the bias and cuts at zero while it writes.

PyTorch has that product but no gradient for it, and `torch.compile` takes it apart again; as an
operation of our own it stays whole.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attendo.core.kernels import has_kernels


@torch.library.custom_op("attendo::linear_relu", mutates_args=())
def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Give max(0, x W^T + b) for x (N, D), weight (F, D) and bias (F,), all of one type."""
    return torch._addmm_activation(bias, x, weight.t())


@linear_relu.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # noqa: ARG001 - as the operation's
    return x.new_empty(x.size(0), weight.size(0))


def _keep(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight, output)


def _go_back(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, weight, output = ctx.saved_tensors
    slopes, sums = _slopes(gradient, output)
    return slopes @ weight, slopes.t() @ x, sums


def _slopes(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Give the gradient where the output is above zero, and its sums."""
    if not has_kernels(gradient):
        slopes = torch.ops.aten.threshold_backward(gradient, output, 0)
        return slopes, slopes.sum(0)
    from attendo.model.relu_kernels import relu_slopes

    found: tuple[Tensor, Tensor] = relu_slopes(gradient, output)
    return found


linear_relu.register_autograd(_go_back, setup_context=_keep)
