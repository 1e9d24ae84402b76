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

    from attendo.data.series.table import Table

Places = np.ndarray[tuple[int], np.dtype[np.int64]]


class Windows(NamedTuple):
    """The places of a table's windows, by series."""

    places: list[Places]
    """One array for each series; empty where a series is too short."""
    short: list[str]
    """Series that are shorter than a window and its horizon."""
    num_empty: int
    """Windows left out, since they have nothing to read or nothing to foretell."""

    @property
    def all(self) -> Places:
        """All places, one series behind the other."""
        return np.concatenate(self.places)


class Split(NamedTuple):
    """The places of both sides."""

    train: Places
    dev: Places
    by: str
    """"time" where each series gave its last windows, "group" where whole series were taken."""


def find_windows(table: Table, *, stride: int = 1) -> Windows:
    """Find the windows of a table whose targets are known; refuse a table that has none."""
    window, horizon = table.config.window, table.config.horizon
    lengths = np.diff(table.starts)
    short = [
        name
        for name, length in zip(table.groups, lengths, strict=True)
        if length < window + horizon
    ]
    if len(short) == len(table.groups):
        raise InputError(
            f"{_name_longest(table)} has {lengths.max():,} rows; a window of {window} and a "
            f"horizon of {horizon} need {window + horizon:,}",
            remedy="give more rows, or lower series.window or series.horizon",
        )
    found = [
        np.arange(begin + window, end - horizon + 1, stride, dtype=np.int64)
        for begin, end in zip(table.starts[:-1], table.starts[1:], strict=True)
    ]
    useful = [places[_is_useful(table, places)] for places in found]
    num_empty = sum(map(len, found)) - sum(map(len, useful))
    if not sum(map(len, useful)):
        raise InputError(
            f"none of the {num_empty:,} windows has both something to read and something to "
            "foretell",
            remedy="fill missing values, or lower series.window",
        )
    return Windows(useful, short, num_empty)


def _name_longest(table: Table) -> str:
    longest = table.groups[int(np.diff(table.starts).argmax())]
    if len(table.groups) == 1:
        return longest
    return f"the longest of {len(table.groups):,} series, '{longest}',"


def _is_useful(table: Table, places: Places) -> NDArray[np.bool_]:
    """Tell which windows have a value in their input and, where targets are known, in them."""
    config = table.config
    has_input = _count(is_known(table.features))
    useful: NDArray[np.bool_] = has_input[places] > has_input[places - config.window]
    if table.targets is not None:
        has_target = _count(is_known(table.targets))
        useful &= has_target[places + config.horizon] > has_target[places]
    return useful


def is_known(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Tell which rows hold a value, or at least one of several."""
    if values.dtype == object:
        return np.array([label is not None for label in values.tolist()], dtype=bool)
    return np.asarray(~np.isnan(values).all(axis=1), dtype=bool)


def _count(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Give the number of true flags before each row."""
    return np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])


def last_places(table: Table) -> Places:
    """Give for each series that is long enough the place behind its last row: the future."""
    lengths = np.diff(table.starts)
    if lengths.max() < table.config.window:
        raise InputError(
            f"{_name_longest(table)} has {lengths.max():,} rows; a window needs "
            f"{table.config.window:,}",
            remedy="give a longer series",
        )
    ends: Places = table.starts[1:][lengths >= table.config.window]
    return ends


def split_windows(windows: Windows, *, horizon: int, share: float, seed: int) -> Split:
    """Take the last windows of each series as dev; what overlaps with them is used nowhere.

    A series with too few windows for that is train as a whole. Where all are so short, whole
    series are taken, at random.
    """
    train, dev = [], []
    for places in windows.places:
        count = round(share * len(places))
        early = places[: len(places) - count]
        early = early[early + horizon <= places[-count]] if count else early
        is_split = count and len(early)
        train.append(early if is_split else places)
        dev.append(places[-count:] if is_split else places[:0])
    if sum(map(len, dev)):
        return Split(np.concatenate(train), np.concatenate(dev), "time")
    return _split_groups(windows, share, seed)


def _split_groups(windows: Windows, share: float, seed: int) -> Split:
    full = [places for places in windows.places if len(places)]
    if len(full) < 2:
        raise InputError(
            f"{len(windows.all):,} windows of one series cannot be split into train and dev",
            remedy="give more rows, lower series.window, series.horizon or series.stride, or name "
            "files for series.dev",
        )
    order = np.random.default_rng(derive_seed(seed, "series split")).permutation(len(full))
    count = min(max(1, round(share * len(full))), len(full) - 1)
    chosen = set(order[:count].tolist())
    train = [places for number, places in enumerate(full) if number not in chosen]
    dev = [places for number, places in enumerate(full) if number in chosen]
    return Split(np.concatenate(train), np.concatenate(dev), "group")
