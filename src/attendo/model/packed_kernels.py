"""Packed attention by its kernels, as operations that autograd and `torch.compile` know.

Queries, keys and values come as their projection left them, side by side in one tensor, and so does
their gradient: nothing is cut apart or joined on the way.
"""

from __future__ import annotations

import torch
from torch import Tensor

from attendo.model.tile_kernels import attend, go_back


@torch.library.custom_op("attendo::attend_within", mutates_args=())
def attend_within(
    joined: Tensor, starts: Tensor, longest: int, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Attend within sentences: queries, keys and values (N, 3, H, K) give (N, H, K).

    And, for the backward pass, log2 of each row's sum (N, H).
    """
    joined = joined.contiguous()
    sides = (joined[:, 0], joined[:, 1:])
    return attend(*sides, (starts, starts), (longest, longest), is_causal, scale)


@attend_within.register_fake
def _(joined, starts, longest, is_causal, scale):
    output = joined.new_empty(joined.size(0), *joined.shape[2:])
    return output, joined.new_empty(output.shape[:2], dtype=torch.float32)


@torch.library.custom_op("attendo::attend_within_backward", mutates_args=())
def attend_within_backward(
    gradient: Tensor, joined: Tensor, output: Tensor, sums: Tensor, starts: Tensor, longest: int,
    is_causal: bool, scale: float,
) -> Tensor:  # fmt: skip
    """Give the gradient of queries, keys and values together."""
    joined = joined.contiguous()
    found = torch.empty_like(joined)
    go_back(
        gradient, joined[:, 0], joined[:, 1:], output, sums, found[:, 0], found[:, 1:],
        (starts, starts), (longest, longest), is_causal, scale,
    )  # fmt: skip
    return found


@attend_within_backward.register_fake
def _(gradient, joined, *_others):
    return joined.new_empty(joined.shape)


@torch.library.custom_op("attendo::attend_across", mutates_args=())
def attend_across(
    query: Tensor, pair: Tensor, query_starts: Tensor, key_starts: Tensor, longest_query: int,
    longest_key: int, is_causal: bool, scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Attend from query (N, H, K) to keys and values (M, 2, H, K) of the same sentence.

    Gives (N, H, K) and, for the backward pass, log2 of each row's sum (N, H).
    """
    sides = (query.contiguous(), pair.contiguous())
    longest = (longest_query, longest_key)
    return attend(*sides, (query_starts, key_starts), longest, is_causal, scale)


@attend_across.register_fake
def _(query, pair, *_others):
    return query.new_empty(query.shape), query.new_empty(query.shape[:2], dtype=torch.float32)


@torch.library.custom_op("attendo::attend_across_backward", mutates_args=())
def attend_across_backward(
    gradient: Tensor, query: Tensor, pair: Tensor, output: Tensor, sums: Tensor,
    query_starts: Tensor, key_starts: Tensor, longest_query: int, longest_key: int,
    is_causal: bool, scale: float,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Give the gradients of the queries, and of keys and values together."""
    query, pair = query.contiguous(), pair.contiguous()
    dq, d_pair = torch.empty_like(query), torch.empty_like(pair)
    go_back(
        gradient, query, pair, output, sums, dq, d_pair, (query_starts, key_starts),
        (longest_query, longest_key), is_causal, scale,
    )  # fmt: skip
    return dq, d_pair


@attend_across_backward.register_fake
def _(gradient, query, pair, *_others):
    return query.new_empty(query.shape), pair.new_empty(pair.shape)


def _keep_joined(ctx, inputs, output):
    joined, starts, *ctx.options = inputs
    ctx.save_for_backward(joined, *output, starts)


def _go_back_within(ctx, gradient, _):
    found = attend_within_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return found, *(None,) * 4


def _keep_sides(ctx, inputs, output):
    query, pair, query_starts, key_starts, *ctx.options = inputs
    ctx.save_for_backward(query, pair, *output, query_starts, key_starts)


def _go_back_across(ctx, gradient, _):
    found = attend_across_backward(gradient, *ctx.saved_tensors, *ctx.options)
    return *found, *(None,) * 6


attend_within.register_autograd(_go_back_within, setup_context=_keep_joined)
attend_across.register_autograd(_go_back_across, setup_context=_keep_sides)
