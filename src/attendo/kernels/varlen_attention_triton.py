"""FlashAttention over short packed sentences, in Triton (Dao et al. 2022, 2023).

Most sentences fit one tile, whose scores never leave registers, and one program processes one
sentence and one head; several programs share the tiles of a very long sentence. The backward pass
recomputes the scores. Queries, keys and values are in one tensor, as the projection outputs them,
and so are their gradients. The result equals the padded path of
`attendo.model.fast.packed_attention` up to the rounding of half precision.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_TILE, MAX_TILE = 16, 64
MAX_TILE_AREA = 64 * 64
"""Largest tile side times head size that fits the shared memory of smaller GPUs."""
WARPS = {16: (1, 1), 32: (1, 2), 64: (2, 4)}
"""Warps per program, forward and backward, by tile side."""
LENGTH_MARGIN = 1.3
"""Most sentences are shorter than the mean length times this factor."""
MAX_TILES_PER_PROGRAM = 8
"""Tiles of a sentence per program; longer sentences have several programs."""
LOG2_E = 1.4426950408889634


@triton.jit
def _scores(q, k, rows, columns, num_columns, scale, IS_CAUSAL: tl.constexpr):
    """Return the scores of a tile of queries and keys, in units of log 2; masked ones are -inf."""
    scores = tl.dot(q, tl.trans(k)) * scale
    visible = columns[None, :] < num_columns
    if IS_CAUSAL:
        visible = visible & (columns[None, :] <= rows[:, None])
    return tl.where(visible, scores, float("-inf"))


@triton.jit
def _locate_sequence(q_cu_seqlens, k_cu_seqlens, num_heads):
    """Return the head of a program, and the start and length of its sentence on both sides."""
    sentence, head = tl.program_id(0) // num_heads, tl.program_id(0) % num_heads
    q_first, k_first = tl.load(q_cu_seqlens + sentence), tl.load(k_cu_seqlens + sentence)
    num_q = tl.load(q_cu_seqlens + sentence + 1) - q_first
    num_k = tl.load(k_cu_seqlens + sentence + 1) - k_first
    return head, q_first, num_q, k_first, num_k


@triton.jit
def _load_tile(pointer, first, stride, positions, count, offsets):
    """Load rows `positions` of a sentence, zeros beyond its end."""
    rows = pointer + (first + positions)[:, None] * stride + offsets[None, :]
    return tl.load(rows, mask=positions[:, None] < count, other=0.0)


@triton.jit
def _store_tile(pointer, first, stride, positions, count, offsets, values):
    rows = pointer + (first + positions)[:, None] * stride + offsets[None, :]
    tl.store(rows, values.to(pointer.dtype.element_ty), mask=positions[:, None] < count)


@triton.jit
def _forward_kernel(
    q_pointer, k_pointer, v_pointer, o_pointer, lse_pointer, q_cu_seqlens, k_cu_seqlens,
    q_stride, k_stride, o_stride, num_heads, scale,
    IS_CAUSAL: tl.constexpr, WIDTH: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Attend from tiles of queries to all keys of their sentence; store log2 of each row's sum."""
    head, q_first, num_q, k_first, num_k = _locate_sequence(q_cu_seqlens, k_cu_seqlens, num_heads)
    offsets = head * WIDTH + tl.arange(0, WIDTH)
    for begin in range(tl.program_id(1) * TILE_Q, num_q, tl.num_programs(1) * TILE_Q):
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
            v = _load_tile(v_pointer, k_first, k_stride, columns, num_k, offsets)
            scores = _scores(q, k, rows, columns, num_k, scale, IS_CAUSAL)
            larger = tl.maximum(largest, tl.max(scores, 1))
            weights = tl.exp2(scores - larger[:, None])
            rescale = tl.exp2(largest - larger)
            total = total * rescale + tl.sum(weights, 1)
            output = output * rescale[:, None] + tl.dot(weights.to(v.dtype), v)
            largest = larger
        has_any = total > 0.0  # the output is zero if there are no keys
        total = tl.where(has_any, total, 1.0)
        output = tl.where(has_any[:, None], output / total[:, None], 0.0)
        _store_tile(o_pointer, q_first, o_stride, rows, num_q, offsets, output)
        lse = tl.where(has_any, largest + tl.log2(total), 0.0)
        tl.store(lse_pointer + (q_first + rows) * num_heads + head, lse, mask=rows < num_q)


