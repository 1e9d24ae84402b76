"""Triton kernels of one decoding step: attention with few queries, products with few rows.

A step has one query per hypothesis. Attention kernels for whole texts pad it to a tile of 64, and
matrix products to 64 or 128; layer norms and copies between them cost a few microseconds each. Here
a program reads the keys of one sentence and head, and writes the new ones in the same pass; or it
multiplies a few rows by some columns, with the layer norm before and the residual connection after
it. Sums are in float32, as in the kernels that these replace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

from attendo.kernels import tf32

if TYPE_CHECKING:
    from torch import Tensor

TILE_BYTES, WARPS = 64, 1
"""Keys per tile times their element size; warps per program."""
DEPTH = 1024
"""Inputs of a product that are loaded at a time, unless a whole row is normalized first."""
COLUMNS = 4
"""Columns of a product per program."""
LOG2_E = 1.4426950408889634


@triton.jit
def _attend_kernel(
    q_pointer, k_pointer, v_pointer, mask_pointer, out_pointer, count_pointer, count_stride,
    q_stride, k_sentence, k_stride, k_head, mask_sentence, mask_stride, num_keys, num_heads, scale,
    NUM: tl.constexpr, ROWS: tl.constexpr, WIDTH: tl.constexpr, TILE: tl.constexpr,
    HAS_NEW: tl.constexpr, HAS_COUNT: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Attend from the `NUM` hypotheses of a sentence, one head, to all of its keys.

    With `HAS_COUNT`, their number is read from memory: keys of a source, or positions of a target.
    With `HAS_NEW`, the new keys and values follow the queries in memory. Each hypothesis sees only
    its own, and they are appended to the `NUM * position` earlier ones.
    """
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    rows, offsets = tl.arange(0, ROWS), tl.arange(0, WIDTH)
    is_row = rows[:, None] < NUM
    columns = head * WIDTH + offsets[None, :]
    q_offsets = (sentence * NUM + rows)[:, None] * q_stride + columns
    q = tl.load(q_pointer + q_offsets, mask=is_row, other=0.0)
    k_first = k_pointer + sentence.to(tl.int64) * k_sentence + head * k_head
    v_first = v_pointer + sentence.to(tl.int64) * k_sentence + head * k_head
    if HAS_COUNT:
        num_keys = tl.load(count_pointer + sentence * count_stride).to(tl.int32)
    if HAS_NEW:
        num_keys = num_keys * NUM
        new_k = tl.load(q_pointer + q_offsets + num_heads * WIDTH, mask=is_row, other=0.0)
        new_v = tl.load(q_pointer + q_offsets + 2 * num_heads * WIDTH, mask=is_row, other=0.0)
        new_offsets = (num_keys + rows)[:, None] * k_stride + offsets[None, :]
        tl.store(k_first + new_offsets, new_k, mask=is_row)
        tl.store(v_first + new_offsets, new_v, mask=is_row)
        largest = tl.sum(q.to(tl.float32) * new_k.to(tl.float32), 1) * scale
        total = tl.full((ROWS,), 1.0, tl.float32)
        output = new_v.to(tl.float32)
    else:
        largest = tl.full((ROWS,), -1e30, tl.float32)
        total = tl.zeros((ROWS,), tl.float32)
        output = tl.zeros((ROWS, WIDTH), tl.float32)
    for first in range(0, num_keys, TILE):
        keys = first + tl.arange(0, TILE)
        inside = keys < num_keys
        k = tl.load(
            k_first + keys[:, None] * k_stride + offsets[None, :], mask=inside[:, None], other=0.0
        )
        v = tl.load(
            v_first + keys[:, None] * k_stride + offsets[None, :], mask=inside[:, None], other=0.0
        )
        masks = mask_pointer + sentence * mask_sentence + rows[:, None] * mask_stride
        mask_values = tl.load(masks + keys[None, :], mask=is_row & inside[None, :], other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision=PRECISION) * scale
        scores = tl.where((mask_values == 0.0) & inside[None, :], scores, -1e30)
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        rescale = tl.exp2(largest - larger)
        total = total * rescale + tl.sum(weights, 1)
        attended = tl.dot(weights.to(v.dtype), v, input_precision=PRECISION)
        output = output * rescale[:, None] + attended
        largest = larger
    output = (output / total[:, None]).to(out_pointer.dtype.element_ty)
    outs = (sentence * NUM + rows)[:, None] * (num_heads * WIDTH) + columns
    tl.store(out_pointer + outs, output, mask=is_row)


