"""Rows of files into series: those of each together, increasing in time, gaps filled or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.tasks.forecasting.time_axis import (
    TOLERANCE,
    TimeAxis,
    compute_spacing,
    fill_times,
    infer_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.tasks.forecasting.config import SeriesConfig

MAX_LISTED = 3
"""So many gaps are named."""


class FileRows(NamedTuple):
    """One file's columns, as read."""

    path: Path
    times: NDArray[Any] | None
    groups: NDArray[np.object_]
    features: NDArray[np.float64]
    targets: NDArray[Any] | None


class Series(NamedTuple):
    """One series, with the place of each row for messages."""

    name: str
    files: list[Path]
    file_indices: NDArray[np.int64]
    row_numbers: NDArray[np.int64]
    times: NDArray[Any] | None
    features: NDArray[np.float64]
    targets: NDArray[Any] | None

    def location(self, row: int) -> str:
        """Word where a row stands."""
        return f"{self.files[self.file_indices[row]]}, row {self.row_numbers[row] + 1}"


def assemble_series(
    files: list[FileRows], config: SeriesConfig, axis: TimeAxis | None
) -> tuple[list[Series], TimeAxis | None]:
    """Bring the rows of each series together, check their times and fill their gaps.

    `axis` is the one that they must have; the one that they have comes back.
    """
    series = _group_rows(files)
    if config.time is None:
        return series, None
    for one in series:
        _check_increasing(one, config)
    axis = _check_same_axis(
        axis, [one.times for one in series if one.times is not None], files[0].path
    )
    _check_gaps(series, axis, config)
    return [_fill_gaps(one, axis) for one in series], axis


def concatenate(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Put arrays one behind the other, or give none where one is missing."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _group_rows(files: list[FileRows]) -> list[Series]:
    """Gather the rows of each group over all files, in the order in which groups are met."""
    paths = [file.path for file in files]
    file_indices = np.repeat(np.arange(len(files)), [len(file.features) for file in files])
    row_numbers = np.concatenate([np.arange(len(file.features)) for file in files])
    groups = np.concatenate([file.groups for file in files])
    times, targets = (
        concatenate([file.times for file in files]),
        concatenate([file.targets for file in files]),
    )
    features = np.concatenate([file.features for file in files])
    names = list(dict.fromkeys(groups.tolist()))
    group_ids = {name: group_id for group_id, name in enumerate(names)}
    group_of_row = np.array([group_ids[name] for name in groups.tolist()])
    order = np.argsort(group_of_row, kind="stable")
    boundaries = np.searchsorted(group_of_row[order], np.arange(1, len(names)))
    return [
        Series(
            name,
            paths,
            file_indices[rows],
            row_numbers[rows],
            None if times is None else times[rows],
            features[rows],
            None if targets is None else targets[rows],
        )
        for name, rows in zip(names, np.split(order, boundaries), strict=True)
    ]


def _check_increasing(series: Series, config: SeriesConfig) -> None:
    assert series.times is not None  # noqa: S101 - a time column is named
    differences = np.diff(series.times)
    wrong = np.flatnonzero(~(differences > np.zeros(1, dtype=differences.dtype)))
    if not len(wrong):
        return
    row = int(wrong[0]) + 1
    before, after = _format_time(series.times[row - 1]), _format_time(series.times[row])
    among = "" if config.group is None else f" in the group '{series.name}'"
    other = "name the column that parts them as series.group" if config.group is None else ""
    raise InputError(
        f"{series.location(row)}: the time {after} does not come after {before}{among}",
        hint="; or ".join(filter(None, ["sort the rows by time and take out copies", other])),
    )


def _format_time(time: Any) -> str:
    if isinstance(time, np.datetime64):
        return str(time).removesuffix(".000000").removesuffix("T00:00:00")
    return f"{time:.15g}"


def _check_same_axis(expected: TimeAxis | None, series: list[NDArray[Any]], path: Path) -> TimeAxis:
    """Keep the axis that training had; a file with a finer or another one is not understood."""
    inferred = infer_axis(series)
    if expected is None:
        return inferred
    is_same_kind = (expected.kind == "number") == (inferred.kind == "number")
    has_spacing = any(len(times) > 1 for times in series)  # a single row tells no spacing
    is_finer = expected.unit == inferred.unit and inferred.step < (1 - TOLERANCE) * expected.step
    if is_same_kind and not (has_spacing and is_finer):
        return expected
    raise InputError(
        f"{path}: rows are {inferred.step_text} apart, in training they were {expected.step_text}",
        hint="bring the series to the spacing of the training data",
    )


def _check_gaps(series: list[Series], axis: TimeAxis, config: SeriesConfig) -> None:
    """Refuse rows between the steps, and gaps where they are not masked."""
    messages: list[str] = []
    num_missing = num_rows = 0
    for one in series:
        assert one.times is not None  # noqa: S101 - a time column is named
        spacing = compute_spacing(axis, one.times)
        if len(spacing.irregular_rows):
            _raise_irregular(one, int(spacing.irregular_rows[0]), axis)
        num_rows += len(one.features)
        for row in np.flatnonzero(spacing.steps > 1):
            count = int(spacing.steps[row]) - 1
            num_missing += count
            if len(messages) < MAX_LISTED:
                begin, end = axis.format_times(one.times[row : row + 2])
                messages.append(
                    f"{count:,} between {begin} and {end} ({one.location(int(row) + 1)})"
                )
    if num_missing and config.gaps == "refuse":
        raise InputError(
            f"{num_missing:,} rows are missing in steps of {axis.step_text}: {'; '.join(messages)}",
            hint="set series.gaps=mask to read them as missing values, or leave series.time out: "
            "rows then follow one another",
        )
    if num_missing > num_rows:
        raise InputError(
            f"{num_missing:,} rows are missing beside the {num_rows:,} that are there: "
            f"{'; '.join(messages)}",
            hint="check these times; cut the series there with series.group, or leave "
            "series.time out: rows then follow one another",
        )


def _raise_irregular(series: Series, row: int, axis: TimeAxis) -> None:
    assert series.times is not None  # noqa: S101 - a time column is named
    before, current = axis.format_times(series.times[row - 1 : row + 1])
    raise InputError(
        f"{series.location(row)}: {current} lies no whole number of steps of {axis.step_text} "
        f"behind {before}",
        hint="bring the series to a regular spacing, or leave series.time out: rows then follow "
        "one another",
    )


def _fill_gaps(series: Series, axis: TimeAxis) -> Series:
    """Put rows of missing values into the gaps."""
    assert series.times is not None  # noqa: S101 - a time column is named
    steps = compute_spacing(axis, series.times).steps
    if not (steps > 1).any():
        return series
    indices = np.concatenate([[0], np.cumsum(steps)])
    return series._replace(
        times=fill_times(axis, series.times, steps),
        features=_scatter_rows(series.features, indices),
        targets=None if series.targets is None else _scatter_rows(series.targets, indices),
    )


def _scatter_rows(values: NDArray[Any], indices: NDArray[np.int64]) -> NDArray[Any]:
    missing = None if values.dtype == object else np.nan
    scattered = np.full((int(indices[-1]) + 1, *values.shape[1:]), missing, dtype=values.dtype)
    scattered[indices] = values
    return scattered
