"""Settings of time series: files, columns and windows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError
from attendo.core.message import message

Kind = Literal["labels", "numbers"]
Gaps = Literal["refuse", "mask"]
Name = Annotated[str, Field(min_length=1)]


class SeriesConfig(Config):
    """The table `[series]` of a run.

    A window is `window` rows of one series; its target is the `horizon` rows after them.

    >>> config = SeriesConfig(paths=["sea.csv"], time="date", targets=["typhoon"])
    >>> config.window, config.horizon
    (30, 7)
    """

    paths: Annotated[tuple[Path, ...], Field(min_length=1)]
    """CSV (also .csv.gz), Parquet or NPZ. Each file is a series, unless `group` names a column."""
    dev: tuple[Path, ...] = ()
    """Files for dev; by default the last part of each series is dev."""
    time: Name | None = None
    """The column of times: ISO dates, date-times or numbers. Without it, rows are consecutive."""
    group: Name | None = None
    """The column that names the series of a row; no window spans two series."""
    features: tuple[Name, ...] = ()
    """Input columns; by default all columns of numbers except time, group and label targets."""
    targets: Annotated[tuple[Name, ...], Field(min_length=1)]
    """One column of labels, or one or more of numbers."""
    kind: Kind | None = None
    """By default inferred from the target: texts, or only 0 and 1, are labels."""
    window: Count = 30
    """Rows that the model reads."""
    horizon: Count = 7
    """Rows to forecast."""
    stride: Count = 1
    """Rows from one window to the next."""
    dev_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    """The share of the windows of each series, its last ones, that is dev; no target of dev is in
    train."""
    gaps: Gaps = "refuse"
    """Rows missing from a regular time column: refuse the file, or read them as missing values."""

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        reasons = [*self._target_errors(), *self._feature_errors()]
        if self.time is not None and self.time == self.group:
            reasons.append(message("time and group are both '{time}'", time=self.time))
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    def _target_errors(self) -> list[str]:
        reasons = []
        if self.kind == "labels" and len(self.targets) > 1:
            listing = ", ".join(self.targets)
            reasons.append(
                message(
                    "targets {listing}: labels must be one column (combine them)", listing=listing
                )
            )
        reasons += [
            message("target '{name}' is also the {role} column", name=name, role=role)
            for role, name in (("time", self.time), ("group", self.group))
            if name in self.targets
        ]
        return [*reasons, *_duplicate_errors("targets", self.targets)]

    def _feature_errors(self) -> list[str]:
        reasons = [
            message("feature '{name}' is the group", name=name)
            for name in self.features
            if name == self.group
        ]
        if self.kind == "labels" and set(self.targets) & set(self.features):
            reasons.append(
                message(
                    "feature '{targets}' is the target of labels: leave it out",
                    targets=self.targets[0],
                )
            )
        return [*reasons, *_duplicate_errors("features", self.features)]


def _duplicate_errors(setting: str, names: tuple[str, ...]) -> list[str]:
    duplicates = sorted({name for name in names if names.count(name) > 1})
    return [
        message("{setting}: '{name}' is named twice", setting=setting, name=name)
        for name in duplicates
    ]
