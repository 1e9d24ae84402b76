"""Fused LayerNorm(x + Dropout(y)): one Triton kernel forward and one backward.

Each of the three operations by itself reads and writes the whole batch. Here a program adds and
normalizes some rows and writes them once. The dropout mask is a hash of the element's index and the
seed of the call: the backward pass computes it again, and no mask is stored.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor, nn

NUM_PROGRAMS = 2112
"""Programs of the backward kernel; each sums the gradients of scale and shift over its rows."""
WIDE_ROW = 1024
"""Rows of at least this width use half as many programs."""
ROWS = 4
"""Rows per program in the forward kernel."""


@triton.jit
def _keep_mask(offsets, seed, threshold):
    """Return which elements are kept: those whose 32-bit hash of index and seed is large enough."""
    low = (seed & 0xFFFFFFFF).to(tl.uint32)
    high = ((seed >> 32) & 0xFFFFFFFF).to(tl.uint32)
    x = offsets.to(tl.uint32) ^ low
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    x = (x ^ (x >> 16)) + high
    x = (x ^ (x >> 16)) * 0x21F0AAAD
    x = (x ^ (x >> 15)) * 0x735A2D97
    x = x ^ (x >> 15)
    return x >= threshold.to(tl.uint32)


@triton.jit
def _forward_kernel(
    x_pointer, y_pointer, scale_pointer, shift_pointer, seed_pointer, z_pointer, out_pointer,
    means_pointer, rstds_pointer, num_rows, threshold, keep_scale, eps,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, NUM: tl.constexpr, HAS_DROPOUT: tl.constexpr,
):  # fmt: skip
    columns = tl.arange(0, BLOCK)
    rows = tl.program_id(0) * NUM + tl.arange(0, NUM)
    inside = (rows[:, None] < num_rows) & (columns[None, :] < WIDTH)
    offsets = rows[:, None] * WIDTH + columns[None, :]
    x = tl.load(x_pointer + offsets, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_pointer + offsets, mask=inside, other=0.0).to(tl.float32)
    if HAS_DROPOUT:
        y = tl.where(_keep_mask(offsets, tl.load(seed_pointer), threshold), y * keep_scale, 0.0)
    z = (x + y).to(z_pointer.dtype.element_ty)
    tl.store(z_pointer + offsets, z, mask=inside)
    z = z.to(tl.float32)
    mean = tl.sum(z, 1) / WIDTH
    centered = tl.where(inside, z - mean[:, None], 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centered * centered, 1) / WIDTH + eps)
    scale = tl.load(scale_pointer + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    shift = tl.load(shift_pointer + columns, mask=columns < WIDTH, other=0.0).to(tl.float32)
    out = centered * rstd[:, None] * scale[None, :] + shift[None, :]
    tl.store(out_pointer + offsets, out.to(out_pointer.dtype.element_ty), mask=inside)
    tl.store(means_pointer + rows, mean, mask=rows < num_rows)
    tl.store(rstds_pointer + rows, rstd, mask=rows < num_rows)


@triton.jit
def _backward_kernel(
    g_pointer, z_pointer, scale_pointer, seed_pointer, means_pointer, rstds_pointer, dx_pointer,
    dy_pointer, d_scale_pointer, d_shift_pointer, num_rows, threshold, keep_scale,
    WIDTH: tl.constexpr, BLOCK: tl.constexpr, HAS_DROPOUT: tl.constexpr,
):  # fmt: skip
    """Process one row at a time, so that sums over columns stay within a warp or two."""
    columns = tl.arange(0, BLOCK)
    inside = columns < WIDTH
    scale = tl.load(scale_pointer + columns, mask=inside, other=0.0).to(tl.float32)
    d_scale = tl.zeros((BLOCK,), tl.float32)
    d_shift = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), num_rows, tl.num_programs(0)):
        offsets = row * WIDTH + columns
        g = tl.load(g_pointer + offsets, mask=inside, other=0.0).to(tl.float32)
        z = tl.load(z_pointer + offsets, mask=inside, other=0.0).to(tl.float32)
        rstd = tl.load(rstds_pointer + row)
        normed = tl.where(inside, (z - tl.load(means_pointer + row)) * rstd, 0.0)
        d_scale += g * normed
        d_shift += g
        scaled = g * scale
        mean_dot = tl.sum(scaled * normed, 0) / WIDTH
        mean_gradient = tl.sum(scaled, 0) / WIDTH
        dz = (scaled - normed * mean_dot - mean_gradient) * rstd
        tl.store(dx_pointer + offsets, dz.to(dx_pointer.dtype.element_ty), mask=inside)
        if HAS_DROPOUT:
            keep = _keep_mask(offsets, tl.load(seed_pointer), threshold)
            dz = tl.where(keep, dz * keep_scale, 0.0)
            tl.store(dy_pointer + offsets, dz.to(dy_pointer.dtype.element_ty), mask=inside)
    sums = tl.program_id(0) * WIDTH + columns
    tl.store(d_scale_pointer + sums, d_scale, mask=inside)
    tl.store(d_shift_pointer + sums, d_shift, mask=inside)


def _dropout_params(dropout: float) -> tuple[int, float]:
    """Return the hash threshold for keeping an element, and the factor of kept elements."""
    return min(round(dropout * 2**32), 2**32 - 1), 1.0 / (1.0 - dropout)


@torch.library.custom_op("attendo::add_and_norm", mutates_args=())
def add_and_norm(
    x: Tensor, y: Tensor, scale: Tensor, shift: Tensor, seed: Tensor, dropout: float, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return LayerNorm(x + Dropout(y)), and the sum, means and inverse deviations for backward.

    Args:
        x: the residual connection (N, D).
        y: the sub-layer's output (N, D).
        scale: the weight of the layer norm (D,).
        shift: the bias of the layer norm (D,).
        seed: one int64 on the device.
        dropout: probability of dropping an element of y.
        eps: the epsilon of the layer norm.

    """
    x, y = x.contiguous(), y.contiguous()
    num_rows, width = x.shape
    z, out = torch.empty_like(y), torch.empty_like(y)
    means, rstds = (torch.empty(num_rows, device=x.device) for _ in range(2))
    threshold, keep_scale = _dropout_params(dropout)
    _forward_kernel[(triton.cdiv(num_rows, ROWS),)](
        x, y, scale, shift, seed, z, out, means, rstds, num_rows, threshold, keep_scale, eps,
        width, triton.next_power_of_2(width), ROWS, dropout > 0.0, num_warps=4,
    )  # fmt: skip
    return out, z, means, rstds


