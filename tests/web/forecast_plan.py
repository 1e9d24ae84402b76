"""A time series model with random weights, a file it can read, and the forecast of it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING

import torch

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import save_bundle
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.time_axis import TimeAxis

if TYPE_CHECKING:
    from pathlib import Path

WINDOW, NUM_ROWS = 12, 40


def write_model(folder: Path) -> None:
    """Write the model `sea` and the file `sea.csv`."""
    codec = SeriesCodec(
        features=["heat", "wind"],
        targets=["storm"],
        kind="labels",
        labels=["calm", "storm"],
        mean=[20.0, 3.0],
        deviation=[5.0, 2.0],
        window=WINDOW,
        horizon=4,
        time="day",
        axis=TimeAxis(kind="date", unit="seconds", step=86_400),
    )
    torch.manual_seed(4)
    model = SeriesTransformer(
        num_features=2, vocab_size=codec.vocab_size, d_model=16, d_ff=32, num_heads=2, num_layers=2
    )
    save_bundle(folder / "sea", model, codec)
    lines = ["day,storm,wind,heat"]
    for row in range(NUM_ROWS):
        heat = "" if row == 35 else f"{20 + row % 7 - row / 9:.2f}"
        lines.append(f"{date(2023, 1, 1) + timedelta(days=row)},calm,{row % 5},{heat}")
    (folder / "sea.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def list_rows(folder: Path) -> list[str]:
    """Return the rows of the forecast as the page shows them."""
    (made,) = Forecaster.load(folder / "sea", device="cpu").predict_file(folder / "sea.csv")
    return [
        f"{time} {label} {100 * probs['calm']:.1f}% {100 * probs['storm']:.1f}%"
        for time, label, probs in zip(made.times, made.labels, made.probabilities, strict=True)
    ]
