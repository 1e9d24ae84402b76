"""The page Forecast of a real server with a real series model, against what Python foretells."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
import torch

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import save_bundle
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.time_axis import TimeAxis

pytestmark = pytest.mark.slow

WINDOW, NUM_ROWS = 12, 40


@pytest.fixture
def sea(tmp_path):
    """A model that has learnt nothing, and a file that it can read."""
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
    save_bundle(tmp_path / "sea", model, codec)
    lines = ["day,storm,wind,heat"]
    for row in range(NUM_ROWS):
        heat = "" if row == 35 else f"{20 + row % 7 - row / 9:.2f}"
        lines.append(f"{date(2023, 1, 1) + timedelta(days=row)},calm,{row % 5},{heat}")
    (tmp_path / "sea.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_the_forecast_of_a_live_server(browse, serve_models, sea):
    (made,) = Forecaster.load(sea / "sea", device="cpu").predict_file(sea / "sea.csv")
    shown = [
        f"{time} {label} {100 * chances['calm']:.1f}% {100 * chances['storm']:.1f}%"
        for time, label, chances in zip(made.times, made.labels, made.probabilities, strict=True)
    ]
    with serve_models(sea / "sea") as address:
        said = browse(
            "forecast-live.spec.ts",
            SERVE_URL=address,
            SERVE_CSV=str(sea / "sea.csv"),
            SERVE_FORECAST="|".join(shown),
        )
    assert "1 passed" in said
