"""Read files into one table: the rows of each series together, in the order of time, without gaps.

Which columns are features and what kind the target is, when the config leaves it open, is told by
the first file; all others must have the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, suggest
from attendo.tasks.forecasting.columns import (
    is_label_column,
    is_number_column,
    read_labels,
    read_numbers,
    read_times,
)
from attendo.tasks.forecasting.resample import FileRows, assemble_series, concatenate
from attendo.tasks.forecasting.sources import read_column_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.tasks.forecasting.config import SeriesConfig
    from attendo.tasks.forecasting.sources import ColumnFile
    from attendo.tasks.forecasting.time_axis import TimeAxis


class SeriesTable(NamedTuple):
    """The rows of one or more series, one series behind the other."""

    config: SeriesConfig
    """With features and kind as they were found."""
    axis: TimeAxis | None
    times: NDArray[Any] | None  # (N,): datetime64[us] or float64
    groups: tuple[str, ...]
    """The series: values of the group column, or the files' names."""
    offsets: NDArray[np.int64]  # (groups + 1,): where each series begins, and the end
    features: NDArray[np.float64]  # (N, F), NaN = missing
    targets: NDArray[Any] | None  # labels (N,) text or None; numbers (N, K) float64; None = none
    num_filled: int
    """Rows of missing values that were put into gaps."""

    def rows(self, group: int) -> slice:
        """Give the rows of one series."""
        return slice(int(self.offsets[group]), int(self.offsets[group + 1]))


def read_table(
    paths: Path | Sequence[Path],
    config: SeriesConfig,
    *,
    axis: TimeAxis | None = None,
    needs_targets: bool = True,
) -> SeriesTable:
    """Read one or more files.

    Args:
        paths: the files; those of `config` are not looked at.
        config: which columns, and what to do with gaps.
        axis: the time axis that the files must have; found when not given.
        needs_targets: False reads files that end where the forecast begins: target columns may be
            absent.

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
    """Fill in what the config leaves to the file: features and the target's kind."""
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
            f"{column_file.path} has no column of numbers to read",
            hint=f"name the columns in series.features. {suggest('', unused)}",
        )
    return config.replace(features=features)


def _read_file(column_file: ColumnFile, config: SeriesConfig, *, needs_targets: bool) -> FileRows:
    groups = np.full(column_file.num_rows, str(column_file.path), dtype=object)
    if config.group is not None:
        groups = read_labels(column_file, config.group, "group")
        if None in groups:
            row = groups.tolist().index(None) + 1
            raise InputError(
                f"{column_file.path}, row {row}: column '{config.group}' does not tell the series",
                hint="give each row its group, or leave the row out",
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
            f"{column_file.path}: all values of column '{name}' are missing",
            hint="leave it out: name the other columns in series.features",
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
                f"{column_file.path}: all values of the target '{name}' are missing",
                hint="choose another column in series.targets, or fill it",
            )
    return targets
