"""Which windows a table has, and which of them are train and which dev.

A window is named by its place: the row behind its input, where its target begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.core.seeding import derive_seed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.tasks.forecasting.table import SeriesTable

Origins = np.ndarray[tuple[int], np.dtype[np.int64]]


class Windows(NamedTuple):
    """The places of a table's windows, by series."""

    origins: list[Origins]
    """One array for each series; empty where a series is too short."""
    too_short: list[str]
    """Series that are shorter than a window and its horizon."""
    num_empty: int
    """Windows left out, since they have nothing to read or nothing to foretell."""

    @property
    def all_origins(self) -> Origins:
        """All places, one series behind the other."""
        return np.concatenate(self.origins)


class WindowSplit(NamedTuple):
    """The places of both sides."""

    train: Origins
    dev: Origins
    split_by: str
    """"time" where each series gave its last windows, "group" where whole series were taken."""


def find_windows(table: SeriesTable, *, stride: int = 1) -> Windows:
    """Find the windows of a table whose targets are known; refuse a table that has none."""
    window, horizon = table.config.window, table.config.horizon
    lengths = np.diff(table.offsets)
    short = [
        name
        for name, length in zip(table.groups, lengths, strict=True)
        if length < window + horizon
    ]
    if len(short) == len(table.groups):
        raise InputError(
            f"{_describe_longest(table)} has {lengths.max():,} rows; a window of {window} and a "
            f"horizon of {horizon} need {window + horizon:,}",
            hint="give more rows, or lower series.window or series.horizon",
        )
    origins_per_series = [
        np.arange(begin + window, end - horizon + 1, stride, dtype=np.int64)
        for begin, end in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]
    is_usable = [origins[_is_usable(table, origins)] for origins in origins_per_series]
    num_empty = sum(map(len, origins_per_series)) - sum(map(len, is_usable))
    if not sum(map(len, is_usable)):
        raise InputError(
            f"none of the {num_empty:,} windows has both something to read and something to "
            "foretell",
            hint="fill missing values, or lower series.window",
        )
    return Windows(is_usable, short, num_empty)


def _describe_longest(table: SeriesTable) -> str:
    longest = table.groups[int(np.diff(table.offsets).argmax())]
    if len(table.groups) == 1:
        return longest
    return f"the longest of {len(table.groups):,} series, '{longest}',"


def _is_usable(table: SeriesTable, origins: Origins) -> NDArray[np.bool_]:
    """Tell which windows have a value in their input and, where targets are known, in them."""
    config = table.config
    has_input = _exclusive_cumsum(is_known(table.features))
    useful: NDArray[np.bool_] = has_input[origins] > has_input[origins - config.window]
    if table.targets is not None:
        has_target = _exclusive_cumsum(is_known(table.targets))
        useful &= has_target[origins + config.horizon] > has_target[origins]
    return useful


def is_known(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows hold a value, or at least one of several."""
    if values.dtype == object:
        return np.array([label is not None for label in values.tolist()], dtype=bool)
    return np.asarray(~np.isnan(values).all(axis=1), dtype=bool)


def _exclusive_cumsum(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give the number of true flags before each row."""
    return np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])


def last_origins(table: SeriesTable) -> Origins:
    """Give for each series that is long enough the place behind its last row: the future."""
    lengths = np.diff(table.offsets)
    if lengths.max() < table.config.window:
        raise InputError(
            f"{_describe_longest(table)} has {lengths.max():,} rows; a window needs "
            f"{table.config.window:,}",
            hint="give a longer series",
        )
    ends: Origins = table.offsets[1:][lengths >= table.config.window]
    return ends


def split_windows(windows: Windows, *, horizon: int, dev_fraction: float, seed: int) -> WindowSplit:
    """Take the last windows of each series as dev; what overlaps with them is used nowhere.

    A series with too few windows for that is train as a whole. Where all are so short, whole
    series are taken, at random.
    """
    train, dev = [], []
    for origins in windows.origins:
        count = round(dev_fraction * len(origins))
        early = origins[: len(origins) - count]
        early = early[early + horizon <= origins[-count]] if count else early
        is_split = count and len(early)
        train.append(early if is_split else origins)
        dev.append(origins[-count:] if is_split else origins[:0])
    if sum(map(len, dev)):
        return WindowSplit(np.concatenate(train), np.concatenate(dev), "time")
    return _split_groups(windows, dev_fraction, seed)


def _split_groups(windows: Windows, dev_fraction: float, seed: int) -> WindowSplit:
    full = [origins for origins in windows.origins if len(origins)]
    if len(full) < 2:
        raise InputError(
            f"{len(windows.all_origins):,} windows of one series cannot be split into train and dev",
            hint="give more rows, lower series.window, series.horizon or series.stride, or name "
            "files for series.dev",
        )
    order = np.random.default_rng(derive_seed(seed, "series split")).permutation(len(full))
    count = min(max(1, round(dev_fraction * len(full))), len(full) - 1)
    chosen = set(order[:count].tolist())
    train = [places for number, places in enumerate(full) if number not in chosen]
    dev = [places for number, places in enumerate(full) if number in chosen]
    return WindowSplit(np.concatenate(train), np.concatenate(dev), "group")
