"""Converts the rows of a request to the window that a time series model reads.

Errors name the fields of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, suggest
from attendo.core.message import join_messages, message
from attendo.tasks.forecasting.time_axis import compute_spacing, fill_times, parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.serving.routes.forecast_schemas import ForecastRequest
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.time_axis import TimeAxis

MAX_FILLED_ROWS = 10_000
"""Maximum rows that are inserted into gaps."""
MAX_NORMALIZED_VALUE = 1e30
"""Maximum distance from the training mean, in standard deviations: models compute in 32 bits."""
MAX_SHOWN_CHARACTERS = 60
"""Characters of a name that an error repeats."""


class SeriesWindow(NamedTuple):
    """The last rows of a request, as many as the model reads."""

    values: NDArray[np.float64]  # (window, F), NaN = missing
    times: list[str] | None
    tgt_times: list[str]


def read_window(codec: SeriesCodec, body: ForecastRequest) -> SeriesWindow:
    """Validate the rows, fill gaps in time if the model allows them, and return the last window."""
    values = _read_values(codec, body)
    times = body.times
    if times is not None and len(times) != len(values):
        reason = message("{count} times for {rows} rows", count=len(times), rows=len(values))
        raise InputError(reason, hint="send one time per row, or none")
    last: Any = None
    if times is not None and codec.axis is not None:
        values, moments = _fill_gaps(codec, codec.axis, values, times)
        times, last = codec.axis.format_times(moments[-codec.window :]), moments[-1]
    if len(values) < codec.window:
        reason = message(
            "{count} rows, but the model reads {window}", count=len(values), window=codec.window
        )
        raise InputError(reason, hint="send more rows; use null for missing values")
    window = values[-codec.window :]
    _check_magnitude(codec, window)
    if np.isnan(window).all():
        raise InputError(
            message("the last {window} rows contain no value", window=codec.window),
            hint="send rows with values",
        )
    window_times = None if times is None else list(times)[-codec.window :]
    return SeriesWindow(window, window_times, codec.horizon_times(last))


def _check_magnitude(codec: SeriesCodec, window: NDArray[np.float64]) -> None:
    """Raise an error for finite values that overflow when they are normalized."""
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
        raise InputError(reason, hint="use null for missing values")


def _read_values(codec: SeriesCodec, body: ForecastRequest) -> NDArray[np.float64]:
    if body.columns is not None:
        return _join_columns(codec, body.columns)
    rows = body.rows or []
    num_features = len(codec.features)
    bad_row = next((index for index, row in enumerate(rows) if len(row) != num_features), None)
    if bad_row is not None:
        reason = message(
            "rows.{row}: {count} values, but the model has {wanted} columns",
            row=bad_row,
            count=len(rows[bad_row]),
            wanted=num_features,
        )
        raise InputError(
            reason,
            hint=message(
                "send the columns in this order: {names}", names=_list_names(codec.features)
            ),
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
        hint = message("send these columns: {names}", names=_list_names(codec.features))
        raise InputError(join_messages("; ", reasons[:8]), hint=hint)
    return _to_array([columns[name] for name in codec.features]).T


def _fill_gaps(
    codec: SeriesCodec, axis: TimeAxis, values: NDArray[np.float64], times: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Parse the times; insert missing rows into gaps if the training data had gaps."""
    moments = np.asarray([parse_time(axis, text) for text in times])
    if len(moments) < 2:
        return values, moments
    counts = axis.to_counts(moments)
    out_of_order = np.flatnonzero(np.diff(counts) <= 0)
    if len(out_of_order):
        row = int(out_of_order[0]) + 1
        reason = message(
            "times.{row}: {after} is not after {before}",
            row=row,
            after=times[row][:40],
            before=times[row - 1][:40],
        )
        raise InputError(reason, hint="send the rows in chronological order, without duplicates")
    if (np.diff(counts) / axis.step > MAX_FILLED_ROWS).any():
        raise _gap_error(axis, times, int(np.argmax(np.diff(counts))))
    spacing = compute_spacing(axis, moments)
    if len(spacing.irregular_rows):
        row = int(spacing.irregular_rows[0])
        reason = message(
            "times.{row}: {time} is not a whole number of steps of {step} later",
            row=row,
            time=times[row][:40],
            step=axis.step_text,
        )
        raise InputError(reason, hint="resample the series to the spacing of the training data")
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
            "send one row for each step of {step}; use null for missing values", step=axis.step_text
        ),
    )


def _to_array(rows: Sequence[Sequence[float | None]]) -> NDArray[np.float64]:
    return np.asarray(rows, dtype=np.float64)  # None becomes NaN


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(name[:MAX_SHOWN_CHARACTERS] for name in names[:20]) + (
        " ..." if len(names) > 20 else ""
    )
