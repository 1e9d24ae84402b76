"""The rows of a series as a client sends them, made ready for a model.

Every reason that they cannot be read is told by the names that the client used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.tasks.forecasting.time_axis import compute_spacing, fill_times, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.serving.routes.forecast_schemas import ForecastRequest
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.time_axis import TimeAxis

MAX_FILLED_ROWS = 10_000
"""Rows that are put into gaps, at most."""
MAX_NORMALIZED_VALUE = 1e30
"""Deviations from the mean of training; models count in 32 bits."""
MAX_SHOWN_CHARACTERS = 60
"""Characters of a name that an error repeats."""


class SeriesWindow(NamedTuple):
    """The last rows of what was sent, as many as the model reads."""

    values: NDArray[np.float64]  # (window, F), NaN = missing
    times: list[str] | None
    tgt_times: list[str]


def read_window(codec: SeriesCodec, body: ForecastRequest) -> SeriesWindow:
    """Check what was sent, fill gaps in time where the model may have them, and cut the window."""
    values = _read_values(codec, body)
    times = body.times
    if times is not None and len(times) != len(values):
        reason = message("{count} times for {rows} rows", count=len(times), rows=len(values))
        raise InputError(reason, hint="send the time of each row, or none at all")
    last: Any = None
    if times is not None and codec.axis is not None:
        values, moments = _fill_gaps(codec, codec.axis, values, times)
        times, last = codec.axis.format_times(moments[-codec.window :]), moments[-1]
    if len(values) < codec.window:
        reason = message(
            "{count} rows, and the model reads {window}", count=len(values), window=codec.window
        )
        raise InputError(reason, hint="send more rows, null where a value is missing")
    window = values[-codec.window :]
    _check_magnitude(codec, window)
    if np.isnan(window).all():
        raise InputError(
            message("the last {window} rows hold no value at all", window=codec.window),
            hint="send some that do",
        )
    window_times = None if times is None else list(times)[-codec.window :]
    return SeriesWindow(window, window_times, codec.horizon_times(last))


def _check_magnitude(codec: SeriesCodec, window: NDArray[np.float64]) -> None:
    """Refuse what is finite in the units of the file, and no more so when it is normalised."""
    with np.errstate(over="ignore"):
        is_too_large = (
            np.abs(window - np.asarray(codec.mean)) / np.asarray(codec.deviation)
            > MAX_NORMALIZED_VALUE
        )
    if is_too_large.any():
        row, column = np.argwhere(is_too_large)[0]
        reason = message(
            "{name}: {value} is too large",
            name=codec.features[column][:MAX_SHOWN_CHARACTERS],
            value=f"{window[row, column]:g}",
        )
        raise InputError(reason, hint="send null where a value is missing")


def _read_values(codec: SeriesCodec, body: ForecastRequest) -> NDArray[np.float64]:
    if body.columns is not None:
        return _join_columns(codec, body.columns)
    rows = body.rows or []
    num_features = len(codec.features)
    bad_row = next((index for index, row in enumerate(rows) if len(row) != num_features), None)
    if bad_row is not None:
        reason = message(
            "rows.{row}: {count} values, and the model has {wanted} columns",
            row=bad_row,
            count=len(rows[bad_row]),
            wanted=num_features,
        )
        raise InputError(
            reason,
            hint=message("send them in this order: {names}", names=_list_names(codec.features)),
        )
    return _to_array(rows)


def _join_columns(
    codec: SeriesCodec, columns: dict[str, list[float | None]]
) -> NDArray[np.float64]:
    reasons = [
        message("no column '{name}'", name=name[:MAX_SHOWN_CHARACTERS])
        for name in codec.features
        if name not in columns
    ]
    reasons += [
        message(
            "unknown column '{name}': {detail}",
            name=name[:MAX_SHOWN_CHARACTERS],
            detail=suggest(name[:MAX_SHOWN_CHARACTERS], codec.features),
        )
        for name in columns
        if name not in codec.features
    ]
    if not reasons and len({len(column) for column in columns.values()}) > 1:
        lengths = ", ".join(
            f"{name[:MAX_SHOWN_CHARACTERS]} {len(column_values)}"
            for name, column_values in columns.items()
        )
        reasons.append(message("the columns differ in length: {lengths}", lengths=lengths))
    if reasons:
        raise InputError(
            "; ".join(reasons[:8]), hint=message("send: {names}", names=_list_names(codec.features))
        )
    return _to_array([columns[name] for name in codec.features]).T


def _fill_gaps(
    codec: SeriesCodec, axis: TimeAxis, values: NDArray[np.float64], times: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Read the times; put rows of missing values into gaps, where the model's data had such."""
    moments = np.asarray([parse_time(axis, text) for text in times])
    if len(moments) < 2:
        return values, moments
    counts = axis.to_counts(moments)
    out_of_order = np.flatnonzero(np.diff(counts) <= 0)
    if len(out_of_order):
        row = int(out_of_order[0]) + 1
        reason = message(
            "times.{row}: {after} does not come after {before}",
            row=row,
            after=times[row][:40],
            before=times[row - 1][:40],
        )
        raise InputError(reason, hint="send the rows in the order of time, none twice")
    if (np.diff(counts) / axis.step > MAX_FILLED_ROWS).any():
        raise _gap_error(axis, times, int(np.argmax(np.diff(counts))))
    spacing = compute_spacing(axis, moments)
    if len(spacing.irregular_rows):
        row = int(spacing.irregular_rows[0])
        reason = message(
            "times.{row}: {time} is no whole step of {step} later",
            row=row,
            time=times[row][:40],
            step=axis.step_text,
        )
        raise InputError(reason, hint="bring the series to the spacing of the training data")
    gaps = np.flatnonzero(spacing.steps > 1)
    if not len(gaps):
        return values, moments
    if codec.gaps == "refuse" or int(spacing.steps.sum()) > MAX_FILLED_ROWS:
        raise _gap_error(axis, times, int(gaps[0]))
    row_indices = np.concatenate([[0], np.cumsum(spacing.steps)])
    filled = np.full((int(row_indices[-1]) + 1, values.shape[1]), np.nan)
    filled[row_indices] = values
    return filled, fill_times(axis, moments, spacing.steps)


def _gap_error(axis: TimeAxis, times: Sequence[str], row: int) -> InputError:
    return InputError(
        message(
            "times.{row}: rows are missing between {before} and {after}",
            row=row + 1,
            before=times[row][:40],
            after=times[row + 1][:40],
        ),
        hint=message(
            "send a row for each step of {step}, null where a value is missing", step=axis.step_text
        ),
    )


def _to_array(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.asarray(rows, dtype=np.float64)  # None becomes NaN


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(name[:MAX_SHOWN_CHARACTERS] for name in names[:20]) + (
        " ..." if len(names) > 20 else ""
    )