def decode_self_attention(
    projected: Tensor, self_kv: Tensor, mask: Tensor, position: Tensor, num_heads: int, *,
    scale: float,
) -> Tensor:  # fmt: skip
    """Attend to the target so far: queries, keys and values (N, 3 * H * K), where N = B * W.

    The keys and values are written into `self_kv` (B, T, W, 2 * H * K) at `position`, which is (1,)
    or (B,). `mask` (B, W, T, W) is zero where a hypothesis sees a key. Returns (N, H * K).
    """
    size = projected.size(1) // 3
    keys = self_kv.flatten(1, 2)  # (B, T * W, 2 * H * K)
    heads = (num_heads, size // num_heads)
    return _attend(
        projected, keys, keys[:, :, size:], mask.flatten(2), position, heads,
        strides=(keys.stride(0), keys.stride(1), heads[1]), num_keys=0, has_new=True, scale=scale,
    )  # fmt: skip


def decode_cross_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, lengths: Tensor | None = None,
    *, scale: float,
) -> Tensor:  # fmt: skip
    """Attend to the source: queries (N, H * K), keys and values (B, H, S, K), mask (B, 1, 1, S).

    Keys of a source beyond its `lengths` (B,) are not read.
    """
    num_heads, num_keys, width = keys.shape[1:]
    return _attend(
        queries, keys, values, mask.flatten(1, 2), lengths, (num_heads, width),
        strides=(keys.stride(0), keys.stride(2), keys.stride(1)), num_keys=num_keys, has_new=False,
        scale=scale,
    )  # fmt: skip


def _attend(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor, counts: Tensor | None,
    heads: tuple[int, int], *, strides: tuple[int, int, int], num_keys: int, has_new: bool,
    scale: float,
) -> Tensor:  # fmt: skip
    num_heads, width = heads
    num_sentences = keys.size(0)
    num = queries.size(0) // num_sentences
    out = queries.new_empty(queries.size(0), num_heads * width)
    mask_stride = mask.stride(1) if mask.size(1) > 1 else 0
    count_stride = 0 if counts is None or counts.size(0) == 1 else counts.stride(0)
    precision = "tf32" if tf32.is_tf32_enabled() else "ieee"  # of float32 products
    _attend_kernel[(num_sentences * num_heads,)](
        queries, keys, values, mask, out, counts, count_stride, queries.stride(0), *strides,
        mask.stride(0), mask_stride, num_keys, num_heads, scale * LOG2_E, num,
        max(16, triton.next_power_of_2(num)), width, TILE_BYTES // queries.element_size(), has_new,
        counts is not None, precision,
        num_warps=WARPS,
    )  # fmt: skip
    return out


@triton.jit
def _mean_and_rstd(x, inside, width, eps):
    """Return the means of rows x (N, D) and their inverse standard deviations."""
    mean = tl.sum(x, 1) / width
    centered = tl.where(inside, x - mean[:, None], 0.0)
    return mean, 1.0 / tl.sqrt(tl.sum(centered * centered, 1) / width + eps)


@triton.jit
def _norm_kernel(
    x_pointer, scale_pointer, shift_pointer, out_pointer, width, eps, BLOCK: tl.constexpr
):  # fmt: skip
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < width
    offsets = tl.program_id(0).to(tl.int64) * width + columns
    x = tl.load(x_pointer + offsets, mask=inside, other=0.0).to(tl.float32)
    mean, rstd = _mean_and_rstd(x, inside, width, eps)
    scale = tl.load(scale_pointer + columns, mask=inside, other=0.0).to(tl.float32)
    shift = tl.load(shift_pointer + columns, mask=inside, other=0.0).to(tl.float32)
    out = (x - mean[:, None]) * rstd[:, None] * scale + shift
    tl.store(out_pointer + offsets, out.to(out_pointer.dtype.element_ty), mask=inside)


def layer_norm(x: Tensor, scale: Tensor, shift: Tensor, eps: float) -> Tensor:
    """Return the layer norm of x (N, D); one program per row, whose sums stay within a warp."""
    normed = torch.empty_like(x)
    width = x.size(1)
    _norm_kernel[(x.size(0),)](
        x, scale, shift, normed, width, eps, triton.next_power_of_2(width), num_warps=1
    )
    return normed


