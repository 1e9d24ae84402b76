"""Windows of a file, cut where a forecast begins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.tasks.forecasting.windows import last_origins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.tasks.forecasting.table import SeriesTable


class FileWindows(NamedTuple):
    """Windows of a table, in the order of its rows."""

    values: NDArray[np.float64]  # (N, window, F), NaN = missing
    groups: list[str]
    """The series of each."""
    last_times: list[Any]
    """The time of each one's last row; None where there is no time."""


def extract_windows(table: SeriesTable, *, last_only: bool) -> FileWindows:
    """Cut the last window of each series that is long enough, or every one of its windows.

    What lies behind a window need not be known: the last one's future never is.
    """
    window = table.config.window
    ends = last_origins(table)
    groups = np.searchsorted(table.offsets, ends - 1, side="right") - 1
    if not last_only:
        first_ends = table.offsets[groups] + window
        ends_per_series = [
            np.arange(first_end, end + 1) for first_end, end in zip(first_ends, ends, strict=True)
        ]
        groups = np.repeat(groups, [len(series_ends) for series_ends in ends_per_series])
        ends = np.concatenate(ends_per_series)
    views = np.lib.stride_tricks.sliding_window_view(table.features, window, axis=0)
    values = np.moveaxis(views, -1, 1)[ends - window]
    lasts = [None] * len(ends) if table.times is None else list(table.times[ends - 1])
    return FileWindows(values, [table.groups[group] for group in groups], lasts)