@add_and_norm.register_fake
def _(x, y, scale, shift, seed, dropout, eps):
    means = x.new_empty(x.size(0), dtype=torch.float32)
    return torch.empty_like(y), torch.empty_like(y), means, torch.empty_like(means)


@torch.library.custom_op("attendo::add_and_norm_backward", mutates_args=())
def add_and_norm_backward(
    gradient: Tensor,
    z: Tensor,
    scale: Tensor,
    seed: Tensor,
    means: Tensor,
    rstds: Tensor,
    dropout: float,
    x_type: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of x, of y, and of scale and shift together (2, D)."""
    gradient = gradient.contiguous()
    num_rows, width = z.shape
    dx, dy = torch.empty_like(z, dtype=x_type), torch.empty_like(z)
    num_programs = min(NUM_PROGRAMS // (2 if width >= WIDE_ROW else 1), num_rows)
    block = triton.next_power_of_2(width)
    parts = torch.empty(2, num_programs, width, device=z.device)
    threshold, keep_scale = _dropout_params(dropout)
    _backward_kernel[(num_programs,)](
        gradient, z, scale, seed, means, rstds, dx, dy, parts[0], parts[1], num_rows, threshold,
        keep_scale, width, block, dropout > 0.0, num_warps=max(1, block // 512),
    )  # fmt: skip
    if not dropout:
        dy = dx.to(z.dtype, copy=True)
    return dx, dy, parts.sum(1)


@add_and_norm_backward.register_fake
def _(gradient, z, scale, seed, means, rstds, dropout, x_type):
    sums = z.new_empty(2, z.size(1), dtype=torch.float32)
    return torch.empty_like(z, dtype=x_type), torch.empty_like(z), sums


def _setup_context(ctx, inputs, output):
    x, _, scale, _, seed, ctx.dropout, _ = inputs
    _, z, means, rstds = output
    ctx.x_type = x.dtype
    ctx.save_for_backward(z, scale, seed, means, rstds)


def _backward(ctx, gradient, *_):
    dx, dy, sums = add_and_norm_backward(gradient, *ctx.saved_tensors, ctx.dropout, ctx.x_type)
    return dx, dy, sums[0], sums[1], None, None, None


add_and_norm.register_autograd(_backward, setup_context=_setup_context)


def fused_add_norm(x: Tensor, y: Tensor, norm: nn.LayerNorm, dropout: nn.Dropout) -> Tensor:
    """Return norm(x + dropout(y)) in training mode, for x and y (B, T, D)."""
    seed = torch.randint(2**63 - 1, (1,), device=x.device)
    rows = (x.flatten(0, -2), y.flatten(0, -2))
    normed: Tensor = add_and_norm(*rows, norm.weight, norm.bias, seed, dropout.p, norm.eps)[0]
    return normed.view_as(y)
