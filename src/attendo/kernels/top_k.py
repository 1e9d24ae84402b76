"""Top-k of a large vocabulary: first the best blocks, then the best tokens within them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.kernels.dispatch import DECODE_STEP_DTYPES, can_use_kernels

if TYPE_CHECKING:
    from torch import Tensor

NEG_INF = float("-inf")
BLOCK_SIZE = 256
"""Tokens per block, compared by their maximum first."""
MIN_NUM_BLOCKS = 16
"""With fewer blocks, a plain top-k is faster."""


def top_k_log_probs(logits: Tensor, num: int, suppressed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the `num` best log-probabilities (N, num) of logits (N, V), float32, and their tokens.

    The tokens `suppressed` count in the normalization, but are not chosen.
    """
    is_large = logits.size(1) // BLOCK_SIZE >= max(MIN_NUM_BLOCKS, 2 * num)
    if is_large and can_use_kernels(logits, DECODE_STEP_DTYPES):
        from attendo.kernels.top_k_triton import fused_top_k_log_probs

        return fused_top_k_log_probs(logits, num, suppressed)
    log_probs = logits.log_softmax(-1, dtype=torch.float32).index_fill_(1, suppressed, NEG_INF)
    if num > 1:
        return blockwise_topk(log_probs, num)
    token = blockwise_argmax(log_probs)[:, None]
    return log_probs.gather(1, token), token


def blockwise_topk(values: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """Return the `num` largest values (N, num) of (N, V) and their indices, best first.

    It is equal to `values.topk(num)`, except for the order of equal values. The best values are in
    the `num` blocks with the best maxima, so that only these are searched.

    >>> blockwise_topk(torch.tensor([[3.0, 9.0, 7.0]]), 2)
    (tensor([[9., 7.]]), tensor([[1, 2]]))
    """
    num_rows, size = values.shape
    num_blocks = size // BLOCK_SIZE
    if num_blocks < max(MIN_NUM_BLOCKS, 2 * num):
        best = values.topk(num)
        return best.values, best.indices
    blocks = values[:, : num_blocks * BLOCK_SIZE].view(num_rows, num_blocks, BLOCK_SIZE)
    top_blocks = blocks.amax(2).topk(num).indices  # (N, num)
    chosen = blocks.gather(1, top_blocks[:, :, None].expand(-1, -1, BLOCK_SIZE)).flatten(1)
    rest = values[:, num_blocks * BLOCK_SIZE :]
    top_values, index = torch.cat((chosen, rest), dim=1).topk(num)  # (N, num)
    is_rest = index >= chosen.size(1)
    block = top_blocks.gather(1, (index // BLOCK_SIZE).clamp(max=num - 1))
    block_indices = block * BLOCK_SIZE + index % BLOCK_SIZE
    rest_indices = index - chosen.size(1) + num_blocks * BLOCK_SIZE
    return top_values, torch.where(is_rest, rest_indices, block_indices)


def blockwise_argmax(values: Tensor) -> Tensor:
    """Return the index (N,) of the largest of values (N, V), the first of equal ones."""
    num_rows, size = values.shape
    num_blocks = size // BLOCK_SIZE
    if values.is_cuda or num_blocks < MIN_NUM_BLOCKS:  # one kernel is enough
        return values.argmax(1)
    blocks = values[:, : num_blocks * BLOCK_SIZE].view(num_rows, num_blocks, BLOCK_SIZE)
    block_max = blocks.amax(2)
    best_block = block_max.argmax(1, keepdim=True)  # (N, 1)
    within = blocks.gather(1, best_block[:, :, None].expand(-1, -1, BLOCK_SIZE)).squeeze(1)
    block_index = best_block.squeeze(1) * BLOCK_SIZE + within.argmax(1)
    rest = values[:, num_blocks * BLOCK_SIZE :]
    if not rest.size(1):
        return block_index
    last = rest.max(1)
    is_rest = last.values > block_max.amax(1)
    return torch.where(is_rest, num_blocks * BLOCK_SIZE + last.indices, block_index)
