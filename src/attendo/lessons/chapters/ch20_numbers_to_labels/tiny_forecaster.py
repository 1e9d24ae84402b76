"""A tiny time series model, trained on a simulated sea while the lesson is shown.

Data, codec, batches, loss and scores are those of `attendo.tasks.forecasting`; the series is not
written to a file first.
"""

from __future__ import annotations

from functools import cache
from itertools import chain, count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from attendo.architectures.time_series import SeriesTransformer
from attendo.synthetic.sea_temperature import simulate_series
from attendo.tasks.forecasting.baselines import climatology_forecast, persistence_forecast
from attendo.tasks.forecasting.batching import SeriesBatchPlan
from attendo.tasks.forecasting.config import SeriesConfig
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.metrics import label_metrics
from attendo.tasks.forecasting.prepare import fit_codec
from attendo.tasks.forecasting.table import SeriesTable
from attendo.tasks.forecasting.windows import find_windows, split_windows
from attendo.text.tokenizer import PAD_ID
from attendo.training.config import TrainConfig
from attendo.training.losses import label_smoothed_nll
from attendo.training.optimizer import make_optimizer
from attendo.training.schedule import learning_rate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]

WINDOW, HORIZON = 30, 7
FEATURE, TARGET = "sea_temperature", "typhoon"
LABELS = ("no", "yes")
NUM_YEARS = 15
DEV_SHARE = 0.2
OUTAGE_RATE = 0.03
"""The share of days without a temperature, so that the model learns about missing values."""
STEPS = 200
BATCH_TOKENS = 50 * (WINDOW + HORIZON)
EVALUATION_STRIDE = 3
"""Every third window of dev is scored."""
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1, "dropout": 0.0}
SEED = 3


class SeaData(NamedTuple):
    """The windows to learn from, and those to score."""

    train: SeriesBatchPlan
    dev: SeriesBatchPlan
    dates: NDArray[np.datetime64]
    temperatures: Values
    """Of each day, NaN where it is missing."""
    typhoons: NDArray[np.bool_]


@cache
def prepare_data() -> SeaData:
    """Return the simulated sea as windows; the last years are dev."""
    series = simulate_series(years=NUM_YEARS)
    is_missing = np.random.default_rng(SEED).random(len(series.dates)) < OUTAGE_RATE
    temperatures = np.where(is_missing, np.nan, series.observations.sea.round(1))
    config = SeriesConfig(
        paths=(Path("sea.csv"),),
        features=(FEATURE,),
        targets=(TARGET,),
        kind="labels",
        window=WINDOW,
        horizon=HORIZON,
    )
    table = SeriesTable(
        config=config,
        axis=None,
        times=series.dates.astype("datetime64[us]"),
        groups=("sea",),
        offsets=np.array([0, len(series.dates)]),
        features=temperatures[:, None],
        targets=np.array(LABELS, dtype=object)[series.observations.typhoon.astype(int)],
        num_filled=0,
    )
    split = split_windows(find_windows(table), horizon=HORIZON, dev_fraction=DEV_SHARE, seed=SEED)
    codec = fit_codec(table, split.train)
    train = SeriesBatchPlan(table, codec, split.train, batch_tokens=BATCH_TOKENS, seed=SEED)
    dev = train.with_origins(split.dev[::EVALUATION_STRIDE])
    return SeaData(train, dev, series.dates, temperatures, series.observations.typhoon)


@cache
def train_forecaster() -> Forecaster:
    """Return the tiny model, trained; it is the same each time."""
    plan = prepare_data().train
    with torch.random.fork_rng(devices=[]):  # keeps the random state of the caller
        torch.manual_seed(SEED)
        model = SeriesTransformer(num_features=1, vocab_size=plan.codec.vocab_size, **SIZES)
    config = TrainConfig(max_steps=STEPS, schedule="cosine", peak_lr=1e-2, warmup_steps=30)
    optimizer = make_optimizer(model, config)
    batches = chain.from_iterable(plan.epoch(epoch) for epoch in count())
    for step, rows in enumerate(islice(batches, STEPS), 1):
        batch = plan.read(rows)
        logits = model(batch.src_ids, batch.tgt_ids)
        loss = label_smoothed_nll(logits, batch.labels, smoothing=0.0)
        loss = loss / batch.labels.ne(PAD_ID).sum()
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config, d_model=model.config.d_model)
        optimizer.step()
    return Forecaster(model.eval(), plan.codec)


@cache
def score_forecasts() -> dict[str, dict[str, Any]]:
    """Return the metrics of the model and of two baselines on the last years."""
    data, forecaster = prepare_data(), train_forecaster()
    probabilities = {
        "transformer": forecaster.predict_probabilities(data.dev.windows()),
        "climatology": climatology_forecast(data.train, data.dev),
        "persistence": persistence_forecast(data.train, data.dev),
    }
    truth = data.dev.truth()
    return {name: label_metrics(truth, one, LABELS) for name, one in probabilities.items()}


def forecast(temperatures: Values) -> Values:
    """Return the probability of a typhoon on each day (T,) after a month (S,), NaN = missing."""
    windows = temperatures[None, :, None]
    probabilities: Values = train_forecaster().predict_probabilities(windows)[0, :, 1]
    return probabilities
