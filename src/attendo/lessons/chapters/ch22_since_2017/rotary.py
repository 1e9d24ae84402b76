"""Rotary position embedding (RoPE), small enough to be followed by hand.

Attendo's models do not have it, so that it is computed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.lessons.blocks import Table
from attendo.lessons.prose import Prose
from attendo.model.positional_encoding import sinusoidal

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label

prose = Prose("attendo.lessons.chapters.ch22_since_2017")

BASE = 10_000.0
"""As in the sinusoids of the paper."""
SHIFTS = ((0, 0), (1, 1), (10, 10), (100, 100), (0, 1), (5, 0))
"""What is added to the positions of query and key: the first four keep their distance."""


def frequencies(d_k: int) -> Tensor:
    """Return the angle per position of each pair of dimensions.

    >>> frequencies(4)
    tensor([1.0000, 0.0100], dtype=torch.float64)
    """
    return BASE ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)


def rotate(vector: Tensor, position: int) -> Tensor:
    """Rotate each pair of dimensions (2i, 2i + 1) by its frequency times the position.

    >>> rotate(torch.tensor([1.0, 0.0]), 1)
    tensor([0.5403, 0.8415], dtype=torch.float64)
    """
    pairs = vector.double().view(-1, 2)
    angles = position * frequencies(len(vector))
    first, second = pairs[:, 0], pairs[:, 1]
    return torch.stack(
        (
            first * angles.cos() - second * angles.sin(),
            first * angles.sin() + second * angles.cos(),
        ),
        dim=-1,
    ).flatten()


def rotary_score(query: Tensor, key: Tensor, query_position: int, key_position: int) -> float:
    """Return the dot product of a query and a key after their rotations."""
    return float(rotate(query, query_position) @ rotate(key, key_position))


def added_score(query: Tensor, key: Tensor, query_position: int, key_position: int) -> float:
    """Return the dot product if the paper's sinusoids are added instead."""
    length = max(query_position, key_position) + 1
    table = sinusoidal(length, len(query), dtype=torch.float64)
    return float((query + table[query_position]) @ (key + table[key_position]))


def rotation_table(query: Tensor, position: int) -> Table:
    """Return the rotation of a query, pair by pair."""
    rotated = rotate(query, position)
    return Table(
        [prose("pair"), "θ", "m · θ", prose("before"), prose("after")],
        [
            [
                index + 1,
                float(theta),
                float(position * theta),
                _format_pair(query, index),
                _format_pair(rotated, index),
            ]
            for index, theta in enumerate(frequencies(len(query)))
        ],
        digits=4,
        title=prose("rotation-title", position=position),
    )


def _format_pair(vector: Tensor, index: int) -> str:
    first, second = vector[2 * index : 2 * index + 2].tolist()
    return f"({first:.4g}, {second:.4g})"


def score_table(query: Tensor, key: Tensor, query_position: int, key_position: int) -> Table:
    """Return the scores at several pairs of positions, rotated and with sinusoids added."""
    rows: list[list[Label | float | int | None]] = []
    for query_shift, key_shift in SHIFTS:
        m, n = query_position + query_shift, key_position + key_shift
        rows.append([m, n, m - n, rotary_score(query, key, m, n), added_score(query, key, m, n)])
    return Table(
        [
            prose("query-position"),
            prose("key-position"),
            "m − n",
            prose("rotated"),
            prose("sinusoids-added"),
        ],
        rows,
        digits=4,
        title=prose("scores-title"),
    )
