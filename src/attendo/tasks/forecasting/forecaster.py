"""Foretells what comes behind windows of numbers: normalises, walks, puts back into words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError
from attendo.core.seeding import derive_seed
from attendo.tasks.forecasting.bundle import load_series_bundle
from attendo.tasks.forecasting.decode import (
    can_enumerate,
    decode_greedily,
    decode_values,
    label_probabilities,
)
from attendo.tasks.forecasting.forecast import Forecast
from attendo.tasks.forecasting.history import extract_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

    from attendo.architectures.time_series import SeriesTransformer
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.config import Gaps

MAX_PARALLEL_SEQUENCES = {"cpu": 4096, "cuda": 65_536}
"""Sequences, of all windows together, that are walked at once."""
NUM_SAMPLES = 200


class Forecaster:
    """A series model and its codec.

    `Forecaster.load("runs/sea").predict_file("sea.csv")[0].labels` gives the labels of next week.
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
        """Read the folder of a model, or of the run that made it, onto a GPU where there is one."""
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
        """Foretell the horizon behind each window.

        Args:
            windows: (N, window, features), in the units of the file, NaN for what is missing.
            times: of the horizon of each window, as text; "+1", "+2" ... when not given.
            num_samples: sequences that are drawn for the chances of labels. Where there are no more
                than so many, all are walked and the chances are exact.
            seed: of the draws: the same seed and window give the same, whatever else is foretold.

        """
        values = self.validate_windows(windows)
        checked_times = self._validate_times(times, len(values))
        if self.model.target_type == "numbers":
            numbers = self.predict_values(values).tolist()
            return [
                Forecast(window_times, None, None, rows)
                for window_times, rows in zip(checked_times, numbers, strict=True)
            ]
        names, labels = self.codec.labels, self.predict_labels(values).tolist()
        probabilities = self.predict_probabilities(
            values, num_samples=num_samples, seed=seed
        ).tolist()
        return [
            Forecast(
                own,
                [names[index] for index in label_indices],
                [dict(zip(names, step, strict=True)) for step in steps],
                None,
            )
            for own, label_indices, steps in zip(checked_times, labels, probabilities, strict=True)
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
        """Foretell what comes behind a file (CSV, Parquet, NPZ), or behind each window in it.

        The columns are those of training; targets may be absent. `gaps` says what becomes of rows
        that are missing in time: "refuse" or "mask", as in training when not given.
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

    # -- the same as arrays, for whoever measures

    def predict_labels(self, windows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Give the places of the likeliest labels (N, T) in `codec.labels`."""
        parts = [
            decode_greedily(self.model, src, self.codec.horizon)
            for src in self._normalized_batches(windows)
        ]
        return _concatenate(parts, (0, self.codec.horizon)).astype(np.int64)

    def predict_probabilities(
        self, windows: NDArray[np.float64], *, num_samples: int = NUM_SAMPLES, seed: int = 1
    ) -> NDArray[np.float64]:
        """Give the chance of each label at each step (N, T, L)."""
        if num_samples < 1:
            raise ConfigError(f"num_samples {num_samples}", hint="draw at least one sequence")
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
        """Give the numbers of each step (N, T, K), in the units of the file."""
        horizon = self.codec.horizon
        parts = [
            decode_values(self.model, src, horizon) for src in self._normalized_batches(windows)
        ]
        return self.codec.denormalize_targets(
            _concatenate(parts, (0, horizon, len(self.codec.targets)))
        )

    def validate_windows(self, windows: ArrayLike) -> NDArray[np.float64]:
        """Refuse windows of another length, with other columns, or with infinite values."""
        try:
            values = np.asarray(windows, dtype=np.float64)
        except (TypeError, ValueError):
            reason = "the windows are no table of numbers of one shape"
            raise InputError(reason, hint=self._shape_hint()) from None
        shape = (self.codec.window, len(self.codec.features))
        if values.ndim != 3 or values.shape[1:] != shape:
            raise InputError(
                f"the windows have the shape {values.shape}; the model reads {shape[0]} steps of "
                f"{shape[1]} features",
                hint=self._shape_hint(),
            )
        if np.isinf(values).any():
            index, step, column = np.argwhere(np.isinf(values))[0]
            raise InputError(
                f"window {index + 1}, step {step + 1}, {self.codec.features[column]}: "
                "the value is infinite",
                hint="mend it, or write NaN where a value is missing",
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
                f"times of {len(times)} windows do not fit {count} windows",
                hint=f"give {self.codec.horizon} times for each window",
            )
        return [[*own] for own in times]

    def _normalized_batches(
        self, windows: NDArray[np.float64], *, num_sequences: int = 1
    ) -> Iterator[Tensor]:
        """Give normalised windows (B, S, F), as many as fit; dropout is off meanwhile."""
        device = next(self.model.parameters()).device
        size = max(
            1,
            MAX_PARALLEL_SEQUENCES.get(device.type, MAX_PARALLEL_SEQUENCES["cpu"]) // num_sequences,
        )
        was_training = self.model.training
        self.model.eval()
        try:
            for start in range(0, len(windows), size):
                values = self.codec.normalize(windows[start : start + size])
                yield torch.from_numpy(values).to(device)
        finally:
            self.model.train(was_training)


def sample_uniforms(windows: NDArray[np.float64], shape: tuple[int, int], *, seed: int) -> Tensor:
    """Draw numbers between 0 and 1 for each window, by the seed and the window's own values."""
    rows = []
    for window in windows:
        window_seed = derive_seed(seed, np.ascontiguousarray(window).tobytes().hex())
        rows.append(torch.rand(shape, generator=torch.Generator().manual_seed(window_seed)))
    return torch.stack(rows)


def _concatenate(parts: list[Tensor], empty_shape: tuple[int, ...]) -> NDArray[Any]:
    return torch.cat(parts).cpu().numpy() if parts else np.zeros(empty_shape)
