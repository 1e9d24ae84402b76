"""The time axis of a series: its spacing, its gaps, and the times after its end.

Times are dates, date-times or plain numbers. Months have no fixed number of days, so dates that are
always on the same day of the month (or on the last one) are counted in months.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from attendo.core.config import Config
from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

TOLERANCE = 0.05
"""Clocks jitter: a difference may deviate by this fraction of a step."""
SECONDS_PER_DAY = 86_400.0
MIN_SECONDS_PER_MONTH = 28 * SECONDS_PER_DAY


class TimeAxis(Config):
    """How times are counted: in steps of seconds, months or plain numbers.

    >>> days = TimeAxis(kind="date", unit="seconds", step=86_400)
    >>> days.format_times(days.next_times(np.datetime64("2031-02-27", "us"), 3))
    ['2031-02-28', '2031-03-01', '2031-03-02']
    """

    kind: Literal["date", "datetime", "number"]
    unit: Literal["seconds", "months", "numbers"]
    step: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    day: Annotated[int, Field(ge=1, le=31)] = 1
    """The day of the month, if the unit is months; the last day in shorter months."""

    def to_counts(self, times: NDArray[Any]) -> NDArray[np.float64]:
        """Return times as seconds, months or numbers."""
        if self.unit == "numbers":
            return np.asarray(times, dtype=np.float64)
        if self.unit == "months":
            return times.astype("datetime64[M]").astype(np.float64)
        return times.astype("datetime64[us]").astype(np.int64) / 1e6

    def from_counts(self, counts: NDArray[np.float64]) -> NDArray[Any]:
        """Return seconds, months or numbers as times, the inverse of `to_counts`."""
        if self.unit == "numbers":
            return counts
        if self.unit == "months":
            month_starts = np.round(counts).astype(np.int64).astype("datetime64[M]")
            days = month_starts.astype("datetime64[D]") + (self.day - 1)
            last = (month_starts + 1).astype("datetime64[D]") - 1
            return np.asarray(np.minimum(days, last), dtype="datetime64[us]")
        return np.round(counts * 1e6).astype(np.int64).astype("datetime64[us]")

    def next_times(self, last: Any, count: int) -> NDArray[Any]:
        """Return the times of the next rows."""
        start = self.to_counts(np.asarray([last]))[0]
        return self.from_counts(start + self.step * np.arange(1, count + 1))

    def format_times(self, times: NDArray[Any]) -> list[str]:
        """Return times as text."""
        if self.kind == "number":
            return [f"{time:.15g}" for time in times.tolist()]
        if self.kind == "date":
            return [str(time) for time in times.astype("datetime64[D]")]
        texts = [str(time) for time in times.astype("datetime64[us]")]
        return [text.removesuffix(".000000") for text in texts]

    @property
    def step_text(self) -> str:
        """The step as text."""
        if self.unit == "numbers":
            return f"{self.step:.6g}"
        if self.unit == "months":
            return _pluralize(self.step, "month")
        is_days = self.step >= SECONDS_PER_DAY
        return (
            _pluralize(self.step / SECONDS_PER_DAY, "day")
            if is_days
            else _pluralize(self.step, "second")
        )


def _pluralize(number: float, unit: str) -> str:
    return f"{number:.6g} {unit}" + ("" if number == 1 else "s")


class RowSpacing(NamedTuple):
    """The distances between the rows of one series."""

    steps: NDArray[np.int64]
    """Steps from each row to the next; 1 if nothing is missing."""
    irregular_rows: NDArray[np.int64]
    """Rows that are not a whole number of steps after the previous row."""


def infer_axis(series: Sequence[NDArray[Any]]) -> TimeAxis:
    """Return the axis of increasing times; the most frequent difference is its step."""
    times = np.concatenate(series)
    if not np.issubdtype(times.dtype, np.datetime64):
        return TimeAxis(kind="number", unit="numbers", step=_most_common_step(series))
    counted = [part.astype("datetime64[us]").astype(np.int64) / 1e6 for part in series]
    is_date = bool((times == times.astype("datetime64[D]")).all())
    kind: Literal["date", "datetime"] = "date" if is_date else "datetime"
    step = _most_common_step(counted)
    day = _month_day(times) if is_date and step >= MIN_SECONDS_PER_MONTH else None
    if day is None:
        return TimeAxis(kind=kind, unit="seconds", step=step)
    months = TimeAxis(kind="date", unit="months", step=1, day=day)
    return months.replace(step=_most_common_step([months.to_counts(part) for part in series]))


def _most_common_step(series: Sequence[NDArray[np.float64]]) -> float:
    """Return the most frequent difference; of two equally frequent ones, the smaller."""
    steps = np.concatenate([np.diff(part) for part in series])
    if not len(steps):
        return 1.0
    scale = float(np.median(steps))
    rounded = np.round(steps / scale, 6)
    values, counts = np.unique(rounded, return_counts=True)
    return float(np.median(steps[rounded == values[counts.argmax()]]))


def _month_day(times: NDArray[Any]) -> int | None:
    """Return the day of the month of all dates, with the last day in shorter months; else None."""
    months = times.astype("datetime64[M]")
    days = (times.astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64) + 1
    ends = ((months + 1).astype("datetime64[D]") - months.astype("datetime64[D]")).astype(np.int64)
    wanted = 31 if (days == ends).all() else int(days.max())
    return wanted if (days == np.minimum(wanted, ends)).all() else None


def compute_spacing(axis: TimeAxis, times: NDArray[Any]) -> RowSpacing:
    """Return the steps between the rows of one series."""
    ratios = np.diff(axis.to_counts(times)) / axis.step
    steps = np.maximum(np.round(ratios), 1).astype(np.int64)
    return RowSpacing(steps, np.flatnonzero(np.abs(ratios - steps) > TOLERANCE) + 1)


def fill_times(axis: TimeAxis, times: NDArray[Any], steps: NDArray[np.int64]) -> NDArray[Any]:
    """Return the times with the missing ones inserted; existing ones do not change."""
    indices = np.concatenate([[0], np.cumsum(steps)])
    counts = np.interp(np.arange(indices[-1] + 1), indices, axis.to_counts(times))
    filled = axis.from_counts(counts).astype(times.dtype)
    filled[indices] = times
    return filled


def parse_time(axis: TimeAxis, text: str) -> Any:
    """Return a time given as text: `numpy.datetime64`, or a number.

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
            message("'{text}' is not a time", text=text[:40]),
            hint=message("write {kind}", kind=message(kind)),
        ) from None
