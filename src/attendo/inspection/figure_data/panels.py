"""The panels of a figure: heatmaps, bars, lines, operators, views of the record, the stack."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind

Panel = dict[str, Any]
"""A panel as JSON; its field `kind` is the name of the function here that made it."""
SIGNIFICANT_DIGITS = 5


def heatmap(
    values: NDArray[np.floating[Any]],
    *,
    title: str = "",
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    row_label: str = "",
    column_label: str = "",
    limit: float | None = None,
    is_signed: bool = False,
    digits: int | None = None,
) -> Panel:
    """Return a matrix of colors; NaN is a cell without a value.

    `limit` is the value of the darkest color, `digits` the decimals of the numbers in the cells.
    """
    matrix = np.atleast_2d(values)
    largest = float(np.nanmax(np.abs(matrix), initial=0.0))
    return {
        "kind": "heatmap",
        "title": title,
        "rows": list(rows) if rows is not None else None,
        "columns": list(columns) if columns is not None else None,
        "row_label": row_label,
        "column_label": column_label,
        "num_rows": matrix.shape[0],
        "num_columns": matrix.shape[1],
        "limit": _round(limit if limit is not None else largest),
        "is_signed": is_signed,
        "digits": digits,
        "encoding": "f16",
        "data": base64.b64encode(matrix.astype("<f2").tobytes()).decode(),
    }


def bars(
    names: Sequence[str],
    values: Sequence[float],
    *,
    title: str = "",
    digits: int = 2,
    marked: int | None = None,
) -> Panel:
    """Return named bars; NaN is a bar without a value, `marked` the highlighted one."""
    return {
        "kind": "bars",
        "title": title,
        "names": list(names),
        "values": [_round_or_none(value) for value in values],
        "digits": digits,
        "marked": marked,
    }


def lines(
    title: str,
    x: Sequence[float] | Sequence[str],
    series: Sequence[tuple[str, Sequence[float]]],
    *,
    x_label: str = "",
    y_label: str = "",
    log_y: bool = False,
) -> Panel:
    """Return lines over numbers or names: a chart as those of the lessons."""
    return {
        "kind": "chart",
        "form": "lines",
        "title": title,
        "x": list(x),
        "series": [
            {"label": label, "values": [_round_or_none(value) for value in values]}
            for label, values in series
        ],
        "x_label": x_label,
        "y_label": y_label,
        "log_x": False,
        "log_y": log_y,
    }


def operator(text: str) -> Panel:
    """Return an operator between two panels, such as "×"."""
    return {"kind": "operator", "text": text}


def record_view(
    view: str,
    attention: AttentionKind | None = None,
    *,
    layer: int | None = None,
    heads: Sequence[int] = (),
    row: int | None = None,
) -> Panel:
    """Return a view of the record: arcs, heads, steps, beam or positions; all counted from 0."""
    return {
        "kind": "record",
        "view": view,
        "attention": attention,
        "layer": layer,
        "heads": list(heads),
        "row": row,
    }


def _round(value: float) -> float:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}")


def _round_or_none(value: float) -> float | None:
    return _round(float(value)) if np.isfinite(value) else None
