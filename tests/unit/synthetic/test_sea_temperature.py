from __future__ import annotations

import numpy as np
import pytest

from attendo.core.errors import InputError
from attendo.synthetic.sea_temperature import (
    WARM_SEA_THRESHOLD,
    forecast_oracle,
    simulate_series,
    typhoon_probability,
    write_simulated_series,
)
from attendo.tasks.forecasting.config import SeriesConfig
from attendo.tasks.forecasting.prepare import prepare_series


@pytest.fixture(scope="module")
def series():
    return simulate_series(years=12)


def months(series):
    return series.dates.astype("datetime64[M]").astype(int) % 12 + 1


def test_the_same_seed_gives_the_same_series_and_longer_ones_begin_alike(series):
    short = simulate_series(years=2)
    np.testing.assert_array_equal(
        short.observations.sea, series.observations.sea[: len(short.dates)]
    )
    other = simulate_series(years=2, seed=2)
    assert not np.array_equal(other.observations.sea, short.observations.sea)


def test_the_sea_is_one_of_the_western_pacific(series):
    sea, air, month = series.observations.sea, series.observations.air, months(series)
    assert 20 < sea.min() < 25
    assert 29 < sea.max() < 33
    assert 2 < sea[month == 8].mean() - sea[month == 2].mean() < 6
    assert 970 < air.min() < 1000 < air.max() < 1030
    assert air[month == 1].mean() > air[month == 8].mean()


def test_typhoons_come_in_their_season_and_stay_for_days(series):
    typhoon, month = series.observations.typhoon, months(series)
    assert 0.05 < typhoon.mean() < 0.25
    assert typhoon[(month <= 4)].mean() < 0.02
    assert typhoon[(month >= 7) & (month <= 9)].mean() > 0.2
    changes = np.flatnonzero(np.diff(np.concatenate([[0], typhoon.astype(int), [0]])))
    lengths = changes[1::2] - changes[::2]
    assert lengths[1:-1].min() >= 2  # the first and the last may be cut


def test_a_typhoon_cools_the_sea(series):
    typhoon, sea, month = series.observations.typhoon, series.observations.sea, months(series)
    last = np.flatnonzero(typhoon[:-15] & ~typhoon[1:-14] & (month[:-15] == 8))
    first = [row for row in last if not typhoon[row + 1 : row + 15].any()]
    recovery = np.mean([sea[row + 14] - sea[row] for row in first])
    assert recovery > 0.3


def test_the_rule_by_hand(series):
    """Recompute the probability from the hidden state as the module's docstring words it."""
    states, probabilities = series.states, series.observations.typhoon_probability
    heat = states.excess_heat.sum(axis=1)
    wetness = states.oscillation.real
    for row in (100, 230, 250, 270):
        expected = np.maximum(
            series.observations.sea[row - 20 : row + 1] - WARM_SEA_THRESHOLD, 0
        ).sum()
        assert heat[row] == pytest.approx(expected)
        if states.typhoon_age[row] == 0:
            gates = (heat[row] - 20) / 2, (wetness[row - 2] - 0.2) / 0.1, 8 - abs(states.shear[row])
            probability = 0.9 * np.prod([1 / (1 + np.exp(-gate)) for gate in gates])
            assert probabilities[row + 1] == pytest.approx(probability)
    age = states.typhoon_age[:-1]
    np.testing.assert_array_equal(probabilities[1:][age == 1], 1.0)
    np.testing.assert_array_equal(probabilities[1:][age >= 2], 0.7)
    np.testing.assert_allclose(typhoon_probability(states)[:-1], probabilities[1:])


def test_probabilities_are_those_with_which_typhoons_come(series):
    """Among days of similar probability, that share has a typhoon."""
    probability, typhoon = series.observations.typhoon_probability, series.observations.typhoon
    for low, high in ((0.05, 0.3), (0.3, 0.6), (0.6, 0.95)):
        chosen = (probability > low) & (probability < high)
        error = 4 * np.sqrt(0.25 / chosen.sum())
        assert typhoon[chosen].mean() == pytest.approx(probability[chosen].mean(), abs=error)


def test_oracle_probabilities_are_exact_for_a_day_and_calibrated_for_a_week(series):
    positions = np.arange(400, len(series.dates) - 7, 5)
    best = forecast_oracle(series, positions, horizon=7, num_samples=100)
    np.testing.assert_allclose(best[:, 0], series.observations.typhoon_probability[positions])
    truth = series.observations.typhoon[positions[:, None] + np.arange(7)]
    usual = truth.mean()
    assert best[:, 6].mean() == pytest.approx(truth[:, 6].mean(), abs=0.03)
    for step in range(7):
        brier = np.mean((best[:, step] - truth[:, step]) ** 2)
        assert brier < 0.8 * usual * (1 - usual)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_files_are_read_as_they_were_made(tmp_path, suffix):
    path = tmp_path / f"sea.{suffix}"
    assert write_simulated_series(path, years=2) == 730
    data = prepare_series(SeriesConfig(paths=[path], time="date", targets=["typhoon"]))
    series = simulate_series(years=2)
    assert data.codec.features == ("sea_temperature", "pressure", "wind_shear")
    assert data.codec.labels == ("no", "yes")
    assert 0 < data.report["missing"]["sea_temperature"] < 0.05
    truth = series.observations.typhoon[data.dev.origins[:, None] + np.arange(7)]
    np.testing.assert_array_equal(data.dev.truth(), truth.astype(int))
    pressure = series.observations.air[data.dev.origins[0] - 30 : data.dev.origins[0]]
    np.testing.assert_allclose(data.dev.windows(np.array([0]))[0, :, 1], pressure, atol=0.051)


def test_what_cannot_be_made_is_rejected(tmp_path):
    with pytest.raises(InputError, match="years=0"):
        simulate_series(years=0)
    with pytest.raises(InputError, match=r"'.txt' is not supported"):
        write_simulated_series(tmp_path / "sea.txt", years=1)
    assert not list(tmp_path.iterdir())
