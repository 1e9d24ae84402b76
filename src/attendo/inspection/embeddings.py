"""The embedding table and positional encoding of a model.

The result is None for a model without `src_embedding`, `tgt_embedding` or `src_positions`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor

from attendo.inspection.array_codec import encode_positions
from attendo.model.positional_encoding import (
    ConcatenatedPositions,
    LearnedPositions,
    SinusoidalPositions,
)
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.core.protocols import Seq2SeqModel
    from attendo.text.tokenizer import Tokenizer

NUM_NEIGHBORS = 5
NUM_POSITIONS = 64
"""Minimum number of recorded positions."""
SPECIAL_IDS = (PAD_ID, UNK_ID, START_ID, END_ID)
DIGITS = 4


def cosine_similarity(vectors: Tensor) -> Tensor:
    """Return the cosine similarity of each pair of vectors (n, D): (n, n).

    >>> cosine_similarity(torch.tensor([[1.0, 0.0], [0.0, 3.0], [2.0, 0.0]])).tolist()
    [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    unit = F.normalize(vectors.float(), dim=-1)
    return unit @ unit.T


@torch.inference_mode()
def nearest_neighbors(
    table: Tensor, ids: Sequence[int], *, count: int = NUM_NEIGHBORS
) -> list[list[tuple[int, float]]]:
    """Return, for each id, its nearest neighbors in a table (V, D) with cosines, nearest first.

    The special symbols (padding, unknown, start, end) are excluded.
    """
    query_ids = sorted({number for number in ids if number not in SPECIAL_IDS})
    if not query_ids:
        return [[] for _ in ids]
    unit = F.normalize(table.float(), dim=-1)  # (V, D)
    cosines = unit[query_ids] @ unit.T  # (n, V)
    cosines[:, list(SPECIAL_IDS)] = -torch.inf
    cosines[range(len(query_ids)), query_ids] = -torch.inf
    best = cosines.topk(min(count, cosines.size(1)))
    neighbors = {
        number: [pair for pair in zip(near, values, strict=True) if pair[1] > -torch.inf]
        for number, near, values in zip(
            query_ids, best.indices.tolist(), best.values.tolist(), strict=True
        )
    }
    return [neighbors.get(number, []) for number in ids]


def describe_embeddings(
    model: Seq2SeqModel[Any], tokenizer: Tokenizer, src_ids: Sequence[int], tgt_ids: Sequence[int]
) -> dict[str, Any] | None:
    """Return the section `embeddings` of a record."""
    sides = {
        "src": ("src_embedding", src_ids, tokenizer.src_pieces),
        "tgt": ("tgt_embedding", tgt_ids, tokenizer.tgt_pieces),
    }
    section = {}
    for side, (name, ids, pieces) in sides.items():
        table = getattr(getattr(model, name, None), "weight", None)
        if not isinstance(table, Tensor):
            return None
        section[side] = _add_pieces(nearest_neighbors(table, ids), pieces)
    return section


def max_positions(model: Seq2SeqModel[Any]) -> int | None:
    """Return the number of learned positions, None if positions are unlimited."""
    tables = [
        positions.weight.size(0)
        for name in ("src_positions", "tgt_positions")
        if isinstance(positions := getattr(model, name, None), LearnedPositions)
    ]
    return min(tables, default=None)


@torch.inference_mode()
def describe_positions(model: Seq2SeqModel[Any], num_positions: int) -> dict[str, Any] | None:
    """Return the section `positions` of a record."""
    positions = getattr(model, "src_positions", None)
    if isinstance(positions, LearnedPositions):
        table = positions.weight[:num_positions].float().cpu()
        return encode_positions(table.numpy(), kind="learned", layout=None)
    if not isinstance(positions, SinusoidalPositions):
        return None
    kind = "concatenated" if isinstance(positions, ConcatenatedPositions) else "sinusoidal"
    table = positions.table(torch.zeros(1, num_positions, positions.d_model), 0)
    return encode_positions(table.numpy(), kind=kind, layout=positions.layout)


def _add_pieces(
    neighbors: list[list[tuple[int, float]]], pieces: Callable[[list[int]], list[str]]
) -> list[list[dict[str, Any]]]:
    """Return each id with its piece."""
    return [
        [
            {"id": number, "piece": piece, "similarity": round(cosine, DIGITS)}
            for (number, cosine), piece in zip(
                row, pieces([number for number, _ in row]), strict=True
            )
        ]
        for row in neighbors
    ]
