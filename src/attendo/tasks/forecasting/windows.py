"""The windows of a table: which there are, which are train and dev, and single ones of a file.

A window is identified by its origin: the row after its input, where its target begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.seeding import derive_seed
from attendo.tasks.forecasting.time_axis import parse_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.table import SeriesTable
    from attendo.tasks.forecasting.time_axis import TimeAxis

Origins = np.ndarray[tuple[int], np.dtype[np.int64]]


class Windows(NamedTuple):
    """The origins of the windows of a table, by series."""

    origins: list[Origins]
    """One array per series; empty if a series is too short."""
    too_short: list[str]
    """Names of the series that are shorter than window and horizon."""
    num_empty: int
    """Windows left out because their input or their target is missing altogether."""

    @property
    def all_origins(self) -> Origins:
        """The origins of all series."""
        return np.concatenate(self.origins)


class WindowSplit(NamedTuple):
    """The origins of train and dev."""

    train: Origins
    dev: Origins
    split_by: str
    """"time" if dev has the last windows of each series, "group" if it has whole series."""


def find_windows(table: SeriesTable, *, stride: int = 1) -> Windows:
    """Return the windows of a table that have known targets; raise if there are none."""
    window, horizon = table.config.window, table.config.horizon
    lengths = np.diff(table.offsets)
    short = [
        name
        for name, length in zip(table.groups, lengths, strict=True)
        if length < window + horizon
    ]
    if len(short) == len(table.groups):
        raise InputError(
            message(
                "{series} has {num_rows:,} rows; a window of {window} and a horizon of "
                "{horizon} need {needed:,}",
                series=_describe_longest(table),
                num_rows=lengths.max(),
                window=window,
                horizon=horizon,
                needed=window + horizon,
            ),
            hint="give more rows, or decrease series.window or series.horizon",
        )
    origins_per_series = [
        np.arange(begin + window, end - horizon + 1, stride, dtype=np.int64)
        for begin, end in zip(table.offsets[:-1], table.offsets[1:], strict=True)
    ]
    is_usable = [origins[_is_usable(table, origins)] for origins in origins_per_series]
    num_empty = sum(map(len, origins_per_series)) - sum(map(len, is_usable))
    if not sum(map(len, is_usable)):
        raise InputError(
            message(
                "none of the {num_empty:,} windows has both an input value and a target value",
                num_empty=num_empty,
            ),
            hint="fill in missing values, or decrease series.window",
        )
    return Windows(is_usable, short, num_empty)


def _describe_longest(table: SeriesTable) -> str:
    longest = table.groups[int(np.diff(table.offsets).argmax())]
    if len(table.groups) == 1:
        return longest
    return message(
        "the longest of {count:,} series, '{name}',", count=len(table.groups), name=longest
    )


def _is_usable(table: SeriesTable, origins: Origins) -> NDArray[np.bool_]:
    """Return which windows have a value in their input and, if the table has targets, in those."""
    config = table.config
    has_input = _exclusive_cumsum(is_known(table.features))
    useful: NDArray[np.bool_] = has_input[origins] > has_input[origins - config.window]
    if table.targets is not None:
        has_target = _exclusive_cumsum(is_known(table.targets))
        useful &= has_target[origins + config.horizon] > has_target[origins]
    return useful


def is_known(values: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which rows have at least one value."""
    if values.dtype == object:
        return np.array([label is not None for label in values.tolist()], dtype=bool)
    return np.asarray(~np.isnan(values).all(axis=1), dtype=bool)


def _exclusive_cumsum(flags: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the number of true flags before each row."""
    return np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])


def last_origins(table: SeriesTable) -> Origins:
    """Return the origin after the last row of each series that is long enough."""
    lengths = np.diff(table.offsets)
    if lengths.max() < table.config.window:
        raise InputError(
            message(
                "{series} has {num_rows:,} rows; a window needs {window:,}",
                series=_describe_longest(table),
                num_rows=lengths.max(),
                window=table.config.window,
            ),
            hint="give a longer series",
        )
    ends: Origins = table.offsets[1:][lengths >= table.config.window]
    return ends


def split_windows(windows: Windows, *, horizon: int, dev_fraction: float, seed: int) -> WindowSplit:
    """Split off the last windows of each series as dev; windows that overlap both are not used.

    A series with too few windows belongs to train as a whole. If all series are that short, dev
    gets whole series, chosen at random.
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
            message(
                "{count:,} windows of one series are too few for train and dev",
                count=len(windows.all_origins),
            ),
            hint="give more rows, decrease series.window, series.horizon or series.stride, or name "
            "files in series.dev",
        )
    order = np.random.default_rng(derive_seed(seed, "series split")).permutation(len(full))
    count = min(max(1, round(dev_fraction * len(full))), len(full) - 1)
    chosen = set(order[:count].tolist())
    train = [origins for number, origins in enumerate(full) if number not in chosen]
    dev = [origins for number, origins in enumerate(full) if number in chosen]
    return WindowSplit(np.concatenate(train), np.concatenate(dev), "group")


