"""The best few of a large vocabulary, by way of the best pieces of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.core.kernels import STEP_TYPES, has_kernels
from attendo.decoding.rules import NEVER

if TYPE_CHECKING:
    from torch import Tensor

PIECE = 256
"""Neighbouring tokens that are compared as one at first."""
NUM_PIECES = 16
"""Pieces below which the detour is longer."""


def find_best_tokens(logits: Tensor, num: int, never: Tensor) -> tuple[Tensor, Tensor]:
    """Give the `num` best log-probabilities (N, num) of logits (N, V), float32, and their tokens.

    The tokens `never` count in the sum of all, and are not chosen.
    """
    is_large = logits.size(1) // PIECE >= max(NUM_PIECES, 2 * num)
    if is_large and has_kernels(logits, STEP_TYPES):
        from attendo.decoding.best_kernels import find_best_of_logits

        return find_best_of_logits(logits, num, never)
    log_probs = logits.log_softmax(-1, dtype=torch.float32).index_fill_(1, never, NEVER)
    if num > 1:
        return find_best(log_probs, num)
    token = find_likeliest(log_probs)[:, None]
    return log_probs.gather(1, token), token


def find_best(values: Tensor, num: int) -> tuple[Tensor, Tensor]:
    """Give the `num` largest of values (N, V) and their places, best first: (N, num) each.

    The same as `values.topk(num)`, but for the order of equals. The best of all are within the
    pieces whose own best are the best, so that only as many pieces are searched through.

    >>> find_best(torch.tensor([[3.0, 9.0, 7.0]]), 2)
    (tensor([[9., 7.]]), tensor([[1, 2]]))
    """
    num_rows, size = values.shape
    num_pieces = size // PIECE
    if num_pieces < max(NUM_PIECES, 2 * num):
        best = values.topk(num)
        return best.values, best.indices
    whole = values[:, : num_pieces * PIECE].view(num_rows, num_pieces, PIECE)
    pieces = whole.amax(2).topk(num).indices  # (N, num)
    chosen = whole.gather(1, pieces[:, :, None].expand(-1, -1, PIECE)).flatten(1)
    rest = values[:, num_pieces * PIECE :]
    found, index = torch.cat((chosen, rest), dim=1).topk(num)  # (N, num)
    is_rest = index >= chosen.size(1)
    piece = pieces.gather(1, (index // PIECE).clamp(max=num - 1))
    places = piece * PIECE + index % PIECE
    past = index - chosen.size(1) + num_pieces * PIECE
    return found, torch.where(is_rest, past, places)


def find_likeliest(values: Tensor) -> Tensor:
    """Give the place (N,) of the largest of values (N, V), the first of equals."""
    num_rows, size = values.shape
    num_pieces = size // PIECE
    if values.is_cuda or num_pieces < NUM_PIECES:  # there one kernel does it
        return values.argmax(1)
    whole = values[:, : num_pieces * PIECE].view(num_rows, num_pieces, PIECE)
    heights = whole.amax(2)
    piece = heights.argmax(1, keepdim=True)  # (N, 1)
    within = whole.gather(1, piece[:, :, None].expand(-1, -1, PIECE)).squeeze(1)
    place = piece.squeeze(1) * PIECE + within.argmax(1)
    rest = values[:, num_pieces * PIECE :]
    if not rest.size(1):
        return place
    last = rest.max(1)
    is_rest = last.values > heights.amax(1)
    return torch.where(is_rest, num_pieces * PIECE + last.indices, place)
