"""Where a series lies, which of its columns are read, and how it is cut into windows."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError

Kind = Literal["labels", "numbers"]
Gaps = Literal["refuse", "mask"]
Name = Annotated[str, Field(min_length=1)]


class SeriesConfig(Config):
    """`[data]` of a run with `task = "series"`.

    A window is `window` rows of one series, its target the `horizon` rows behind them.

    >>> config = SeriesConfig(paths=["sea.csv"], time="date", targets=["typhoon"])
    >>> config.window, config.horizon
    (30, 7)
    """

    paths: Annotated[tuple[Path, ...], Field(min_length=1)]
    """CSV (also .csv.gz), Parquet or NPZ. Each file is a series of its own, unless `group` tells
    which rows belong together."""
    dev: tuple[Path, ...] = ()
    """Files of their own for dev; without them the last part of time is dev."""
    time: Name | None = None
    """The column of times: ISO dates or date-times, or numbers. Without it, rows are in order."""
    group: Name | None = None
    """The column that tells which series a row belongs to; no window straddles two."""
    features: tuple[Name, ...] = ()
    """Columns that are read as input; when empty, all columns of numbers but time, group and a
    target of labels."""
    targets: Annotated[tuple[Name, ...], Field(min_length=1)]
    """One column of labels, or one or more of numbers."""
    kind: Kind | None = None
    """When not given, told by the target: numbers are numbers, unless all of them are 0 or 1."""
    window: Count = 30
    """Rows that are read."""
    horizon: Count = 7
    """Rows that are foretold."""
    stride: Count = 1
    """Rows from one window to the next."""
    dev_share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    """The last windows of each series, so large a share, are dev; none of train overlaps with what
    dev foretells."""
    gaps: Gaps = "refuse"
    """Rows that a regular time column lacks: refuse the file, or read them as missing values."""

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        reasons = [*self._target_errors(), *self._feature_errors()]
        if self.time is not None and self.time == self.group:
            reasons.append(f"time and group are both '{self.time}'")
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    def _target_errors(self) -> list[str]:
        reasons = []
        if self.kind == "labels" and len(self.targets) > 1:
            listing = ", ".join(self.targets)
            reasons.append(f"targets {listing}: labels are one column (join them into one)")
        reasons += [
            f"target '{name}' is the {role} column as well"
            for role, name in (("time", self.time), ("group", self.group))
            if name in self.targets
        ]
        return [*reasons, *_duplicate_errors("targets", self.targets)]

    def _feature_errors(self) -> list[str]:
        reasons = [f"feature '{name}' is the group" for name in self.features if name == self.group]
        if self.kind == "labels" and set(self.targets) & set(self.features):
            reasons.append(f"feature '{self.targets[0]}' is the target of labels: leave it out")
        return [*reasons, *_duplicate_errors("features", self.features)]


def _duplicate_errors(setting: str, names: tuple[str, ...]) -> list[str]:
    duplicates = sorted({name for name in names if names.count(name) > 1})
    return [f"{setting}: '{name}' is named twice" for name in duplicates]
