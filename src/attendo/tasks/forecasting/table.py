"""Read files into one table: the rows of each series together, increasing in time, without gaps.

If the config does not name the features or the kind of the target, the first file decides; all
other files must have the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.tasks.forecasting.columns import (
    is_label_column,
    is_number_column,
    read_labels,
    read_numbers,
    read_times,
)
from attendo.tasks.forecasting.sources import read_column_file
from attendo.tasks.forecasting.time_axis import (
    TOLERANCE,
    TimeAxis,
    compute_spacing,
    fill_times,
    infer_axis,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.tasks.forecasting.config import SeriesConfig
    from attendo.tasks.forecasting.sources import ColumnFile


MAX_LISTED = 3
"""Gaps that an error names."""


class SeriesTable(NamedTuple):
    """The rows of one or more series, one series after the other."""

    config: SeriesConfig
    """The config, with features and kind filled in."""
    axis: TimeAxis | None
    times: NDArray[Any] | None  # (N,): datetime64[us] or float64
    groups: tuple[str, ...]
    """The names of the series: values of the group column, or file names."""
    offsets: NDArray[np.int64]  # (groups + 1,): the first row of each series, and the end
    features: NDArray[np.float64]  # (N, F), NaN = missing
    targets: NDArray[Any] | None  # labels (N,) text or None; numbers (N, K) float64; None = none
    num_filled: int
    """Rows of missing values that were inserted into gaps."""

    def rows(self, group: int) -> slice:
        """Return the rows of one series."""
        return slice(int(self.offsets[group]), int(self.offsets[group + 1]))


def read_table(
    paths: Path | Sequence[Path],
    config: SeriesConfig,
    *,
    axis: TimeAxis | None = None,
    needs_targets: bool = True,
) -> SeriesTable:
    """Return the table of one or more files.

    Args:
        paths: the files; those of `config` are ignored.
        config: which columns to read, and what to do with gaps.
        axis: the time axis that the files must have; inferred by default.
        needs_targets: False accepts files without target columns, such as those to forecast.

    """
    files = []
    for path in [paths] if isinstance(paths, Path) else paths:
        column_file = read_column_file(Path(path))
        config = resolve_config(column_file, config)
        files.append(_read_file(column_file, config, needs_targets=needs_targets))
    series, axis_found = assemble_series(files, config, axis)
    lengths = [len(one.features) for one in series]
    return SeriesTable(
        config,
        axis_found,
        concatenate([one.times for one in series]),
        tuple(one.name for one in series),
        np.cumsum([0, *lengths]),
        np.concatenate([one.features for one in series]),
        concatenate([one.targets for one in series]),
        sum(lengths) - sum(len(file.features) for file in files),
    )


def resolve_config(column_file: ColumnFile, config: SeriesConfig) -> SeriesConfig:
    """Return the config with features and kind of the target, taken from the file if not given."""
    if config.kind is None:
        are_labels = [is_label_column(column_file, name, "targets") for name in config.targets]
        kind = "labels" if len(are_labels) == 1 and are_labels[0] else "numbers"
        config = config.replace(kind=kind)
    if config.features:
        return config
    used = {config.time, config.group, *(config.targets if config.kind == "labels" else ())}
    unused = [name for name in column_file.columns if name not in used]
    features = tuple(name for name in unused if is_number_column(column_file, name))
    if not features:
        raise InputError(
            message("{path} has no column of numbers to read", path=column_file.path),
            hint=message(
                "name the columns in series.features. {detail}", detail=suggest("", unused)
            ),
        )
    return config.replace(features=features)


def _read_file(column_file: ColumnFile, config: SeriesConfig, *, needs_targets: bool) -> FileRows:
    groups = np.full(column_file.num_rows, str(column_file.path), dtype=object)
    if config.group is not None:
        groups = read_labels(column_file, config.group, "group")
        if None in groups:
            row = groups.tolist().index(None) + 1
            raise InputError(
                message(
                    "{path}, row {row}: the group in column '{group}' is empty",
                    path=column_file.path,
                    row=row,
                    group=config.group,
                ),
                hint="fill in the group of each row, or remove the row",
            )
    targets = _read_targets(column_file, config, needs_targets=needs_targets)
    features = [_read_feature(column_file, name) for name in config.features]
    return FileRows(
        column_file.path,
        None if config.time is None else read_times(column_file, config.time),
        groups,
        np.stack(features, axis=1),
        targets,
    )


def _read_feature(column_file: ColumnFile, name: str) -> NDArray[np.float64]:
    values = read_numbers(column_file, name, "features")
    if np.isnan(values).all():
        raise InputError(
            message(
                "{path}: all values of column '{name}' are missing",
                path=column_file.path,
                name=name,
            ),
            hint="exclude it: name the other columns in series.features",
        )
    return values


def _read_targets(
    column_file: ColumnFile, config: SeriesConfig, *, needs_targets: bool
) -> NDArray[Any] | None:
    if not needs_targets and any(name not in column_file.columns for name in config.targets):
        return None
    if config.kind == "labels":
        targets: NDArray[Any] = read_labels(column_file, config.targets[0], "targets")
        missing = np.array([label is None for label in targets])[:, None]
    else:
        columns = [read_numbers(column_file, name, "targets") for name in config.targets]
        targets = np.stack(columns, axis=1)
        missing = np.isnan(targets)
    for name, is_missing in zip(config.targets, np.atleast_1d(missing.all(axis=0)), strict=True):
        if is_missing and needs_targets:
            raise InputError(
                message(
                    "{path}: all values of the target '{name}' are missing",
                    path=column_file.path,
                    name=name,
                ),
                hint="choose another column in series.targets, or fill in its values",
            )
    return targets


# -- rows of files to series


class FileRows(NamedTuple):
    """The columns of one file."""

    path: Path
    times: NDArray[Any] | None
    groups: NDArray[np.object_]
    features: NDArray[np.float64]
    targets: NDArray[Any] | None


class Series(NamedTuple):
    """One series, with the origin of each row for error messages."""

    name: str
    files: list[Path]
    file_indices: NDArray[np.int64]
    row_numbers: NDArray[np.int64]
    times: NDArray[Any] | None
    features: NDArray[np.float64]
    targets: NDArray[Any] | None

    def location(self, row: int) -> str:
        """Return the file and the number of a row."""
        return message(
            "{path}, row {row}",
            path=self.files[self.file_indices[row]],
            row=self.row_numbers[row] + 1,
        )


def assemble_series(
    files: list[FileRows], config: SeriesConfig, axis: TimeAxis | None
) -> tuple[list[Series], TimeAxis | None]:
    """Return the series of several files, with checked times and filled gaps, and their time axis.

    If `axis` is given, the series must have it.
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
    """Concatenate arrays; return None if one of them is missing."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _group_rows(files: list[FileRows]) -> list[Series]:
    """Collect the rows of each group over all files, in order of first appearance."""
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
    group, hint = "", "sort the rows by time and remove duplicates, or set series.group"
    if config.group is not None:
        group = message(" in the group '{name}'", name=series.name)
        hint = "sort the rows by time and remove duplicates"
    raise InputError(
        message(
            "{row}: the time {after} is not after {before}{group}",
            row=series.location(row),
            after=after,
            before=before,
            group=group,
        ),
        hint=hint,
    )


def _format_time(time: Any) -> str:
    if isinstance(time, np.datetime64):
        return str(time).removesuffix(".000000").removesuffix("T00:00:00")
    return f"{time:.15g}"


def _check_same_axis(expected: TimeAxis | None, series: list[NDArray[Any]], path: Path) -> TimeAxis:
    """Return the axis of training; raise if the file has a finer or another one."""
    inferred = infer_axis(series)
    if expected is None:
        return inferred
    is_same_kind = (expected.kind == "number") == (inferred.kind == "number")
    has_spacing = any(len(times) > 1 for times in series)  # a single row has no spacing
    is_finer = expected.unit == inferred.unit and inferred.step < (1 - TOLERANCE) * expected.step
    if is_same_kind and not (has_spacing and is_finer):
        return expected
    raise InputError(
        message(
            "{path}: rows are {step_text} apart, in training they were {expected}",
            path=path,
            step_text=inferred.step_text,
            expected=expected.step_text,
        ),
        hint="resample the series to the spacing of the training data",
    )


def _check_gaps(series: list[Series], axis: TimeAxis, config: SeriesConfig) -> None:
    """Raise for rows between the steps, and for gaps unless they are masked."""
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
            message(
                "{num_missing:,} rows are missing in steps of {step_text}: {names}",
                num_missing=num_missing,
                step_text=axis.step_text,
                names="; ".join(messages),
            ),
            hint="use --set series.gaps=mask in training or --gaps mask in a forecast to read them "
            "as missing values; or train without a time column",
        )
    if num_missing > num_rows:
        raise InputError(
            message(
                "more rows are missing ({num_missing:,}) than present ({num_rows:,}): {names}",
                num_missing=num_missing,
                num_rows=num_rows,
                names="; ".join(messages),
            ),
            hint="check these times; split the series there with series.group, or leave "
            "series.time out to ignore times",
        )


def _raise_irregular(series: Series, row: int, axis: TimeAxis) -> None:
    assert series.times is not None  # noqa: S101 - a time column is named
    before, current = axis.format_times(series.times[row - 1 : row + 1])
    raise InputError(
        message(
            "{row}: {current} is not a whole number of steps of {step_text} after {before}",
            row=series.location(row),
            current=current,
            step_text=axis.step_text,
            before=before,
        ),
        hint="resample the series to a regular spacing, or leave series.time out to ignore times",
    )


def _fill_gaps(series: Series, axis: TimeAxis) -> Series:
    """Insert rows of missing values into the gaps."""
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
