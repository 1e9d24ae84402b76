"""Fused max(0, x W^T + b), and its backward pass with the bias gradient.

Forward, cuBLAS adds the bias and applies the ReLU while it writes. PyTorch has that product but no
gradient for it, and `torch.compile` splits it up again; a custom operator stays whole. Backward, a
Triton kernel masks the gradient and sums it up at once: a separate sum would read again what has
just been written, the widest tensor of a layer.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

from attendo.kernels.dispatch import can_use_kernels

ROWS, COLUMNS = 4, 512
"""Size of the tile that a program of the backward kernel processes at a time."""
NUM_PROGRAMS = 1056
"""Programs of the backward kernel, about as many as run at once; each loops over rows."""


@torch.library.custom_op("attendo::linear_relu", mutates_args=())
def linear_relu(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Return max(0, x W^T + b) for x (N, D), weight (F, D) and bias (F,), all of one dtype."""
    return torch._addmm_activation(bias, x, weight.t())


@linear_relu.register_fake
def _(x, weight, bias):
    return x.new_empty(x.size(0), weight.size(0))


def _setup_context(ctx, inputs, output):
    x, weight, _ = inputs
    ctx.save_for_backward(x, weight, output)


def _backward(ctx, gradient):
    x, weight, output = ctx.saved_tensors
    if can_use_kernels(gradient):
        grad_hidden, grad_bias = relu_backward(gradient, output)
    else:
        grad_hidden = torch.ops.aten.threshold_backward(gradient, output, 0)
        grad_bias = grad_hidden.sum(0)
    return grad_hidden @ weight, grad_hidden.t() @ x, grad_bias


linear_relu.register_autograd(_backward, setup_context=_setup_context)


@triton.jit
def _relu_backward_kernel(
    gradient_pointer, output_pointer, grad_input_pointer, sums_pointer, num_rows,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(tl.program_id(0) * ROWS, num_rows, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        inside = (rows[:, None] < num_rows) & (columns[None, :] < WIDTH)
        offsets = rows[:, None].to(tl.int64) * WIDTH + columns[None, :]
        gradient = tl.load(gradient_pointer + offsets, mask=inside, other=0.0)
        output = tl.load(output_pointer + offsets, mask=inside, other=0.0)
        grad_input = tl.where(output > 0.0, gradient, 0.0)
        tl.store(grad_input_pointer + offsets, grad_input, mask=inside)
        sums += grad_input.to(tl.float32)
    sum_offsets = tl.program_id(0) * WIDTH + columns
    tl.store(sums_pointer + sum_offsets, tl.sum(sums, 0), mask=columns < WIDTH)


@torch.library.custom_op("attendo::relu_backward", mutates_args=())
def relu_backward(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradient (N, F) where the output is above zero, and its sum over rows (F,)."""
    gradient, output = gradient.contiguous(), output.contiguous()
    num_rows, width = output.shape
    grad_input = torch.empty_like(gradient)
    num_column_blocks = triton.cdiv(width, COLUMNS)
    num_row_programs = max(1, min(NUM_PROGRAMS // num_column_blocks, triton.cdiv(num_rows, ROWS)))
    sums = torch.empty(num_row_programs, width, device=output.device)
    _relu_backward_kernel[(num_row_programs, num_column_blocks)](
        gradient, output, grad_input, sums, num_rows, width, ROWS, COLUMNS, num_warps=4
    )
    return grad_input, sums.sum(0).to(gradient.dtype)


@relu_backward.register_fake
def _(gradient, output):
    return torch.empty_like(gradient), gradient.new_empty(output.size(1))


def fused_linear_relu(x: Tensor, linear: nn.Linear) -> Tensor:
    """Return max(0, linear(x)) for x (B, T, D)."""
    parameters = (linear.weight.to(x.dtype), linear.bias.to(x.dtype))
    hidden: Tensor = linear_relu(x.flatten(0, -2), *parameters)
    return hidden.view(*x.shape[:-1], -1)
