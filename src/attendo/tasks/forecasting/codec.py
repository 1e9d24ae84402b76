"""What a time series model knows of its data: columns, normalization, labels, window and horizon.

The codec is stored in the model folder as `series.json`, as a tokenizer is for text. Label ids
start after the ids of padding, unknown, start and end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.tasks.forecasting.config import Gaps, Kind, Name, SeriesConfig
from attendo.tasks.forecasting.table import SeriesTable, read_table
from attendo.tasks.forecasting.time_axis import TimeAxis  # noqa: TC001 - pydantic reads it
from attendo.text.tokenizer import END_ID, PAD_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import ArrayLike, NDArray

CODEC_FILE = "series.json"
NUM_SPECIAL_IDS = END_ID + 1
"""The first label id, after padding, unknown, start and end."""
Finite = Annotated[float, Field(allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
MAX_LISTED = 5


class SeriesCodec(Config):
    """Converts the columns of a file to the input of a model, and its output back.

    >>> codec = SeriesCodec(
    ...     features=["heat"], targets=["storm"], kind="labels", labels=["no", "yes"],
    ...     mean=[20.0], deviation=[5.0], window=3, horizon=2,
    ... )
    >>> codec.normalize([[25.0], [float("nan")]]).tolist(), codec.encode_labels(["yes", None])
    ([[1.0], [nan]], array([5, 0]))
    """

    features: Annotated[tuple[Name, ...], Field(min_length=1)]
    targets: Annotated[tuple[Name, ...], Field(min_length=1)]
    kind: Kind
    labels: tuple[str, ...] = ()
    """The names of the labels, in the order of their ids, from `NUM_SPECIAL_IDS` on."""
    mean: tuple[Finite, ...]
    """The mean of each feature over the rows of train."""
    deviation: tuple[Positive, ...]
    target_mean: tuple[Finite, ...] = ()
    """The mean of each numeric target."""
    target_deviation: tuple[Positive, ...] = ()
    window: Count
    horizon: Count
    time: Name | None = None
    group: Name | None = None
    axis: TimeAxis | None = None
    gaps: Gaps = "refuse"

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        wanted = len(self.targets) if self.kind == "numbers" else 0
        lengths = {
            "mean": (len(self.mean), len(self.features)),
            "deviation": (len(self.deviation), len(self.features)),
            "target_mean": (len(self.target_mean), wanted),
            "target_deviation": (len(self.target_deviation), wanted),
        }
        reasons = [
            f"{name} has {actual} numbers, not {expected}"
            for name, (actual, expected) in lengths.items()
            if actual != expected
        ]
        if bool(self.labels) != (self.kind == "labels"):
            reasons.append(f"kind '{self.kind}' with {len(self.labels)} labels")
        if len(set(self.labels)) != len(self.labels):
            reasons.append("a label is named twice")
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    # -- files

    def save(self, path: str | Path) -> None:
        """Write the codec into a folder."""
        super().save(Path(path) / CODEC_FILE)

    @classmethod
    def load(cls, path: str | Path, overrides: Iterable[str] = ()) -> Self:
        """Read the codec of a folder."""
        return super().load(Path(path) / CODEC_FILE, overrides)

    def read(
        self,
        paths: Path | Sequence[Path],
        *,
        needs_targets: bool = False,
        gaps: Gaps | None = None,
    ) -> SeriesTable:
        """Return a table of files that have the columns of training.

        Target columns may be absent unless they are needed; `gaps` is by default that of training.
        """
        chosen = (paths,) if isinstance(paths, Path) else tuple(paths)
        config = SeriesConfig(
            paths=chosen,
            time=self.time,
            group=self.group,
            features=self.features,
            targets=self.targets,
            kind=self.kind,
            window=self.window,
            horizon=self.horizon,
            gaps=gaps or self.gaps,
        )
        return read_table(chosen, config, axis=self.axis, needs_targets=needs_targets)

    # -- numbers

    def normalize(self, features: ArrayLike) -> NDArray[np.float32]:
        """Return features (..., F) with mean 0 and deviation 1; NaN stays NaN."""
        return _standardize(features, self.mean, self.deviation)

    def denormalize(self, features: ArrayLike) -> NDArray[np.float64]:
        """Return normalized features in the units of the file."""
        values = np.asarray(features, dtype=np.float64)
        return np.asarray(values * np.asarray(self.deviation) + np.asarray(self.mean))

    def normalize_targets(self, values: ArrayLike) -> NDArray[np.float32]:
        """Return numeric targets (..., K) with mean 0 and deviation 1; NaN stays NaN."""
        return _standardize(values, self.target_mean, self.target_deviation)

    def denormalize_targets(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return normalized targets (..., K) in the units of the file."""
        numbers = np.asarray(values, dtype=np.float64)
        return np.asarray(numbers * np.asarray(self.target_deviation) + self.target_mean)

    # -- labels

    @property
    def vocab_size(self) -> int:
        """The number of label ids, special ids included."""
        return NUM_SPECIAL_IDS + len(self.labels)

    def encode_labels(self, labels: Sequence[str | None], location: str = "") -> NDArray[np.int64]:
        """Return the id of each label, padding for a missing one; raise for an unseen label.

        `location` names the file in error messages.
        """
        known = {label: NUM_SPECIAL_IDS + number for number, label in enumerate(self.labels)}
        unseen = list(dict.fromkeys(label for label in labels if label not in known))
        named = [repr(label) for label in unseen if label is not None]
        if named:
            first = ", ".join(named[:MAX_LISTED]) + (" ..." if len(named) > MAX_LISTED else "")
            prefix = f"{location}: " if location else ""
            raise InputError(
                message(
                    "{prefix}labels of '{target}' that do not occur in training: {first}",
                    prefix=prefix,
                    target=self.targets[0],
                    first=first,
                ),
                hint=message(
                    "known labels: {names}. Rename them, leave the field empty to mask it, or "
                    "train on data that has them",
                    names=", ".join(self.labels),
                ),
            )
        return np.array([known.get(label or "", PAD_ID) for label in labels], dtype=np.int64)

    def decode_labels(self, ids: Iterable[int]) -> list[str]:
        """Return the label of each id; special ids are left out."""
        numbers = (int(number) - NUM_SPECIAL_IDS for number in ids)
        return [self.labels[number] for number in numbers if 0 <= number < len(self.labels)]

    # -- times

    def horizon_times(self, last: Any = None) -> list[str]:
        """Return the times after a window whose last row has the time `last`, as text."""
        if self.axis is None or last is None:
            return [f"+{step}" for step in range(1, self.horizon + 1)]
        return self.axis.format_times(self.axis.next_times(last, self.horizon))


def _standardize(
    values: ArrayLike, mean: tuple[float, ...], deviation: tuple[float, ...]
) -> NDArray[np.float32]:
    values_float64 = np.asarray(values, dtype=np.float64)
    if values_float64.shape[-1] != len(mean):
        raise InputError(
            message(
                "{shape} columns do not match the {num_mean} of training",
                shape=values_float64.shape[-1],
                num_mean=len(mean),
            ),
            hint="give the columns of training, in their order",
        )
    return np.asarray((values_float64 - np.asarray(mean)) / np.asarray(deviation), dtype=np.float32)
