"""The best few tokens straight from the logits, in Triton: no log-probabilities of all are made.

One kernel reads the logits once, a chunk of a row a program: the largest and the sum of
exponentials of the chunk, and the largest of each piece of it. Another finds, for a row, the best
pieces and the best tokens in them, as `best.find_best` does.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from attendo.decoding.best import PIECE

CHUNK = 4 * PIECE


@triton.jit
def _drop_unwanted(x, columns, never_pointer, NUM_NEVER: tl.constexpr):
    for place in tl.static_range(NUM_NEVER):
        unwanted = tl.load(never_pointer + place).to(tl.int32)  # as wide as a place
        x = tl.where(columns == unwanted, float("-inf"), x)
    return x


@triton.jit
def _scan_kernel(
    logits_pointer, never_pointer, heights_pointer, largest_pointer, sums_pointer, num_pieces,
    VOCAB: tl.constexpr, NUM_NEVER: tl.constexpr, PIECE: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    pieces = chunk * (CHUNK // PIECE) + tl.arange(0, CHUNK // PIECE)
    columns = pieces[:, None] * PIECE + tl.arange(0, PIECE)[None, :]
    inside = columns < VOCAB
    logits = logits_pointer + row * VOCAB
    x = tl.load(logits + columns, mask=inside, other=float("-inf")).to(tl.float32)
    levels = tl.maximum(tl.max(x, 1), -1e30)  # of a piece beyond the end, too
    sums = tl.sum(tl.exp(x - levels[:, None]), 1)
    largest = tl.max(levels, 0)
    place = row * tl.num_programs(1) + chunk
    tl.store(largest_pointer + place, largest)
    tl.store(sums_pointer + place, tl.sum(sums * tl.exp(levels - largest), 0))
    heights = tl.max(_drop_unwanted(x, columns, never_pointer, NUM_NEVER), 1)
    tl.store(heights_pointer + row * num_pieces + pieces, heights, mask=pieces < num_pieces)


@triton.jit
def _pick_kernel(
    logits_pointer, never_pointer, heights_pointer, largest_pointer, sums_pointer, figures_pointer,
    tokens_pointer, num_pieces, num_chunks, VOCAB: tl.constexpr, NUM: tl.constexpr,
    ROOM: tl.constexpr, NUM_NEVER: tl.constexpr, PIECE: tl.constexpr, PIECES: tl.constexpr,
    CHUNKS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    chunks = tl.arange(0, CHUNKS)
    places = row * num_chunks + chunks
    levels = tl.load(largest_pointer + places, mask=chunks < num_chunks, other=float("-inf"))
    sums = tl.load(sums_pointer + places, mask=chunks < num_chunks, other=0.0)
    largest = tl.max(levels, 0)
    log_sum = largest + tl.log(tl.sum(sums * tl.exp(levels - largest), 0))
    pieces, ranks = tl.arange(0, PIECES), tl.arange(0, ROOM)
    heights = tl.load(
        heights_pointer + row * num_pieces + pieces, mask=pieces < num_pieces, other=float("-inf")
    )
    chosen = tl.full((ROOM,), num_pieces, tl.int32)  # beyond the end: nothing there
    for rank in tl.static_range(NUM):
        piece = tl.argmax(heights, 0)
        found = tl.where(tl.max(heights, 0) > float("-inf"), piece, num_pieces)
        chosen = tl.where(ranks == rank, found, chosen)
        heights = tl.where(pieces == piece, float("-inf"), heights)
    columns = chosen[:, None] * PIECE + tl.arange(0, PIECE)[None, :]
    x = tl.load(
        logits_pointer + row * VOCAB + columns, mask=columns < VOCAB, other=float("-inf")
    ).to(tl.float32)
    x = _drop_unwanted(x, columns, never_pointer, NUM_NEVER)
    for rank in tl.static_range(NUM):
        best = tl.max(tl.max(x, 1), 0)
        token = tl.min(tl.min(tl.where(x == best, columns, VOCAB - 1), 1), 0)
        token = tl.minimum(token, VOCAB - 1)  # where nothing is a number
        tl.store(figures_pointer + row * NUM + rank, best - log_sum)
        tl.store(tokens_pointer + row * NUM + rank, token.to(tl.int64))
        x = tl.where(columns == token, float("-inf"), x)


def find_best_of_logits(logits: Tensor, num: int, never: Tensor) -> tuple[Tensor, Tensor]:
    """Give the `num` best log-probabilities (N, num) of logits (N, V), float32, and their tokens.

    The tokens `never` count in the sum of all, and are not chosen.
    """
    num_rows, vocab_size = logits.shape
    num_pieces, num_chunks = triton.cdiv(vocab_size, PIECE), triton.cdiv(vocab_size, CHUNK)
    figures = torch.empty(num_rows, num, device=logits.device)
    tokens = torch.empty(num_rows, num, device=logits.device, dtype=torch.long)
    heights = torch.empty(num_rows, num_pieces, device=logits.device)
    levels, sums = torch.empty(2, num_rows, num_chunks, device=logits.device)
    _scan_kernel[(num_rows, num_chunks)](
        logits, never, heights, levels, sums, num_pieces, vocab_size, len(never), PIECE, CHUNK,
        num_warps=1,
    )  # fmt: skip
    _pick_kernel[(num_rows,)](
        logits, never, heights, levels, sums, figures, tokens, num_pieces, num_chunks, vocab_size,
        num, triton.next_power_of_2(num), len(never), PIECE, triton.next_power_of_2(num_pieces),
        triton.next_power_of_2(num_chunks), num_warps=4,
    )  # fmt: skip
    return figures, tokens
