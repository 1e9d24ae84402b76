"""Foretells what comes behind windows of numbers: normalises, walks, puts back into words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from attendo.bundle import choose_device, load_series_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.core.seeding import derive_seed
from attendo.forecaster.forecast import Forecast
from attendo.forecaster.walk import find_chances, is_countable, walk_greedily, walk_numbers
from attendo.forecaster.windows import cut_windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray
    from torch import Tensor

    from attendo.data.series.codec import SeriesCodec
    from attendo.data.series.config import Gaps
    from attendo.model.series import SeriesTransformer

LANES = {"cpu": 4096, "cuda": 65_536}
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
        bundle = load_series_bundle(directory, device=choose_device(device))
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
        values = self.check(windows)
        named = self._check_times(times, len(values))
        if self.model.says == "numbers":
            numbers = self.find_values(values).tolist()
            return [
                Forecast(own, None, None, rows) for own, rows in zip(named, numbers, strict=True)
            ]
        names, labels = self.codec.labels, self.find_labels(values).tolist()
        chances = self.find_chances(values, num_samples=num_samples, seed=seed).tolist()
        return [
            Forecast(
                own,
                [names[place] for place in places],
                [dict(zip(names, step, strict=True)) for step in steps],
                None,
            )
            for own, places, steps in zip(named, labels, chances, strict=True)
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
        cut = cut_windows(table, last_only=last_only)
        found = self.predict(
            cut.values,
            times=[self.codec.horizon_times(last) for last in cut.lasts],
            num_samples=num_samples,
            seed=seed,
        )
        if self.codec.group is None:
            return found
        return [one._replace(group=name) for one, name in zip(found, cut.groups, strict=True)]

    # -- the same as arrays, for whoever measures

    def find_labels(self, windows: NDArray[np.float64]) -> NDArray[np.int64]:
        """Give the places of the likeliest labels (N, T) in `codec.labels`."""
        parts = [walk_greedily(self.model, src, self.codec.horizon) for src in self._read(windows)]
        return _join(parts, (0, self.codec.horizon)).astype(np.int64)

    def find_chances(
        self, windows: NDArray[np.float64], *, num_samples: int = NUM_SAMPLES, seed: int = 1
    ) -> NDArray[np.float64]:
        """Give the chance of each label at each step (N, T, L)."""
        if num_samples < 1:
            raise ConfigError(f"num_samples {num_samples}", remedy="draw at least one sequence")
        num_labels, horizon = len(self.codec.labels), self.codec.horizon
        is_exact = is_countable(num_labels, horizon, num_samples)
        num_lanes = num_labels ** (horizon - 1) if is_exact else num_samples
        parts, begin = [], 0
        for src in self._read(windows, num_lanes=num_lanes):
            rows = windows[begin : begin + len(src)]
            draws = None if is_exact else draw_numbers(rows, (num_samples, horizon), seed=seed)
            parts.append(
                find_chances(
                    self.model,
                    src,
                    horizon,
                    temperature=self.temperature,
                    draws=None if draws is None else draws.to(src.device),
                )
            )
            begin += len(src)
        return _join(parts, (0, horizon, num_labels))

    def find_values(self, windows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Give the numbers of each step (N, T, K), in the units of the file."""
        horizon = self.codec.horizon
        parts = [walk_numbers(self.model, src, horizon) for src in self._read(windows)]
        return self.codec.restore_targets(_join(parts, (0, horizon, len(self.codec.targets))))

    def check(self, windows: ArrayLike) -> NDArray[np.float64]:
        """Refuse windows of another length, with other columns, or with infinite values."""
        try:
            values = np.asarray(windows, dtype=np.float64)
        except (TypeError, ValueError):
            reason = "the windows are no table of numbers of one shape"
            raise InputError(reason, remedy=self._shape_remedy()) from None
        shape = (self.codec.window, len(self.codec.features))
        if values.ndim != 3 or values.shape[1:] != shape:
            raise InputError(
                f"the windows have the shape {values.shape}; the model reads {shape[0]} steps of "
                f"{shape[1]} features",
                remedy=self._shape_remedy(),
            )
        if np.isinf(values).any():
            place, step, column = np.argwhere(np.isinf(values))[0]
            raise InputError(
                f"window {place + 1}, step {step + 1}, {self.codec.features[column]}: "
                "the value is infinite",
                remedy="mend it, or write NaN where a value is missing",
            )
        return values

    def _shape_remedy(self) -> str:
        codec = self.codec
        return f"give (windows, {codec.window}, {len(codec.features)}): {', '.join(codec.features)}"

    def _check_times(self, times: Sequence[Sequence[str]] | None, count: int) -> list[list[str]]:
        if times is None:
            return [self.codec.horizon_times() for _ in range(count)]
        if len(times) != count or any(len(own) != self.codec.horizon for own in times):
            raise InputError(
                f"times of {len(times)} windows do not fit {count} windows",
                remedy=f"give {self.codec.horizon} times for each window",
            )
        return [[*own] for own in times]

    def _read(self, windows: NDArray[np.float64], *, num_lanes: int = 1) -> Iterator[Tensor]:
        """Give normalised windows (B, S, F), as many as fit; dropout is off meanwhile."""
        device = next(self.model.parameters()).device
        size = max(1, LANES.get(device.type, LANES["cpu"]) // num_lanes)
        was_training = self.model.training
        self.model.eval()
        try:
            for begin in range(0, len(windows), size):
                values = self.codec.normalise(windows[begin : begin + size])
                yield torch.from_numpy(values).to(device)
        finally:
            self.model.train(was_training)


def draw_numbers(windows: NDArray[np.float64], shape: tuple[int, int], *, seed: int) -> Tensor:
    """Draw numbers between 0 and 1 for each window, by the seed and the window's own values."""
    rows = []
    for window in windows:
        own = derive_seed(seed, np.ascontiguousarray(window).tobytes().hex())
        rows.append(torch.rand(shape, generator=torch.Generator().manual_seed(own)))
    return torch.stack(rows)


def _join(parts: list[Tensor], nothing: tuple[int, ...]) -> NDArray[Any]:
    return torch.cat(parts).cpu().numpy() if parts else np.zeros(nothing)
