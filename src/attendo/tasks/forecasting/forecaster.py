"""Forecast time series: windows of numbers in, labels with probabilities or values out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch

from attendo.core.checkpoints import checkpoint
from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.core.seeding import derive_seed
from attendo.tasks.forecasting.bundle import load_series_bundle
from attendo.tasks.forecasting.decode import (
    can_enumerate,
    decode_greedily,
    decode_values,
    label_probabilities,
)
from attendo.tasks.forecasting.windows import extract_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

    from attendo.architectures.time_series import SeriesTransformer
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.config import Gaps

MAX_PARALLEL_SEQUENCES = {"cpu": 4096, "cuda": 65_536}
"""Most sequences that are decoded at a time, over all windows."""
NUM_SAMPLES = 200


class Forecast(NamedTuple):
    """The forecast for one window: labels with their probabilities, or numbers."""

    times: list[str]
    """The time of each step, as text; "+1", "+2" ... without a time column."""
    labels: list[str] | None
    """The greedy sequence: the most probable label at each step, given those before."""
    probabilities: list[dict[str, float]] | None
    """The marginal probability of each label at each step."""
    values: list[list[float]] | None
    """Values in the units of the file: one per target, for each step."""
    group: str | None = None
    """The series, if the file has several."""

    def to_dict(self) -> dict[str, Any]:
        """Return the forecast as JSON, without the fields that are None."""
        return {name: value for name, value in self._asdict().items() if value is not None}


class Forecaster:
    """A time series model and its codec.

    `Forecaster.load("runs/sea").predict_file("sea.csv")[0].labels` are the labels of the next week.
    """

    def __init__(
        self,
        model: SeriesTransformer,
        codec: SeriesCodec,
        *,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.codec = model, codec
        self.about = dict(about or {})
        self.temperature = float((self.about.get("calibration") or {}).get("temperature", 1.0))

    @classmethod
    def load(cls, directory: str | Path, *, device: torch.device | str | None = None) -> Self:
        """Load a model folder or a run folder, by default onto a GPU if there is one."""
        bundle = load_series_bundle(directory, device=resolve_device(device))
        return cls(bundle.model, bundle.codec, about=bundle.about)

    def predict(
        self,
        windows: ArrayLike,
        *,
        times: Sequence[Sequence[str]] | None = None,
        num_samples: int = NUM_SAMPLES,
        seed: int = 1,
    ) -> list[Forecast]:
        """Return the forecast after each window.

        Args:
            windows: (N, window, features), in the units of the file, NaN for missing values.
            times: the times of the horizon of each window, as text; by default "+1", "+2" ...
            num_samples: sequences sampled for the probabilities of labels. If there are no more
                than this, all are enumerated and the probabilities are exact.
            seed: of the sampling. The forecast of a window does not depend on other windows.

        """
        values = self.validate_windows(windows)
        checked_times = self._validate_times(times, len(values))
        if self.model.target_type == "numbers":
            numbers = self.predict_values(values).tolist()
            return [
                Forecast(times=window_times, labels=None, probabilities=None, values=rows)
                for window_times, rows in zip(checked_times, numbers, strict=True)
            ]
        names, labels = self.codec.labels, self.predict_labels(values).tolist()
        probabilities = self.predict_probabilities(
            values, num_samples=num_samples, seed=seed
        ).tolist()
        return [
            Forecast(
                times=window_times,
                labels=[names[index] for index in label_indices],
                probabilities=[dict(zip(names, step, strict=True)) for step in steps],
                values=None,
            )
            for window_times, label_indices, steps in zip(
                checked_times, labels, probabilities, strict=True
            )
        ]

    def predict_file(
        self,
        path: str | Path,
        *,
        last_only: bool = True,
        gaps: Gaps | None = None,
        num_samples: int = NUM_SAMPLES,
        seed: int = 1,
    ) -> list[Forecast]:
        """Return the forecast after the end of a file (CSV, Parquet, NPZ), or after each window.

        The file needs the columns of training; targets may be absent. `gaps` is what to do with
        missing rows, "refuse" or "mask"; by default the same as in training.
        """
        table = self.codec.read(Path(path), gaps=gaps)
        file_windows = extract_windows(table, last_only=last_only)
        forecasts = self.predict(
            file_windows.values,
            times=[self.codec.horizon_times(last) for last in file_windows.last_times],
            num_samples=num_samples,
            seed=seed,
        )
        if self.codec.group is None:
            return forecasts
        return [
            one._replace(group=name)
            for one, name in zip(forecasts, file_windows.groups, strict=True)
        ]

    # -- forecasts as arrays

    def predict_labels(self, windows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the greedy labels (N, T) as indices into `codec.labels`."""
        parts = [
            decode_greedily(self.model, src, self.codec.horizon)
            for src in self._normalized_batches(windows)
        ]
        return _concatenate(parts, (0, self.codec.horizon)).astype(np.int64)

    def predict_probabilities(
        self, windows: NDArray[np.float64], *, num_samples: int = NUM_SAMPLES, seed: int = 1
    ) -> NDArray[np.float64]:
        """Return the probability of each label at each step (N, T, L)."""
        if num_samples < 1:
            raise ConfigError(
                message("num_samples {num_samples}", num_samples=num_samples),
                hint="sample at least one sequence",
            )
        num_labels, horizon = len(self.codec.labels), self.codec.horizon
        is_exact = can_enumerate(num_labels, horizon, num_samples)
        num_sequences = num_labels ** (horizon - 1) if is_exact else num_samples
        parts, start = [], 0
        for src in self._normalized_batches(windows, num_sequences=num_sequences):
            rows = windows[start : start + len(src)]
            uniforms = (
                None if is_exact else sample_uniforms(rows, (num_samples, horizon), seed=seed)
            )
            parts.append(
                label_probabilities(
                    self.model,
                    src,
                    horizon,
                    temperature=self.temperature,
                    uniforms=None if uniforms is None else uniforms.to(src.device),
                )
            )
            start += len(src)
        return _concatenate(parts, (0, horizon, num_labels))

    def predict_values(self, windows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values of each step (N, T, K), in the units of the file."""
        horizon = self.codec.horizon
        parts = [
            decode_values(self.model, src, horizon) for src in self._normalized_batches(windows)
        ]
        return self.codec.denormalize_targets(
            _concatenate(parts, (0, horizon, len(self.codec.targets)))
        )

    def validate_windows(self, windows: ArrayLike) -> NDArray[np.float64]:
        """Return windows as an array; raise for a wrong shape or infinite values."""
        try:
            values = np.asarray(windows, dtype=np.float64)
        except (TypeError, ValueError):
            reason = "the windows are not numbers of one shape"
            raise InputError(reason, hint=self._shape_hint()) from None
        shape = (self.codec.window, len(self.codec.features))
        if values.ndim != 3 or values.shape[1:] != shape:
            raise InputError(
                message(
                    "the windows have shape {shape}; the model reads {window} steps of "
                    "{num_features} features",
                    shape=values.shape,
                    window=shape[0],
                    num_features=shape[1],
                ),
                hint=self._shape_hint(),
            )
        if np.isinf(values).any():
            index, step, column = np.argwhere(np.isinf(values))[0]
            raise InputError(
                message(
                    "window {index}, step {step}, {name}: the value is infinite",
                    index=index + 1,
                    step=step + 1,
                    name=self.codec.features[column],
                ),
                hint="correct it, or use NaN for a missing value",
            )
        return values

    def _shape_hint(self) -> str:
        codec = self.codec
        return f"give (windows, {codec.window}, {len(codec.features)}): {', '.join(codec.features)}"

    def _validate_times(self, times: Sequence[Sequence[str]] | None, count: int) -> list[list[str]]:
        if times is None:
            return [self.codec.horizon_times() for _ in range(count)]
        if len(times) != count or any(
            len(window_times) != self.codec.horizon for window_times in times
        ):
            raise InputError(
                message("`times` does not match the {count} windows", count=count),
                hint=message("give {horizon} times per window", horizon=self.codec.horizon),
            )
        return [[*own] for own in times]

    def _normalized_batches(
        self, windows: NDArray[np.float64], *, num_sequences: int = 1
    ) -> Iterator[Tensor]:
        """Yield normalized windows (B, S, F) in batches, with the model in evaluation mode."""
        device = next(self.model.parameters()).device
        size = max(
            1,
            MAX_PARALLEL_SEQUENCES.get(device.type, MAX_PARALLEL_SEQUENCES["cpu"]) // num_sequences,
        )
        was_training = self.model.training
        self.model.eval()
        try:
            for start in range(0, len(windows), size):
                checkpoint()
                values = self.codec.normalize(windows[start : start + size])
                yield torch.from_numpy(values).to(device)
        finally:
            self.model.train(was_training)


def sample_uniforms(windows: NDArray[np.float64], shape: tuple[int, int], *, seed: int) -> Tensor:
    """Return uniform random numbers for each window, seeded by `seed` and its values."""
    rows = []
    for window in windows:
        window_seed = derive_seed(seed, np.ascontiguousarray(window).tobytes().hex())
        rows.append(torch.rand(shape, generator=torch.Generator().manual_seed(window_seed)))
    return torch.stack(rows)


def _concatenate(parts: list[Tensor], empty_shape: tuple[int, ...]) -> NDArray[Any]:
    return torch.cat(parts).cpu().numpy() if parts else np.zeros(empty_shape)
