"""Windows of a file, cut where a forecast begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.data.series.windows import last_places

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.data.series.table import Table


class CutWindows(NamedTuple):
    """Windows of a table, in the order of its rows."""

    values: NDArray[np.float64]  # (N, window, F), NaN = missing
    groups: list[str]
    """The series of each."""
    lasts: list[Any]
    """The time of each one's last row; None where there is no time."""


def cut_windows(table: Table, *, last_only: bool) -> CutWindows:
    """Cut the last window of each series that is long enough, or every one of its windows.

    What lies behind a window need not be known: the last one's future never is.
    """
    window = table.config.window
    ends = last_places(table)
    groups = np.searchsorted(table.starts, ends - 1, side="right") - 1
    if not last_only:
        begins = table.starts[groups] + window
        own = [np.arange(begin, end + 1) for begin, end in zip(begins, ends, strict=True)]
        groups = np.repeat(groups, [len(places) for places in own])
        ends = np.concatenate(own)
    views = np.lib.stride_tricks.sliding_window_view(table.features, window, axis=0)
    values = np.moveaxis(views, -1, 1)[ends - window]
    lasts = [None] * len(ends) if table.times is None else list(table.times[ends - 1])
    return CutWindows(values, [table.groups[group] for group in groups], lasts)
