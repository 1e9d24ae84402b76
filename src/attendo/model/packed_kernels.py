"""The kernels of packed attention, in Triton (Dao et al. 2022, 2023: tiles, no matrix of weights).

Sentences are short: most fit one tile, whose scores live and die in registers. One program takes a
tile of one sentence and one head; programs beyond the end of a short sentence leave at once. Scores
are computed again in the backward pass. Equal to the padded path of `packed_attention` up to the
rounding of half precision.
"""

from __future__ import annotations

from math import ceil

import torch
import triton
import triton.language as tl
from torch import Tensor

SMALLEST_TILE, LARGEST_TILE = 16, 64
LOG2_E = 1.4426950408889634


@triton.jit
def _scores(q, k, rows, columns, num_columns, scale, IS_CAUSAL: tl.constexpr):
    """Compare a tile of queries with a tile of keys, in units of log 2; hidden ones are -inf."""
    scores = tl.dot(q, tl.trans(k)) * scale
    seen = columns[None, :] < num_columns
    if IS_CAUSAL:
        seen = seen & (columns[None, :] <= rows[:, None])
    return tl.where(seen, scores, float("-inf"))


@triton.jit
def _load_tile(pointer, first, stride, places, count, offsets):
    """Read rows `places` of a sentence, zeros beyond its end."""
    rows = pointer + (first + places)[:, None] * stride + offsets[None, :]
    return tl.load(rows, mask=places[:, None] < count, other=0.0)


@triton.jit
def _store_tile(pointer, first, stride, places, count, offsets, values):
    rows = pointer + (first + places)[:, None] * stride + offsets[None, :]
    tl.store(rows, values.to(pointer.dtype.element_ty), mask=places[:, None] < count)