@triton.jit
def _load_queries(
    q_pointer, g_pointer, o_pointer, lse_pointer, first, q_stride, o_stride, rows, count, offsets,
    num_heads, head,
):  # fmt: skip
    """Load a tile of queries, the output's gradient, its product with the output, and the sums."""
    q = _load_tile(q_pointer, first, q_stride, rows, count, offsets)
    g = _load_tile(g_pointer, first, o_stride, rows, count, offsets)
    o = _load_tile(o_pointer, first, o_stride, rows, count, offsets)
    deltas = tl.sum(g.to(tl.float32) * o.to(tl.float32), 1)
    lse_offsets = (first + rows) * num_heads + head
    return q, g, deltas, tl.load(lse_pointer + lse_offsets, mask=rows < count, other=0.0)


@triton.jit
def _score_gradients(
    q, k, v, g, deltas, lse, rows, columns, num_q, num_k, scale, IS_CAUSAL: tl.constexpr
):  # fmt: skip
    """Recompute the weights of a tile; also return the gradient of its scores."""
    scores = _scores(q, k, rows, columns, num_k, scale, IS_CAUSAL)
    weights = tl.where(rows[:, None] < num_q, tl.exp2(scores - lse[:, None]), 0.0)
    return weights, weights * (tl.dot(g, tl.trans(v)) - deltas[:, None])


