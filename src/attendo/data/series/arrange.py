"""Rows of files into series: those of each together, increasing in time, gaps filled or refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError
from attendo.data.series.times import TOLERANCE, TimeAxis, fill_times, find_axis, find_spacing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.data.series.config import SeriesConfig

NUM_TOLD = 3
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
    homes: NDArray[np.int64]
    numbers: NDArray[np.int64]
    times: NDArray[Any] | None
    features: NDArray[np.float64]
    targets: NDArray[Any] | None

    def place(self, row: int) -> str:
        """Word where a row stands."""
        return f"{self.files[self.homes[row]]}, row {self.numbers[row] + 1}"


def arrange(
    files: list[FileRows], config: SeriesConfig, axis: TimeAxis | None
) -> tuple[list[Series], TimeAxis | None]:
    """Bring the rows of each series together, check their times and fill their gaps.

    `axis` is the one that they must have; the one that they have comes back.
    """
    series = _collect(files)
    if config.time is None:
        return series, None
    for one in series:
        _check_increasing(one, config)
    axis = _agree(axis, [one.times for one in series if one.times is not None], files[0].path)
    _check_gaps(series, axis, config)
    return [_fill(one, axis) for one in series], axis


def join(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """Put arrays one behind the other, or give none where one is missing."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _collect(files: list[FileRows]) -> list[Series]:
    """Gather the rows of each group over all files, in the order in which groups are met."""
    paths = [file.path for file in files]
    homes = np.repeat(np.arange(len(files)), [len(file.features) for file in files])
    numbers = np.concatenate([np.arange(len(file.features)) for file in files])
    groups = np.concatenate([file.groups for file in files])
    times, targets = join([file.times for file in files]), join([file.targets for file in files])
    features = np.concatenate([file.features for file in files])
    names = list(dict.fromkeys(groups.tolist()))
    places = {name: place for place, name in enumerate(names)}
    owners = np.array([places[name] for name in groups.tolist()])
    order = np.argsort(owners, kind="stable")
    cuts = np.searchsorted(owners[order], np.arange(1, len(names)))
    return [
        Series(
            name,
            paths,
            homes[rows],
            numbers[rows],
            None if times is None else times[rows],
            features[rows],
            None if targets is None else targets[rows],
        )
        for name, rows in zip(names, np.split(order, cuts), strict=True)
    ]


def _check_increasing(series: Series, config: SeriesConfig) -> None:
    assert series.times is not None  # noqa: S101 - a time column is named
    differences = np.diff(series.times)
    wrong = np.flatnonzero(~(differences > np.zeros(1, dtype=differences.dtype)))
    if not len(wrong):
        return
    row = int(wrong[0]) + 1
    before, after = _write(series.times[row - 1]), _write(series.times[row])
    among = "" if config.group is None else f" in the group '{series.name}'"
    other = "name the column that parts them as series.group" if config.group is None else ""
    raise InputError(
        f"{series.place(row)}: the time {after} does not come after {before}{among}",
        remedy="; or ".join(filter(None, ["sort the rows by time and take out copies", other])),
    )


def _write(time: Any) -> str:
    if isinstance(time, np.datetime64):
        return str(time).removesuffix(".000000").removesuffix("T00:00:00")
    return f"{time:.15g}"


def _agree(given: TimeAxis | None, series: list[NDArray[Any]], path: Path) -> TimeAxis:
    """Keep the axis that training had; a file with a finer or another one is not understood."""
    found = find_axis(series)
    if given is None:
        return found
    is_same_kind = (given.kind == "number") == (found.kind == "number")
    is_told = any(len(times) > 1 for times in series)  # a single row tells no spacing
    is_finer = given.unit == found.unit and found.step < (1 - TOLERANCE) * given.step
    if is_same_kind and not (is_told and is_finer):
        return given
    raise InputError(
        f"{path}: rows are {found.spacing} apart, in training they were {given.spacing}",
        remedy="bring the series to the spacing of the training data",
    )


def _check_gaps(series: list[Series], axis: TimeAxis, config: SeriesConfig) -> None:
    """Refuse rows between the steps, and gaps where they are not masked."""
    told: list[str] = []
    num_missing = num_rows = 0
    for one in series:
        assert one.times is not None  # noqa: S101 - a time column is named
        spacing = find_spacing(axis, one.times)
        if len(spacing.wrong):
            _refuse_irregular(one, int(spacing.wrong[0]), axis)
        num_rows += len(one.features)
        for row in np.flatnonzero(spacing.steps > 1):
            count = int(spacing.steps[row]) - 1
            num_missing += count
            if len(told) < NUM_TOLD:
                begin, end = axis.write(one.times[row : row + 2])
                told.append(f"{count:,} between {begin} and {end} ({one.place(int(row) + 1)})")
    if num_missing and config.gaps == "refuse":
        raise InputError(
            f"{num_missing:,} rows are missing in steps of {axis.spacing}: {'; '.join(told)}",
            remedy="set series.gaps=mask to read them as missing values, or leave series.time out: "
            "rows then follow one another",
        )
    if num_missing > num_rows:
        raise InputError(
            f"{num_missing:,} rows are missing beside the {num_rows:,} that are there: "
            f"{'; '.join(told)}",
            remedy="check these times; cut the series there with series.group, or leave "
            "series.time out: rows then follow one another",
        )


def _refuse_irregular(series: Series, row: int, axis: TimeAxis) -> None:
    assert series.times is not None  # noqa: S101 - a time column is named
    before, here = axis.write(series.times[row - 1 : row + 1])
    raise InputError(
        f"{series.place(row)}: {here} lies no whole number of steps of {axis.spacing} "
        f"behind {before}",
        remedy="bring the series to a regular spacing, or leave series.time out: rows then follow "
        "one another",
    )


def _fill(series: Series, axis: TimeAxis) -> Series:
    """Put rows of missing values into the gaps."""
    assert series.times is not None  # noqa: S101 - a time column is named
    steps = find_spacing(axis, series.times).steps
    if not (steps > 1).any():
        return series
    places = np.concatenate([[0], np.cumsum(steps)])
    return series._replace(
        times=fill_times(axis, series.times, steps),
        features=_spread(series.features, places),
        targets=None if series.targets is None else _spread(series.targets, places),
    )


def _spread(values: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    missing = None if values.dtype == object else np.nan
    wide = np.full((int(places[-1]) + 1, *values.shape[1:]), missing, dtype=values.dtype)
    wide[places] = values
    return wide