@triton.jit
def _linear_kernel(
    x_pointer, weight_pointer, bias_pointer, out_pointer, scale_pointer, shift_pointer, eps,
    residual_pointer, residual_scale_pointer, residual_shift_pointer, residual_eps, num_rows, depth,
    num_out, HAS_BIAS: tl.constexpr, IS_RELU: tl.constexpr, HAS_NORM: tl.constexpr,
    HAS_RESIDUAL: tl.constexpr, HAS_RESIDUAL_NORM: tl.constexpr, ROWS: tl.constexpr,
    OUT: tl.constexpr, DEPTH: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Multiply all rows by `OUT` columns."""
    dtype = out_pointer.dtype.element_ty
    outs, rows = tl.program_id(0) * OUT + tl.arange(0, OUT), tl.arange(0, ROWS)
    is_row, is_out = rows[:, None] < num_rows, outs < num_out
    sums = tl.zeros((ROWS, OUT), tl.float32)
    for first in range(0, depth, DEPTH):
        columns = first + tl.arange(0, DEPTH)
        is_column = columns[None, :] < depth
        weight = tl.load(
            weight_pointer + outs[:, None] * depth + columns[None, :],
            mask=is_out[:, None] & is_column,
            other=0.0,
        )
        x = tl.load(
            x_pointer + rows[:, None] * depth + columns[None, :], mask=is_row & is_column, other=0.0
        ).to(tl.float32)
        if HAS_NORM:  # DEPTH covers a whole row
            scale = tl.load(scale_pointer + columns, mask=columns < depth, other=0.0)
            shift = tl.load(shift_pointer + columns, mask=columns < depth, other=0.0)
            mean, rstd = _mean_and_rstd(x, is_column, depth, eps)
            x = (x - mean[:, None]) * rstd[:, None] * scale.to(tl.float32) + shift.to(tl.float32)
            x = tl.where(is_column, x, 0.0).to(dtype).to(tl.float32)
        sums += tl.sum(x[:, None, :] * weight.to(tl.float32)[None, :, :], 2)
    if HAS_BIAS:
        sums += tl.load(bias_pointer + outs, mask=is_out, other=0.0).to(tl.float32)[None, :]
    if IS_RELU:
        sums = tl.maximum(sums, 0.0)
    offsets = rows[:, None] * num_out + outs[None, :]
    if HAS_RESIDUAL:
        residual = tl.load(residual_pointer + offsets, mask=is_row & is_out[None, :], other=0.0)
        residual = residual.to(tl.float32)
        if HAS_RESIDUAL_NORM:
            columns = tl.arange(0, BLOCK)
            is_column = columns[None, :] < num_out
            residual_rows = tl.load(
                residual_pointer + rows[:, None] * num_out + columns[None, :],
                mask=is_row & is_column,
                other=0.0,
            ).to(tl.float32)
            mean, rstd = _mean_and_rstd(residual_rows, is_column, num_out, residual_eps)
            scale = tl.load(residual_scale_pointer + outs, mask=is_out, other=0.0).to(tl.float32)
            shift = tl.load(residual_shift_pointer + outs, mask=is_out, other=0.0).to(tl.float32)
            residual = (residual - mean[:, None]) * rstd[:, None] * scale[None, :] + shift[None, :]
            residual = residual.to(dtype).to(tl.float32)
        sums += residual
    tl.store(out_pointer + offsets, sums.to(dtype), mask=is_row & is_out[None, :])


def fused_linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    norm: tuple[Tensor, Tensor, float] | None = None,
    residual: tuple[Tensor, tuple[Tensor, Tensor, float] | None] | None = None,
    is_relu: bool = False,
) -> Tensor:
    """Return norm(x) W^T + b for few rows x (N, D) and weight (O, D), with a ReLU if `is_relu`.

    Then `residual` (N, O) is added, normalized first if it comes with a norm.
    """
    num_rows, depth = x.shape
    num_out = weight.size(0)
    rows = triton.next_power_of_2(num_rows)
    added, added_norm = residual or (None, None)
    norm_args, residual_norm_args = norm or (None, None, 0.0), added_norm or (None, None, 0.0)
    product = x.new_empty(num_rows, num_out)
    _linear_kernel[(triton.cdiv(num_out, COLUMNS),)](
        x, weight, bias, product, *norm_args, added, *residual_norm_args, num_rows, depth, num_out,
        bias is not None, is_relu, norm is not None, added is not None, added_norm is not None,
        rows, COLUMNS,
        triton.next_power_of_2(depth) if norm is not None else DEPTH,
        triton.next_power_of_2(num_out) if added_norm is not None else 1,
        num_warps=2 if rows == 1 and depth <= DEPTH else 4,
    )  # fmt: skip
    return product
