from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from attendo.tasks.forecasting.baselines import (
    REGULARIZATION_STRENGTHS,
    climatology_forecast,
    persistence_forecast,
    regression_forecast,
)
from attendo.tasks.forecasting.config import SeriesConfig
from attendo.tasks.forecasting.metrics import label_metrics, numeric_metrics
from attendo.tasks.forecasting.prepare import prepare_series


def write_days(path, num_days, columns):
    """Write days from 2031 on; each column is a function of the day's number and day of year."""
    days = np.datetime64("2031-01-01") + np.arange(num_days)
    of_year = (days - days.astype("datetime64[Y]")).astype(int)
    names = ",".join(["date", *columns])
    made = [[make(n, doy) for make in columns.values()] for n, doy in enumerate(of_year)]
    rows = [",".join(map(str, [day, *cells])) for day, cells in zip(days, made, strict=True)]
    path.write_text("\n".join([names, *rows]))
    return path


def prepare(path, *targets, **settings):
    chosen = {"time": "date", "window": 10, "horizon": 3, **settings}
    return prepare_series(SeriesConfig(paths=[path], targets=targets, **chosen))


@pytest.fixture(scope="module")
def noise():
    return np.random.default_rng(5).normal(size=4000)


def test_climatology_finds_the_season_of_labels(tmp_path, noise):
    path = write_days(
        tmp_path / "a.csv",
        365 * 6,
        {"x": lambda n, _: noise[n], "wet": lambda _, doy: "yes" if 120 <= doy < 240 else "no"},
    )
    data = prepare(path, "wet")
    probabilities = climatology_forecast(data.train, data.dev)
    assert probabilities.shape == (len(data.dev), 3, 2)
    np.testing.assert_allclose(probabilities.sum(-1), 1)
    days = data.dev.target_times().astype("datetime64[D]")
    of_year = (days - days.astype("datetime64[Y]")).astype(int)
    assert probabilities[..., 1][(of_year > 145) & (of_year < 215)].min() > 0.95
    assert probabilities[..., 1][(of_year > 265) | (of_year < 95)].max() < 0.05
    assert label_metrics(data.dev.truth(), probabilities, data.codec.labels)["accuracy"] > 0.95


def test_climatology_of_numbers_is_the_mean_of_the_day(tmp_path, noise):
    path = write_days(
        tmp_path / "a.csv",
        365 * 6,
        {"heat": lambda n, doy: 15 + 10 * np.cos(2 * np.pi * doy / 365) + noise[n]},
    )
    data = prepare(path, "heat")
    values = climatology_forecast(data.train, data.dev)
    assert values.shape == (len(data.dev), 3, 1)
    found = numeric_metrics(data.dev.truth(), values)
    assert found["rmse"] == pytest.approx(1.0, abs=0.15)  # the noise is left


def test_climatology_without_dates_is_the_base_rate(tmp_path, noise):
    path = tmp_path / "a.csv"
    labels = ["yes" if n % 4 == 0 else "no" for n in range(400)]
    path.write_text("x,wet\n" + "".join(f"{noise[n]},{wet}\n" for n, wet in enumerate(labels)))
    data = prepare(path, "wet", time=None)
    probabilities = climatology_forecast(data.train, data.dev)
    end = data.train.origins.max() + 3
    expected = np.mean([label == "yes" for label in labels[10:end]])
    np.testing.assert_allclose(probabilities[..., 1], expected)


def test_persistence_counts_how_labels_follow_one_another(tmp_path, noise):
    labels = ["no" if n % 8 < 6 else "yes" for n in range(400)]
    labels[300:310] = [""] * 10
    path = tmp_path / "a.csv"
    path.write_text("x,wet\n" + "".join(f"{noise[n]},{wet}\n" for n, wet in enumerate(labels)))
    data = prepare(path, "wet", time=None, dev_share=0.35, window=5)
    probabilities = persistence_forecast(data.train, data.dev)
    first = {int(position): row for row, position in enumerate(data.dev.origins)}
    # of the six dry days, one comes before a wet one; of the two wet days, one before a dry one
    dry, wet = probabilities[first[321], 0], probabilities[first[328], 0]
    assert (labels[320], labels[327]) == ("no", "yes")
    assert dry[1] == pytest.approx(1 / 6, abs=0.02)
    assert wet[1] == pytest.approx(1 / 2, abs=0.02)
    unseen = probabilities[first[310], 0]  # no label within the window
    assert unseen[1] == pytest.approx(1 / 4, abs=0.03)


