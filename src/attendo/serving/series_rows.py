"""The rows of a series as a client sends them, made ready for a model.

Every reason that they cannot be read is told by the names that the client used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, suggest
from attendo.data.series.times import fill_times, find_spacing
from attendo.inspection.series_window import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.data.series.codec import SeriesCodec
    from attendo.data.series.times import TimeAxis
    from attendo.serving.forecast_bodies import ForecastBody

MOST_FILLED = 10_000
"""Rows that are put into gaps, at most."""
FARTHEST = 1e30
"""Deviations from the mean of training; models count in 32 bits."""
SHOWN = 60
"""Characters of a name that an error repeats."""


class Rows(NamedTuple):
    """The last rows of what was sent, as many as the model reads."""

    values: NDArray[np.float64]  # (window, F), NaN = missing
    times: list[str] | None
    tgt_times: list[str]


def read_rows(codec: SeriesCodec, body: ForecastBody) -> Rows:
    """Check what was sent, fill gaps in time where the model may have them, and cut the window."""
    values = _read_values(codec, body)
    times = body.times
    if times is not None and len(times) != len(values):
        reason = f"{len(times)} times for {len(values)} rows"
        raise InputError(reason, remedy="send the time of each row, or none at all")
    last: Any = None
    if times is not None and codec.axis is not None:
        values, moments = _order(codec, codec.axis, values, times)
        times, last = codec.axis.write(moments[-codec.window :]), moments[-1]
    if len(values) < codec.window:
        reason = f"{len(values)} rows, and the model reads {codec.window}"
        raise InputError(reason, remedy="send more rows, null where a value is missing")
    window = values[-codec.window :]
    _check_size(codec, window)
    if np.isnan(window).all():
        raise InputError(
            f"the last {codec.window} rows hold no value at all", remedy="send some that do"
        )
    shown = None if times is None else list(times)[-codec.window :]
    return Rows(window, shown, codec.horizon_times(last))


def _check_size(codec: SeriesCodec, window: NDArray[np.float64]) -> None:
    """Refuse what is finite in the units of the file, and no more so when it is normalised."""
    with np.errstate(over="ignore"):
        far = np.abs(window - np.asarray(codec.mean)) / np.asarray(codec.deviation) > FARTHEST
    if far.any():
        row, column = np.argwhere(far)[0]
        reason = f"{codec.features[column][:SHOWN]}: {window[row, column]:g} is too large"
        raise InputError(reason, remedy="send null where a value is missing")


def _read_values(codec: SeriesCodec, body: ForecastBody) -> NDArray[np.float64]:
    if body.columns is not None:
        return _join_columns(codec, body.columns)
    rows = body.rows or []
    wanted = len(codec.features)
    wrong = next((place for place, row in enumerate(rows) if len(row) != wanted), None)
    if wrong is not None:
        reason = f"rows.{wrong}: {len(rows[wrong])} values, and the model has {wanted} columns"
        raise InputError(reason, remedy=f"send them in this order: {_list(codec.features)}")
    return _to_numbers(rows)


def _join_columns(
    codec: SeriesCodec, columns: dict[str, list[float | None]]
) -> NDArray[np.float64]:
    reasons = [f"no column '{name[:SHOWN]}'" for name in codec.features if name not in columns]
    reasons += [
        f"unknown column '{name[:SHOWN]}': {suggest(name[:SHOWN], codec.features)}"
        for name in columns
        if name not in codec.features
    ]
    if not reasons and len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(f"{name[:SHOWN]} {len(own)}" for name, own in columns.items())
        reasons.append(f"the columns differ in length: {lengths}")
    if reasons:
        raise InputError("; ".join(reasons[:8]), remedy=f"send: {_list(codec.features)}")
    return _to_numbers([columns[name] for name in codec.features]).T


def _order(
    codec: SeriesCodec, axis: TimeAxis, values: NDArray[np.float64], times: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Read the times; put rows of missing values into gaps, where the model's data had such."""
    moments = np.asarray([parse_time(axis, text) for text in times])
    if len(moments) < 2:
        return values, moments
    counts = axis.count(moments)
    behind = np.flatnonzero(np.diff(counts) <= 0)
    if len(behind):
        row = int(behind[0]) + 1
        reason = f"times.{row}: {times[row][:40]} does not come after {times[row - 1][:40]}"
        raise InputError(reason, remedy="send the rows in the order of time, none twice")
    if (np.diff(counts) / axis.step > MOST_FILLED).any():
        raise _gap(axis, times, int(np.argmax(np.diff(counts))))
    spacing = find_spacing(axis, moments)
    if len(spacing.wrong):
        row = int(spacing.wrong[0])
        reason = f"times.{row}: {times[row][:40]} is no whole step of {axis.spacing} later"
        raise InputError(reason, remedy="bring the series to the spacing of the training data")
    gaps = np.flatnonzero(spacing.steps > 1)
    if not len(gaps):
        return values, moments
    if codec.gaps == "refuse" or int(spacing.steps.sum()) > MOST_FILLED:
        raise _gap(axis, times, int(gaps[0]))
    places = np.concatenate([[0], np.cumsum(spacing.steps)])
    wide = np.full((int(places[-1]) + 1, values.shape[1]), np.nan)
    wide[places] = values
    return wide, fill_times(axis, moments, spacing.steps)


def _gap(axis: TimeAxis, times: Sequence[str], row: int) -> InputError:
    return InputError(
        f"times.{row + 1}: rows are missing between {times[row][:40]} and {times[row + 1][:40]}",
        remedy=f"send a row for each step of {axis.spacing}, null where a value is missing",
    )


def _to_numbers(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.asarray(rows, dtype=np.float64)  # None becomes NaN


def _list(names: Sequence[str]) -> str:
    return ", ".join(name[:SHOWN] for name in names[:20]) + (" ..." if len(names) > 20 else "")