@triton.jit
def _backward_kernel(
    q_pointer, k_pointer, v_pointer, g_pointer, o_pointer, lse_pointer, dq_pointer, dk_pointer,
    dv_pointer, q_cu_seqlens, k_cu_seqlens, q_stride, k_stride, o_stride, num_heads, scale, factor,
    IS_CAUSAL: tl.constexpr, WIDTH: tl.constexpr, TILE_Q: tl.constexpr, TILE_K: tl.constexpr,
):  # fmt: skip
    """Compute the gradients of queries, keys and values, in the layout of their tensors."""
    head, q_first, num_q, k_first, num_k = _locate_sequence(q_cu_seqlens, k_cu_seqlens, num_heads)
    offsets = head * WIDTH + tl.arange(0, WIDTH)
    if (num_q <= TILE_Q) & (num_k <= TILE_K):  # one tile has the whole sentence
        if tl.program_id(1) == 0:
            rows, columns = tl.arange(0, TILE_Q), tl.arange(0, TILE_K)
            k = _load_tile(k_pointer, k_first, k_stride, columns, num_k, offsets)
            v = _load_tile(v_pointer, k_first, k_stride, columns, num_k, offsets)
            q, g, deltas, lse = _load_queries(
                q_pointer, g_pointer, o_pointer, lse_pointer, q_first, q_stride, o_stride, rows,
                num_q, offsets, num_heads, head,
            )  # fmt: skip
            weights, d_scores = _score_gradients(
                q, k, v, g, deltas, lse, rows, columns, num_q, num_k, scale, IS_CAUSAL
            )
            dv = tl.dot(tl.trans(weights).to(g.dtype), g)
            dk = tl.dot(tl.trans(d_scores).to(q.dtype), q)
            dq = tl.dot(d_scores.to(k.dtype), k)
            _store_tile(dv_pointer, k_first, k_stride, columns, num_k, offsets, dv)
            _store_tile(dk_pointer, k_first, k_stride, columns, num_k, offsets, dk * factor)
            _store_tile(dq_pointer, q_first, q_stride, rows, num_q, offsets, dq * factor)
    else:
        for begin in range(tl.program_id(1) * TILE_Q, num_q, tl.num_programs(1) * TILE_Q):
            rows = begin + tl.arange(0, TILE_Q)
            q, g, deltas, lse = _load_queries(
                q_pointer, g_pointer, o_pointer, lse_pointer, q_first, q_stride, o_stride, rows,
                num_q, offsets, num_heads, head,
            )  # fmt: skip
            dq = tl.zeros((TILE_Q, WIDTH), tl.float32)
            end = num_k
            if IS_CAUSAL:
                end = tl.minimum(num_k, begin + TILE_Q)
            for first in range(0, end, TILE_K):
                columns = first + tl.arange(0, TILE_K)
                k = _load_tile(k_pointer, k_first, k_stride, columns, num_k, offsets)
                v = _load_tile(v_pointer, k_first, k_stride, columns, num_k, offsets)
                _, d_scores = _score_gradients(
                    q, k, v, g, deltas, lse, rows, columns, num_q, num_k, scale, IS_CAUSAL
                )
                dq += tl.dot(d_scores.to(k.dtype), k)
            _store_tile(dq_pointer, q_first, q_stride, rows, num_q, offsets, dq * factor)
        for begin in range(tl.program_id(1) * TILE_K, num_k, tl.num_programs(1) * TILE_K):
            columns = begin + tl.arange(0, TILE_K)
            k = _load_tile(k_pointer, k_first, k_stride, columns, num_k, offsets)
            v = _load_tile(v_pointer, k_first, k_stride, columns, num_k, offsets)
            dk = tl.zeros((TILE_K, WIDTH), tl.float32)
            dv = tl.zeros((TILE_K, WIDTH), tl.float32)
            low = 0
            if IS_CAUSAL:
                low = (begin // TILE_Q) * TILE_Q
            for first in range(low, num_q, TILE_Q):
                rows = first + tl.arange(0, TILE_Q)
                q, g, deltas, lse = _load_queries(
                    q_pointer, g_pointer, o_pointer, lse_pointer, q_first, q_stride, o_stride,
                    rows, num_q, offsets, num_heads, head,
                )  # fmt: skip
                weights, d_scores = _score_gradients(
                    q, k, v, g, deltas, lse, rows, columns, num_q, num_k, scale, IS_CAUSAL
                )
                dv += tl.dot(tl.trans(weights).to(g.dtype), g)
                dk += tl.dot(tl.trans(d_scores).to(q.dtype), q)
            _store_tile(dk_pointer, k_first, k_stride, columns, num_k, offsets, dk * factor)
            _store_tile(dv_pointer, k_first, k_stride, columns, num_k, offsets, dv)


class LaunchPlan(NamedTuple):
    """Grid and tiles of a launch; they depend on shapes only, as CUDA graphs require."""

    grid: tuple[int, int]
    tiles: tuple[int, int]
    num_warps: int

    @classmethod
    def for_shapes(
        cls, sides: Sequence[Tensor], cu_seqlens: Sequence[Tensor], max_seqlens: Sequence[int], *,
        is_backward: bool,
    ) -> LaunchPlan:  # fmt: skip
        """Return the plan for queries and keys (N, ..., H, K) of `cu_seqlens` (B + 1,)."""
        both = zip(sides, cu_seqlens, max_seqlens, strict=True)
        tiles = tuple(_tile_size(*side, is_backward=is_backward) for side in both)
        num_tiles = max(triton.cdiv(*side) for side in zip(max_seqlens, tiles, strict=True))
        num_programs = max(1, triton.cdiv(num_tiles, MAX_TILES_PER_PROGRAM))
        num_sentences, num_heads = cu_seqlens[0].size(0) - 1, sides[0].size(-2)
        warps = WARPS[max(tiles)][is_backward]
        return cls((num_sentences * num_heads, num_programs), tiles, warps)


def _tile_size(rows: Tensor, cu_seqlens: Tensor, max_seqlen: int, *, is_backward: bool) -> int:
    """Return the tile side, such that most sentences fill and fit one tile.

    The backward pass reads sentences of several tiles several times: large tiles are better there.
    """
    mean = rows.size(0) / max(cu_seqlens.size(0) - 1, 1)
    fitting = min(
        triton.next_power_of_2(max_seqlen), triton.next_power_of_2(ceil(LENGTH_MARGIN * mean))
    )
    if is_backward and MIN_TILE < fitting < max_seqlen:
        fitting = MAX_TILE
    return max(MIN_TILE, min(MAX_TILE, MAX_TILE_AREA // rows.size(-1), fitting))


def varlen_attention(
    query: Tensor, kv: Tensor, cu_seqlens: Sequence[Tensor], max_seqlens: Sequence[int],
    is_causal: bool, scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attend from query (N, H, K), which may be strided, to keys and values (M, 2, H, K)."""
    num_heads, width = query.shape[1:]
    output = query.new_empty(query.shape)
    lse = query.new_empty(query.shape[:2], dtype=torch.float32)
    plan = LaunchPlan.for_shapes((query, kv), cu_seqlens, max_seqlens, is_backward=False)
    _forward_kernel[plan.grid](
        query, kv[:, 0], kv[:, 1], output, lse, *cu_seqlens, query.stride(0), kv.stride(0),
        output.stride(0), num_heads, scale * LOG2_E, is_causal, width, *plan.tiles,
        num_warps=plan.num_warps,
    )  # fmt: skip
    return output, lse


def varlen_attention_backward(
    gradient: Tensor, query: Tensor, kv: Tensor, output: Tensor, lse: Tensor, dq: Tensor,
    d_kv: Tensor, cu_seqlens: Sequence[Tensor], max_seqlens: Sequence[int], is_causal: bool,
    scale: float,
) -> None:  # fmt: skip
    """Write the gradients into dq and d_kv, which have the layout of query and kv."""
    num_heads, width = query.shape[1:]
    plan = LaunchPlan.for_shapes((query, kv), cu_seqlens, max_seqlens, is_backward=True)
    _backward_kernel[plan.grid](
        query, kv[:, 0], kv[:, 1], gradient.contiguous(), output, lse, dq, d_kv[:, 0],
        d_kv[:, 1], *cu_seqlens, query.stride(0), kv.stride(0), output.stride(0), num_heads,
        scale * LOG2_E, scale, is_causal, width, *plan.tiles, num_warps=plan.num_warps,
    )  # fmt: skip
