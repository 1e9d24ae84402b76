"""max(0, x W^T + b) as one kernel: cuBLAS adds the bias and cuts at zero while it writes.

PyTorch has that product but no gradient for it, and `torch.compile` takes it apart again; as an
operation of our own it stays whole.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from attendo.kernels.dispatch import can_use_kernels


@torch.library.custom_op("attendo::linear_relu", mutates_args=())
def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Give max(0, x W^T + b) for x (N, D), weight (F, D) and bias (F,), all of one type."""
    return torch._addmm_activation(bias, x, weight.t())


@linear_relu.register_fake
def _(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:  # noqa: ARG001 - as the operation's
    return x.new_empty(x.size(0), weight.size(0))


def _setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight, output)


def _backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    x, weight, output = ctx.saved_tensors
    grad_input, sums = _relu_backward(gradient, output)
    return grad_input @ weight, grad_input.t() @ x, sums


def _relu_backward(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Give the gradient where the output is above zero, and its sums."""
    if not can_use_kernels(gradient):
        grad_input = torch.ops.aten.threshold_backward(gradient, output, 0)
        return grad_input, grad_input.sum(0)
    from attendo.kernels.relu_backward import relu_backward

    result: tuple[Tensor, Tensor] = relu_backward(gradient, output)
    return result


linear_relu.register_autograd(_backward, setup_context=_setup_context)