def test_persistence_of_numbers_is_the_last_known_value(tmp_path):
    values = [str(n % 17) for n in range(200)]
    values[189] = ""
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["heat", *values]))
    data = prepare(path, "heat", time=None)
    row = int(np.flatnonzero(data.dev.origins == 190)[0])
    found = persistence_forecast(data.train, data.dev)[row]
    np.testing.assert_allclose(found, 188 % 17, atol=1e-4)


def test_regression_is_scikit_learns_on_the_last_rows(tmp_path, noise):
    path = tmp_path / "a.csv"
    probability = 1 / (1 + np.exp(-2 * np.roll(noise, 1) - np.roll(noise, 2)))
    luck = np.random.default_rng(6).random(len(noise))
    labels = np.where(luck < probability, "yes", "no")
    rows = zip(noise[:1500], labels, strict=False)
    path.write_text("x,wet\n" + "".join(f"{x},{wet}\n" for x, wet in rows))
    data = prepare(path, "wet", time=None)
    probabilities = regression_forecast(data.train, data.dev, num_last_rows=4)
    train, dev = data.train.windows(num_last=4)[..., 0], data.dev.windows(num_last=4)[..., 0]
    scaler = StandardScaler().fit(train)
    wanted = [
        LogisticRegression(C=strength, max_iter=2000)
        .fit(scaler.transform(train), data.train.truth()[:, 0])
        .predict_proba(scaler.transform(dev))
        for strength in REGULARIZATION_STRENGTHS
    ]
    assert min(np.abs(probabilities[:, 0] - other).max() for other in wanted) < 1e-3
    scores = label_metrics(data.dev.truth(), probabilities, data.codec.labels)
    usual = climatology_forecast(data.train, data.dev)
    base = label_metrics(data.dev.truth(), usual, data.codec.labels)
    assert scores["log_loss_by_step"][0] < base["log_loss_by_step"][0] - 0.1
    assert scores["log_loss_by_step"][2] == pytest.approx(base["log_loss_by_step"][2], abs=0.03)


def test_regression_reads_which_values_are_missing(tmp_path, noise):
    """The label is "yes" just behind a row without a value, and nothing else tells it."""
    gone = np.random.default_rng(7).random(1500) < 0.3
    rows = [
        f"{'' if gone[n] else noise[n]},{'yes' if n and gone[n - 1] else 'no'}" for n in range(1500)
    ]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["x,wet", *rows]))
    data = prepare(path, "wet", time=None, horizon=1)
    probabilities = regression_forecast(data.train, data.dev)
    assert label_metrics(data.dev.truth(), probabilities, data.codec.labels)["accuracy"] > 0.99


def test_regression_of_numbers_forecasts_a_line(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["heat,salt", *(f"{n * 0.5},{100 - n}" for n in range(300))]))
    data = prepare(path, "heat", "salt", time=None)
    values = regression_forecast(data.train, data.dev)
    assert values.shape == (len(data.dev), 3, 2)
    found = numeric_metrics(data.dev.truth(), values, data.codec.targets)
    assert found["by_target"]["heat"]["mae"] < 0.5
    assert found["by_target"]["salt"]["mae"] < 1.0


def test_a_label_that_never_occurs_at_a_step_has_probability_zero(tmp_path, noise):
    labels = [("a", "b", "c")[n % 3] if n < 60 else ("a", "b")[n % 2] for n in range(400)]
    path = tmp_path / "a.csv"
    path.write_text("x,wet\n" + "".join(f"{noise[n]},{wet}\n" for n, wet in enumerate(labels)))
    data = prepare(path, "wet", time=None)
    for forecast in (climatology_forecast, persistence_forecast, regression_forecast):
        probabilities = forecast(data.train, data.dev)
        assert probabilities.shape == (len(data.dev), 3, 3)
        np.testing.assert_allclose(probabilities.sum(-1), 1)
