"""The window of a file that is looked at: the last one, or the one before a given time."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.table import SeriesTable
    from attendo.tasks.forecasting.time_axis import TimeAxis


class SeriesWindow(NamedTuple):
    """Rows that a model reads, and what the file tells of those behind them."""

    values: NDArray[np.float64]  # (window, F), NaN = missing
    times: list[str] | None
    tgt_times: list[str]
    observed: NDArray[Any] | None  # labels (T,) or numbers (T, K); None or NaN = unknown
    notes: list[str]


def read_window(codec: SeriesCodec, path: str | Path, *, at: str | None = None) -> SeriesWindow:
    """Cut one window out of a file.

    Args:
        codec: of the model: columns, window, horizon.
        path: CSV, Parquet or NPZ; of several series the first is taken, and a note says so.
        at: the time of the first step that is foretold, or its row (counted from 1) where there is
            no time; the step behind the last row when not given.

    """
    table = codec.read(Path(path))
    rows, notes = table.rows(0), []
    if len(table.groups) > 1:
        notes.append(f"the first of {len(table.groups)} series: {table.groups[0]}")
    end = rows.stop if at is None else rows.start + _find_row(table, rows, codec.axis, at)
    begin = end - codec.window
    if begin < rows.start:
        raise InputError(
            message(
                "{count} rows before {at}, and the model reads {window}",
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
        table.features[begin:end],
        times,
        codec.horizon_times(last),
        _observed_targets(table, slice(end, rows.stop), codec.horizon),
        notes,
    )


def parse_time(axis: TimeAxis, text: str) -> Any:
    """Read a time as the axis counts it: `numpy.datetime64`, or a number.

    >>> from attendo.tasks.forecasting.time_axis import TimeAxis
    >>> str(parse_time(TimeAxis(kind="date", unit="seconds", step=86_400), "2023-08-14"))
    '2023-08-14T00:00:00.000000'
    """
    try:
        if axis.kind == "number":
            number = float(text)
            if np.isfinite(number):
                return number
            raise ValueError
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC).replace(tzinfo=None)
        return np.datetime64(moment, "us")
    except (ValueError, OverflowError):
        kind = "a number" if axis.kind == "number" else "an ISO date such as 2031-04-01"
        raise InputError(
            message("'{text}' is no time", text=text[:40]), hint=f"write {kind}"
        ) from None


def _find_row(table: SeriesTable, rows: slice, axis: TimeAxis | None, at: str) -> int:
    """Find the row, counted from the first of the series, where the forecast begins."""
    num_rows = int(rows.stop - rows.start)
    if axis is None or table.times is None:
        if not at.isdecimal() or not 1 <= int(at) <= num_rows + 1:
            reason = f"no row '{at[:40]}': the series has {num_rows} rows and no times"
            raise InputError(reason, hint=f"give a row from 1 to {num_rows + 1}")
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
        hint=message("it goes from {first} to {last}", first=first, last=last),
    )


def _observed_targets(table: SeriesTable, rows: slice, horizon: int) -> NDArray[Any] | None:
    if table.targets is None or rows.start >= rows.stop:
        return None
    known = table.targets[rows][:horizon]
    missing = None if known.dtype == object else np.nan
    observed = np.full((horizon, *known.shape[1:]), missing, dtype=known.dtype)
    observed[: len(known)] = known
    return observed
