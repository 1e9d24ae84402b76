"""Top-k log-probabilities from the logits in Triton, without a tensor of all log-probabilities.

One kernel reads the logits once, one chunk of a row per program: maximum and sum of exponentials of
the chunk, and the maximum of each of its blocks. Another one finds the best blocks of a row and the
best tokens in them, as `attendo.kernels.top_k.blockwise_topk` does.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from attendo.kernels.top_k import BLOCK_SIZE

CHUNK = 4 * BLOCK_SIZE
"""Logits per program of the first kernel."""


@triton.jit
def _mask_suppressed(x, columns, suppressed_pointer, NUM_SUPPRESSED: tl.constexpr):
    for index in tl.static_range(NUM_SUPPRESSED):
        token = tl.load(suppressed_pointer + index).to(tl.int32)  # as wide as a column index
        x = tl.where(columns == token, float("-inf"), x)
    return x


@triton.jit
def _scan_kernel(
    logits_pointer, suppressed_pointer, block_max_pointer, chunk_max_pointer, sums_pointer,
    num_blocks, VOCAB: tl.constexpr, NUM_SUPPRESSED: tl.constexpr, BLOCK_SIZE: tl.constexpr,
    CHUNK: tl.constexpr,
):  # fmt: skip
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    blocks = chunk * (CHUNK // BLOCK_SIZE) + tl.arange(0, CHUNK // BLOCK_SIZE)
    columns = blocks[:, None] * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)[None, :]
    inside = columns < VOCAB
    logits = logits_pointer + row * VOCAB
    x = tl.load(logits + columns, mask=inside, other=float("-inf")).to(tl.float32)
    block_levels = tl.maximum(tl.max(x, 1), -1e30)  # finite even for a block beyond the end
    sums = tl.sum(tl.exp(x - block_levels[:, None]), 1)
    largest = tl.max(block_levels, 0)
    chunk_index = row * tl.num_programs(1) + chunk
    tl.store(chunk_max_pointer + chunk_index, largest)
    tl.store(sums_pointer + chunk_index, tl.sum(sums * tl.exp(block_levels - largest), 0))
    block_max = tl.max(_mask_suppressed(x, columns, suppressed_pointer, NUM_SUPPRESSED), 1)
    tl.store(block_max_pointer + row * num_blocks + blocks, block_max, mask=blocks < num_blocks)


@triton.jit
def _select_kernel(
    logits_pointer, suppressed_pointer, block_max_pointer, chunk_max_pointer, sums_pointer,
    log_probs_pointer, tokens_pointer, num_blocks, num_chunks, VOCAB: tl.constexpr,
    NUM: tl.constexpr, NUM_PADDED: tl.constexpr, NUM_SUPPRESSED: tl.constexpr,
    BLOCK_SIZE: tl.constexpr, NUM_BLOCKS_PADDED: tl.constexpr, NUM_CHUNKS_PADDED: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chunks = tl.arange(0, NUM_CHUNKS_PADDED)
    chunk_indices = row * num_chunks + chunks
    chunk_max = tl.load(
        chunk_max_pointer + chunk_indices, mask=chunks < num_chunks, other=float("-inf")
    )
    sums = tl.load(sums_pointer + chunk_indices, mask=chunks < num_chunks, other=0.0)
    largest = tl.max(chunk_max, 0)
    log_sum = largest + tl.log(tl.sum(sums * tl.exp(chunk_max - largest), 0))
    blocks, ranks = tl.arange(0, NUM_BLOCKS_PADDED), tl.arange(0, NUM_PADDED)
    block_max = tl.load(
        block_max_pointer + row * num_blocks + blocks, mask=blocks < num_blocks, other=float("-inf")
    )
    chosen = tl.full((NUM_PADDED,), num_blocks, tl.int32)  # beyond the end: no block
    for rank in tl.static_range(NUM):
        block = tl.argmax(block_max, 0)
        best_block = tl.where(tl.max(block_max, 0) > float("-inf"), block, num_blocks)
        chosen = tl.where(ranks == rank, best_block, chosen)
        block_max = tl.where(blocks == block, float("-inf"), block_max)
    columns = chosen[:, None] * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)[None, :]
    x = tl.load(
        logits_pointer + row * VOCAB + columns, mask=columns < VOCAB, other=float("-inf")
    ).to(tl.float32)
    x = _mask_suppressed(x, columns, suppressed_pointer, NUM_SUPPRESSED)
    for rank in tl.static_range(NUM):
        best = tl.max(tl.max(x, 1), 0)
        token = tl.min(tl.min(tl.where(x == best, columns, VOCAB - 1), 1), 0)
        token = tl.minimum(token, VOCAB - 1)  # if all are NaN
        tl.store(log_probs_pointer + row * NUM + rank, best - log_sum)
        tl.store(tokens_pointer + row * NUM + rank, token.to(tl.int64))
        x = tl.where(columns == token, float("-inf"), x)


def fused_top_k_log_probs(logits: Tensor, num: int, suppressed: Tensor) -> tuple[Tensor, Tensor]:
    """Return the `num` best log-probabilities (N, num) of logits (N, V), float32, and their tokens.

    The tokens `suppressed` count in the normalization, but are not chosen.
    """
    num_rows, vocab_size = logits.shape
    num_blocks, num_chunks = triton.cdiv(vocab_size, BLOCK_SIZE), triton.cdiv(vocab_size, CHUNK)
    log_probs = torch.empty(num_rows, num, device=logits.device)
    tokens = torch.empty(num_rows, num, device=logits.device, dtype=torch.long)
    block_max = torch.empty(num_rows, num_blocks, device=logits.device)
    chunk_max, sums = torch.empty(2, num_rows, num_chunks, device=logits.device)
    _scan_kernel[(num_rows, num_chunks)](
        logits, suppressed, block_max, chunk_max, sums, num_blocks, vocab_size, len(suppressed),
        BLOCK_SIZE, CHUNK, num_warps=1,
    )  # fmt: skip
    _select_kernel[(num_rows,)](
        logits, suppressed, block_max, chunk_max, sums, log_probs, tokens, num_blocks, num_chunks,
        vocab_size, num, triton.next_power_of_2(num), len(suppressed), BLOCK_SIZE,
        triton.next_power_of_2(num_blocks), triton.next_power_of_2(num_chunks), num_warps=4,
    )  # fmt: skip
    return log_probs, tokens
