"""Slopes through max(0, ...) and the sum of them, which is the bias's gradient, as one kernel.

By itself the sum would read again what has just been written, the widest tensor of a layer.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, COLUMNS = 4, 512
"""That a program has in hand at a time."""
NUM_PROGRAMS = 1056
"""About as many as run at once; each goes down some columns."""


@triton.jit
def _slopes_kernel(
    gradient_pointer, output_pointer, slopes_pointer, sums_pointer, num_rows,
    WIDTH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    sums = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(tl.program_id(0) * ROWS, num_rows, tl.num_programs(0) * ROWS):
        rows = first + tl.arange(0, ROWS)
        inside = (rows[:, None] < num_rows) & (columns[None, :] < WIDTH)
        places = rows[:, None].to(tl.int64) * WIDTH + columns[None, :]
        gradient = tl.load(gradient_pointer + places, mask=inside, other=0.0)
        output = tl.load(output_pointer + places, mask=inside, other=0.0)
        slopes = tl.where(output > 0.0, gradient, 0.0)
        tl.store(slopes_pointer + places, slopes, mask=inside)
        sums += slopes.to(tl.float32)
    own = tl.program_id(0) * WIDTH + columns
    tl.store(sums_pointer + own, tl.sum(sums, 0), mask=columns < WIDTH)


@torch.library.custom_op("attendo::relu_slopes", mutates_args=())
def relu_slopes(gradient: Tensor, output: Tensor) -> tuple[Tensor, Tensor]:
    """Give the gradient (N, F) where the output is above zero, and its sums (F,)."""
    gradient, output = gradient.contiguous(), output.contiguous()
    num_rows, width = output.shape
    slopes = torch.empty_like(gradient)
    across = triton.cdiv(width, COLUMNS)
    down = max(1, min(NUM_PROGRAMS // across, triton.cdiv(num_rows, ROWS)))
    sums = torch.empty(down, width, device=output.device)
    _slopes_kernel[(down, across)](
        gradient, output, slopes, sums, num_rows, width, ROWS, COLUMNS, num_warps=4
    )
    return slopes, sums.sum(0).to(gradient.dtype)


@relu_slopes.register_fake
def _(gradient, output):
    return torch.empty_like(gradient), gradient.new_empty(output.size(1))