# -- windows of a file, to forecast


class FileWindows(NamedTuple):
    """Windows of a table, in the order of its rows."""

    values: NDArray[np.float64]  # (N, window, F), NaN = missing
    groups: list[str]
    """The series of each window."""
    last_times: list[Any]
    """The time of the last row of each window; None without a time column."""


def extract_windows(table: SeriesTable, *, last_only: bool) -> FileWindows:
    """Return the last window of each series that is long enough, or all of its windows.

    Targets after a window need not be known.
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


class SeriesWindow(NamedTuple):
    """A window of a file, and the observed targets after it."""

    values: NDArray[np.float64]  # (window, F), NaN = missing
    times: list[str] | None
    tgt_times: list[str]
    observed: NDArray[Any] | None  # labels (T,) or numbers (T, K); None or NaN = unknown
    notes: list[str]


def read_window(codec: SeriesCodec, path: str | Path, *, at: str | None = None) -> SeriesWindow:
    """Return one window of a file.

    Args:
        codec: the codec of the model, with columns, window and horizon.
        path: CSV, Parquet or NPZ. Of several series the first is used, and a note says so.
        at: the time of the first step to forecast, or its row (counted from 1) without a time
            column; by default the step after the last row.

    """
    table = codec.read(Path(path))
    rows, notes = table.rows(0), []
    if len(table.groups) > 1:
        notes.append(
            message(
                "the first of {count} series: {name}",
                count=len(table.groups),
                name=table.groups[0],
            )
        )
    end = rows.stop if at is None else rows.start + _find_row(table, rows, codec.axis, at)
    begin = end - codec.window
    if begin < rows.start:
        raise InputError(
            message(
                "there are {count} rows before {at}, and the model reads {window}",
                count=end - rows.start,
                at=at or "the end",
                window=codec.window,
            ),
            hint="choose a later time, or give a longer series",
        )
    times = None
    if codec.axis is not None and table.times is not None:
        times = codec.axis.format_times(table.times[begin:end])
    last = None if table.times is None else table.times[end - 1]
    return SeriesWindow(
        values=table.features[begin:end],
        times=times,
        tgt_times=codec.horizon_times(last),
        observed=_observed_targets(table, slice(end, rows.stop), codec.horizon),
        notes=notes,
    )


def _find_row(table: SeriesTable, rows: slice, axis: TimeAxis | None, at: str) -> int:
    """Return the row where the forecast begins, counted from the first of the series."""
    num_rows = int(rows.stop - rows.start)
    if axis is None or table.times is None:
        if not at.isdecimal() or not 1 <= int(at) <= num_rows + 1:
            reason = message(
                "no row '{at}': the series has {num_rows} rows and no times",
                at=at[:40],
                num_rows=num_rows,
            )
            raise InputError(
                reason, hint=message("give a row from 1 to {num_rows}", num_rows=num_rows + 1)
            )
        return int(at) - 1
    times, time = table.times[rows], parse_time(axis, at)
    matches = np.flatnonzero(times == time)
    if len(matches):
        return int(matches[0])
    next_time = axis.next_times(times[-1], 1)[0]
    if time == next_time:
        return num_rows
    first, last = axis.format_times(times[:1])[0], axis.format_times(np.asarray([next_time]))[0]
    raise InputError(
        message("the series has no time {time}", time=at[:40]),
        hint=message("its times are {first} to {last}", first=first, last=last),
    )


def _observed_targets(table: SeriesTable, rows: slice, horizon: int) -> NDArray[Any] | None:
    if table.targets is None or rows.start >= rows.stop:
        return None
    known = table.targets[rows][:horizon]
    missing = None if known.dtype == object else np.nan
    observed = np.full((horizon, *known.shape[1:]), missing, dtype=known.dtype)
    observed[: len(known)] = known
    return observed
