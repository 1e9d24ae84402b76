"""Metrics of attention heads: sharpness, distance, agreement, similarity to an alignment.

Each function takes the weights of one kind, (layers, heads, rows, columns), whose rows sum to one,
and returns one value per head, (layers, heads); means are over rows.
`compute_head_metrics` returns all in the form of the record (`attendo.inspection.record`),
[layer][head]::

    {"entropy": 0.7,      nats
     "focus": 0.6,        0 if spread evenly over the allowed columns, 1 if on a single one
     "distance": 1.2,     columns from the row's own position (cross: from the diagonal)
     "agreement": 0.8,    1 - the Jensen-Shannon distance (base 2) to the mean of the layer's other
                          heads; 1 for a single head
     "previous": 0.1, "same": 0.2, "next": 0.0,   share of the weight on these columns, as seen
                          from the row's own position; null for cross
     "first": 0.6, "end": 0.3,                    ... on the first column and on the end symbol
     "alignment": null}   cross only: similarity to a token alignment

In decoder_self the row's own position is the token that it reads, the one before the token that it
predicts; the end symbol is never read, so its share is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind

    Weights = NDArray[np.floating[Any]]
    Metrics = NDArray[np.float64]

DIGITS = 4


def compute_head_metrics(
    kind: AttentionKind, weights: Weights, *, width: int | None = None
) -> list[list[dict[str, float | None]]]:
    """Return all metrics of every head, [layer][head].

    `width` is that of local attention (`TransformerConfig.attention_width`).
    """
    precise = np.asarray(weights, dtype=np.float64)
    rows, columns = precise.shape[2:]
    metrics = {
        "entropy": entropy(precise).mean(-1),
        "focus": focus(precise, count_visible_columns(kind, rows, columns, width=width)),
        "distance": distance(precise, is_cross=kind == "cross"),
        "agreement": agreement(precise),
        **_weight_shares(kind, precise),
    }
    if kind == "cross":
        metrics["alignment"] = alignment(precise)
    names = ("entropy", "focus", "distance", "agreement", "previous", "same", "next", "first")
    return [
        [
            {
                name: round(float(metrics[name][layer, head]), DIGITS) if name in metrics else None
                for name in (*names, "end", "alignment")
            }
            for head in range(precise.shape[1])
        ]
        for layer in range(precise.shape[0])
    ]


def count_visible_columns(
    kind: AttentionKind, rows: int, columns: int, *, width: int | None = None
) -> NDArray[np.int64]:
    """Return the number of columns that each row may attend to.

    >>> count_visible_columns("decoder_self", 4, 4).tolist()
    [1, 2, 3, 4]
    """
    row, column = np.arange(rows)[:, None], np.arange(columns)
    is_visible = np.ones((rows, columns), dtype=bool)
    if kind == "decoder_self":
        is_visible &= column <= row
    if kind != "cross" and width is not None:
        is_visible &= np.abs(row - column) <= width // 2
    counts: NDArray[np.int64] = is_visible.sum(-1)
    return counts


def entropy(weights: Weights) -> Metrics:
    """Return the entropy of every row, in nats: (layers, heads, rows).

    >>> entropy(np.array([[[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]]])).round(4).tolist()
    [[[0.6931, 0.0]]]
    """
    logs = np.log(weights, where=weights > 0, out=np.zeros(weights.shape))
    entropies: Metrics = -(weights * logs).sum(-1)
    return np.maximum(entropies, 0.0)  # no -0.0


def focus(weights: Weights, allowed: NDArray[np.int64]) -> Metrics:
    """Return 1 - entropy / log(allowed columns), over the rows that have a choice."""
    has_choice = allowed > 1
    if not has_choice.any():
        return np.ones(weights.shape[:2])
    spread = entropy(weights[:, :, has_choice]) / np.log(allowed[has_choice])
    focused: Metrics = 1.0 - spread.mean(-1)
    return focused.clip(0.0, 1.0)


def distance(weights: Weights, *, is_cross: bool = False) -> Metrics:
    """Return the mean distance of the weight from the row's own position, in columns."""
    rows, columns = weights.shape[2:]
    row_positions = np.arange(rows, dtype=np.float64)
    if is_cross:  # the diagonal from the first to the last token of both sides
        row_positions *= (columns - 1) / max(rows - 1, 1)
    distances = np.abs(row_positions[:, None] - np.arange(columns))
    mean: Metrics = (weights * distances).sum(-1).mean(-1)
    return mean


def agreement(weights: Weights) -> Metrics:
    """Return 1 - the Jensen-Shannon distance to the mean of the layer's other heads."""
    num_heads = weights.shape[1]
    if num_heads == 1:
        return np.ones(weights.shape[:2])
    others = (weights.sum(1, keepdims=True) - weights) / (num_heads - 1)
    others = others.clip(0.0)  # rounding may leave negative values
    divergence = entropy((weights + others) / 2) - (entropy(weights) + entropy(others)) / 2
    mean: Metrics = np.sqrt((divergence / np.log(2)).clip(0.0, 1.0)).mean(-1)
    return 1.0 - mean


def alignment(weights: Weights) -> Metrics:
    """Return 2 x links / (rows + columns): a link is the best of its row and of its column.

    >>> alignment(np.eye(3)[None, None]).tolist(), alignment(np.full((1, 1, 3, 3), 1 / 3)).tolist()
    ([[1.0]], [[0.3333333333333333]])
    """
    rows, columns = weights.shape[2:]
    best_column, best_row = weights.argmax(-1), weights.argmax(-2)  # (L, H, T), (L, H, S)
    back = np.take_along_axis(best_row, best_column, axis=-1)  # (L, H, T)
    link_share: Metrics = (back == np.arange(rows)).sum(-1) * 2.0 / (rows + columns)
    return link_share


def _weight_shares(kind: AttentionKind, weights: Weights) -> dict[str, Metrics]:
    """Return the share of the weight on special columns."""
    shares: dict[str, Metrics] = {
        "first": weights[..., 0].mean(-1),
        "end": weights[..., -1].mean(-1),
    }
    if kind == "cross":
        return shares
    rows = weights.shape[2]
    for name, offset in (("previous", -1), ("same", 0), ("next", 1)):
        shares[name] = np.trace(weights, offset, axis1=-2, axis2=-1) / rows
    if kind == "decoder_self":
        shares["end"] = np.zeros(weights.shape[:2])
    return shares
