"""Curves as plain text, for a terminal or a log file."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MARKERS = "o+x*"
"""The marks of the curves, in order; a later curve covers an earlier one."""
SHARED = "#"
"""Marks a cell that two curves share."""


def plot_curves(
    curves: Mapping[str, Sequence[tuple[float, float]]],
    *,
    width: int = 60,
    height: int = 10,
    axis: str = "step",
) -> list[str]:
    r"""Return lines with the curves, their range on both axes, and a legend.

    >>> print(*plot_curves({"loss": [(1, 4.0), (2, 2.0), (3, 1.0)]}, width=7, height=3), sep="\n")
       4 |o
         |   o
       1 |      o
         +-------
          1     3  step
          o loss
    """
    points = [point for curve in curves.values() for point in curve]
    if not points:
        return []
    left, right = min(x for x, _ in points), max(x for x, _ in points)
    low, high = min(y for _, y in points), max(y for _, y in points)
    grid = [[" "] * width for _ in range(height)]
    for number, curve in enumerate(curves.values()):
        marker = MARKERS[number % len(MARKERS)]
        for x, y in curve:
            column = round((x - left) / (right - left or 1) * (width - 1))
            row = round((high - y) / (high - low or 1) * (height - 1))
            is_shared = grid[row][column] not in (" ", marker)
            grid[row][column] = SHARED if is_shared else marker
    labels = {0: f"{high:.4g}", height - 1: f"{low:.4g}"}
    margin = max(4, *map(len, labels.values()))
    rows = [
        f"{labels.get(number, ''):>{margin}} |{''.join(cells).rstrip()}"
        for number, cells in enumerate(grid)
    ]
    indent = " " * (margin + 2)
    ends = f"{left:,.0f}", f"{right:,.0f}"
    gap = max(1, width - sum(map(len, ends)))
    legend = "   ".join(
        f"{MARKERS[number % len(MARKERS)]} {name}" for number, name in enumerate(curves)
    )
    return [
        *rows,
        f"{' ' * (margin + 1)}+{'-' * width}",
        f"{indent}{ends[0]}{' ' * gap}{ends[1]}  {axis}",
        f"{indent}{legend}",
    ]