@triton.jit
def _forward_kernel(
    q_pointer, k_pointer, v_pointer, o_pointer, sums_pointer, q_starts, k_starts,
    q_stride, k_stride, v_stride, o_stride, num_heads, scale,
    IS_CAUSAL: tl.constexpr, WIDTH: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Attend from one tile of queries to all keys of its sentence; keep log2 of each row's sum."""
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    q_first, k_first = tl.load(q_starts + sentence), tl.load(k_starts + sentence)
    num_q = tl.load(q_starts + sentence + 1) - q_first
    num_k = tl.load(k_starts + sentence + 1) - k_first
    begin = tl.program_id(1) * TILE_Q
    if begin >= num_q:
        return
    offsets = head * WIDTH + tl.arange(0, WIDTH)
    rows = begin + tl.arange(0, TILE_Q)
    q = _load_tile(q_pointer, q_first, q_stride, rows, num_q, offsets)
    largest = tl.full((TILE_Q,), float("-inf"), tl.float32)
    total = tl.zeros((TILE_Q,), tl.float32)
    output = tl.zeros((TILE_Q, WIDTH), tl.float32)
    end = num_k
    if IS_CAUSAL:
        end = tl.minimum(num_k, begin + TILE_Q)
    for first in range(0, end, TILE_K):
        columns = first + tl.arange(0, TILE_K)
        k = _load_tile(k_pointer, k_first, k_stride, columns, num_k, offsets)
        v = _load_tile(v_pointer, k_first, v_stride, columns, num_k, offsets)
        scores = _scores(q, k, rows, columns, num_k, scale, IS_CAUSAL)
        larger = tl.maximum(largest, tl.max(scores, 1))
        weights = tl.exp2(scores - larger[:, None])
        fade = tl.exp2(largest - larger)
        total = total * fade + tl.sum(weights, 1)
        output = output * fade[:, None] + tl.dot(weights.to(v.dtype), v)
        largest = larger
    has_any = total > 0.0  # an empty side gives zeros
    output = tl.where(has_any[:, None], output / total[:, None], 0.0)
    _store_tile(o_pointer, q_first, o_stride, rows, num_q, offsets, output)
    sums = tl.where(has_any, largest + tl.log2(total), 0.0)
    tl.store(sums_pointer + (q_first + rows) * num_heads + head, sums, mask=rows < num_q)


@triton.jit
def _query_gradient_kernel(
    q_pointer, k_pointer, v_pointer, g_pointer, sums_pointer, deltas_pointer, o_pointer,
    dq_pointer, q_starts, k_starts, q_stride, k_stride, v_stride, g_stride, o_stride, dq_stride,
    num_heads, scale,
    IS_CAUSAL: tl.constexpr, WIDTH: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    q_first, k_first = tl.load(q_starts + sentence), tl.load(k_starts + sentence)
    num_q = tl.load(q_starts + sentence + 1) - q_first
    num_k = tl.load(k_starts + sentence + 1) - k_first
    begin = tl.program_id(1) * TILE_Q
    if begin >= num_q:
        return
    offsets = head * WIDTH + tl.arange(0, WIDTH)
    rows = begin + tl.arange(0, TILE_Q)
    q = _load_tile(q_pointer, q_first, q_stride, rows, num_q, offsets)
    g = _load_tile(g_pointer, q_first, g_stride, rows, num_q, offsets)
    places = (q_first + rows) * num_heads + head
    sums = tl.load(sums_pointer + places, mask=rows < num_q, other=0.0)
    o = _load_tile(o_pointer, q_first, o_stride, rows, num_q, offsets)
    deltas = tl.sum(g.to(tl.float32) * o.to(tl.float32), 1)
    tl.store(deltas_pointer + places, deltas, mask=rows < num_q)
    dq = tl.zeros((TILE_Q, WIDTH), tl.float32)
    end = num_k
    if IS_CAUSAL:
        end = tl.minimum(num_k, begin + TILE_Q)
    for first in range(0, end, TILE_K):
        columns = first + tl.arange(0, TILE_K)
        k = _load_tile(k_pointer, k_first, k_stride, columns, num_k, offsets)
        v = _load_tile(v_pointer, k_first, v_stride, columns, num_k, offsets)
        scores = _scores(q, k, rows, columns, num_k, scale, IS_CAUSAL)
        weights = tl.exp2(scores - sums[:, None])
        slopes = weights * (tl.dot(g, tl.trans(v)) - deltas[:, None])
        dq += tl.dot(slopes.to(k.dtype), k)
    _store_tile(
        dq_pointer, q_first, dq_stride, rows, num_q, offsets, dq * (scale / 1.4426950408889634)
    )


@triton.jit
def _key_gradient_kernel(
    q_pointer, k_pointer, v_pointer, g_pointer, sums_pointer, deltas_pointer, dk_pointer,
    dv_pointer, q_starts, k_starts, q_stride, k_stride, v_stride, g_stride, dk_stride, dv_stride,
    num_heads, scale,
    IS_CAUSAL: tl.constexpr, WIDTH: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    q_first, k_first = tl.load(q_starts + sentence), tl.load(k_starts + sentence)
    num_q = tl.load(q_starts + sentence + 1) - q_first
    num_k = tl.load(k_starts + sentence + 1) - k_first
    begin = tl.program_id(1) * TILE_K
    if begin >= num_k:
        return
    offsets = head * WIDTH + tl.arange(0, WIDTH)
    columns = begin + tl.arange(0, TILE_K)
    k = _load_tile(k_pointer, k_first, k_stride, columns, num_k, offsets)
    v = _load_tile(v_pointer, k_first, v_stride, columns, num_k, offsets)
    dk = tl.zeros((TILE_K, WIDTH), tl.float32)
    dv = tl.zeros((TILE_K, WIDTH), tl.float32)
    low = 0
    if IS_CAUSAL:
        low = (begin // TILE_Q) * TILE_Q
    for first in range(low, num_q, TILE_Q):
        rows = first + tl.arange(0, TILE_Q)
        q = _load_tile(q_pointer, q_first, q_stride, rows, num_q, offsets)
        g = _load_tile(g_pointer, q_first, g_stride, rows, num_q, offsets)
        places = (q_first + rows) * num_heads + head
        sums = tl.load(sums_pointer + places, mask=rows < num_q, other=0.0)
        deltas = tl.load(deltas_pointer + places, mask=rows < num_q, other=0.0)
        scores = _scores(q, k, rows, columns, num_k, scale, IS_CAUSAL)
        weights = tl.exp2(scores - sums[:, None])
        weights = tl.where(rows[:, None] < num_q, weights, 0.0)
        dv += tl.dot(tl.trans(weights).to(g.dtype), g)
        slopes = weights * (tl.dot(g, tl.trans(v)) - deltas[:, None])
        dk += tl.dot(tl.trans(slopes).to(q.dtype), q)
    _store_tile(
        dk_pointer, k_first, dk_stride, columns, num_k, offsets, dk * (scale / 1.4426950408889634)
    )
    _store_tile(dv_pointer, k_first, dv_stride, columns, num_k, offsets, dv)


def _dense(heads: Tensor) -> Tensor:
    """Make sure that the heads of a token lie side by side; tokens may lie apart."""
    is_dense = heads.stride(2) == 1 and heads.stride(1) == heads.size(2)
    return heads if is_dense else heads.contiguous()


def _grid(starts: Tensor, num_heads: int, longest: int, tile: int) -> tuple[int, int]:
    return (starts.size(0) - 1) * num_heads, triton.cdiv(longest, tile)


def _tile(rows: Tensor, starts: Tensor, longest: int) -> int:
    """Choose the side of a tile, by the shapes alone: most sentences shall fill and fit one."""
    mean = rows.size(0) / max(starts.size(0) - 1, 1)
    fitting = min(triton.next_power_of_2(longest), triton.next_power_of_2(ceil(1.5 * mean)))
    return max(SMALLEST_TILE, min(LARGEST_TILE, fitting))


@torch.library.custom_op("attendo::attend_packed", mutates_args=())
def attend_packed(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest_query: int,
    longest_key: int,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor]:
    """Give the output (N, H, K) and, for the backward pass, log2 of each row's sum (N, H)."""
    query, key, value = _dense(query), _dense(key), _dense(value)
    num_heads, width = query.shape[1:]
    output = torch.empty_like(query, memory_format=torch.contiguous_format)
    sums = query.new_empty(query.shape[:2], dtype=torch.float32)
    tiles = (_tile(query, query_starts, longest_query), _tile(key, key_starts, longest_key))
    _forward_kernel[_grid(query_starts, num_heads, longest_query, tiles[0])](
        query, key, value, output, sums, query_starts, key_starts,
        query.stride(0), key.stride(0), value.stride(0), output.stride(0), num_heads,
        scale * LOG2_E, is_causal, width, *tiles, num_warps=4,
    )  # fmt: skip
    return output, sums


@attend_packed.register_fake
def _(query, key, value, query_starts, key_starts, longest_query, longest_key, is_causal, scale):
    output = torch.empty_like(query, memory_format=torch.contiguous_format)
    return output, query.new_empty(query.shape[:2], dtype=torch.float32)


@torch.library.custom_op("attendo::attend_packed_backward", mutates_args=())
def attend_packed_backward(
    gradient: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    output: Tensor,
    sums: Tensor,
    query_starts: Tensor,
    key_starts: Tensor,
    longest_query: int,
    longest_key: int,
    is_causal: bool,
    scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Give the gradients of query, key and value."""
    gradient, query, key, value = map(_dense, (gradient, query, key, value))
    num_heads, width = query.shape[1:]
    deltas = torch.empty_like(sums)  # the rows' products of output and its gradient
    dq, dk, dv = (
        torch.empty_like(side, memory_format=torch.contiguous_format)
        for side in (query, key, value)
    )
    tiles = (_tile(query, query_starts, longest_query), _tile(key, key_starts, longest_key))
    strides = (query.stride(0), key.stride(0), value.stride(0), gradient.stride(0))
    shared = (query, key, value, gradient, sums, deltas)
    options = (num_heads, scale * LOG2_E, is_causal, width, *tiles)
    _query_gradient_kernel[_grid(query_starts, num_heads, longest_query, tiles[0])](
        *shared,
        output,
        dq,
        query_starts,
        key_starts,
        *strides,
        output.stride(0),
        dq.stride(0),
        *options,
        num_warps=4,
    )
    _key_gradient_kernel[_grid(key_starts, num_heads, longest_key, tiles[1])](
        *shared, dk, dv, query_starts, key_starts, *strides, dk.stride(0), dv.stride(0), *options,
        num_warps=4,
    )  # fmt: skip
    return dq, dk, dv


@attend_packed_backward.register_fake
def _(gradient, query, key, value, *_others):
    return tuple(
        torch.empty_like(side, memory_format=torch.contiguous_format)
        for side in (query, key, value)
    )


def _keep(ctx, inputs, output):
    query, key, value, query_starts, key_starts, *ctx.options = inputs
    ctx.save_for_backward(query, key, value, *output, query_starts, key_starts)


def _go_back(ctx, gradient, _):
    found = attend_packed_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return (*found, *(None,) * 6)


attend_packed.register_autograd(_go_back, setup_context=_keep)
