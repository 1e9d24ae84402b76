"""A simulated time series: forty years of daily sea data with typhoons, from a known rule.

The values resemble those of a location in the western North Pacific at 20 degrees north, but they
are simulated, not measured: the same for the same seed. Since the rule is known, so is the best
possible score (`forecast_oracle`).

The rule, day by day:

- **The sea temperature** (°C) follows the season (mean 27.2, warmest in late August), a slow
  anomaly of some months like El Niño, weather of some days, and the Madden-Julian oscillation:
  clear skies warm the water before the rains. A typhoon mixes in cold water, and its wake fades
  within two weeks.
- **The air pressure** (hPa) is low in summer, in the wet phase of the oscillation, and under a
  typhoon; depressions of some days pass through.
- **The wind shear** (m/s) is the difference of the west wind between high and low altitude: about
  13 in winter and 0 on average in summer, with surges of a week or two in either direction.
- **The oscillation** has a period of about six weeks. Its period and strength vary randomly, and it
  is visible only through sea temperature and air pressure.
- **A typhoon** forms with the probability

      0.9 x S((heat - 20) / 2) x S((wetness - 0.2) / 0.1) x S(8 - |shear|)

  where S(x) = 1 / (1 + e^-x), `heat` is the sum of the degrees above 26.5 °C over the last 21 days
  (the warm layer must be deep), `wetness` is the wet phase of the oscillation two days before the
  last day (clouds take days to organize), and `shear` is that of the last day: in either direction,
  it tears young storms apart. All three conditions must hold: a warm sea in the dry phase forms no
  typhoon. A typhoon lasts two days at least, and then each further day with probability 0.7.

A month of sea temperature and air pressure reveals heat and phase, and so much of the next week;
the rest is random. A few days do not reveal the phase, since depressions hide it. Conditions that
must all hold, one of them on both sides, are not a weighted sum.
"""

from __future__ import annotations

import csv
import io
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.core.seeding import derive_seed

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Columns = dict[str, NDArray[Any]]

FIRST_DAY = np.datetime64("1981-01-01", "D")
MAX_YEARS = 400
DAYS_PER_YEAR = 365.25

WARM_SEA_THRESHOLD = 26.5
"""Temperature above which the sea feeds typhoons."""
HEAT_DAYS, WET_LAG = 21, 3
MAX_GENESIS_PROBABILITY, HEAT_RESPONSE, WETNESS_RESPONSE, SHEAR_RESPONSE = (
    0.9,
    (20.0, 2.0),
    (0.2, 0.1),
    (8.0, 1.0),
)
"""The maximum probability of formation; of each condition, the midpoint and the scale."""
PERSISTENCE_PROBABILITY, MIN_TYPHOON_DAYS = 0.7, 2
OSCILLATION_DAYS, OSCILLATION_DECAY = 42.0, 0.99
"""Mean period of the oscillation, and its autocorrelation from one day to the next."""
SPIN_UP_DAYS = 365
"""Days that are simulated before the first one, so that the state is not zero."""


class SeaState(NamedTuple):
    """The hidden state at the end of a day, for N simulations at once."""

    el_nino: NDArray[Any]  # (N,): anomaly of the sea temperature; the other shapes are equal
    sea_weather: NDArray[Any]
    air_weather: NDArray[Any]
    shear_weather: NDArray[Any]
    wake: NDArray[Any]
    log_period_ratio: NDArray[Any]
    """Logarithm of the ratio of the current period of the oscillation to its mean."""
    oscillation: NDArray[Any]
    """A complex number; its real part is the wetness."""
    wetness: NDArray[Any]  # (N, WET_LAG): of the last days, the latest last
    excess_heat: NDArray[Any]  # (N, HEAT_DAYS): degrees above WARM_SEA_THRESHOLD
    shear: NDArray[Any]
    typhoon_age: NDArray[Any]
    """Days since the typhoon formed; 0 = no typhoon."""


class Observations(NamedTuple):
    """The observed values of each day, and the hidden probability of a typhoon."""

    sea: NDArray[Any]  # (N,), like the others
    air: NDArray[Any]
    shear: NDArray[Any]
    typhoon: NDArray[Any]
    typhoon_probability: NDArray[Any]
    """The true probability of a typhoon, given the state of the day before."""


class SimulatedSeries(NamedTuple):
    """A simulated series."""

    dates: NDArray[np.datetime64]
    observations: Observations
    states: SeaState
    """The hidden state at the end of each day."""


def simulate_series(*, years: int = 40, seed: int = 1) -> SimulatedSeries:
    """Simulate a series; a longer series begins with the shorter one.

    >>> series = simulate_series(years=1)
    >>> len(series.dates), str(series.dates[-1])
    (365, '1981-12-31')

    Args:
        years: Number of years from 1981 on.
        seed: Seed of the simulation.

    Returns:
        The dates, the observations and the hidden states.

    Raises:
        InputError: If `years` is out of range.

    """
    if not 1 <= years <= MAX_YEARS:
        raise InputError(
            message("years={years} is out of range", years=years),
            hint=message("choose 1 to {max_years}", max_years=MAX_YEARS),
        )
    end = (FIRST_DAY.astype("datetime64[Y]") + years).astype("datetime64[D]")
    dates = np.arange(FIRST_DAY, end)
    rng = np.random.default_rng(derive_seed(seed, "sample series"))
    state, days, states = _initial_state(), [], []
    for date in np.arange(FIRST_DAY - SPIN_UP_DAYS, end):
        state, day = _simulate_day(state, _season_angle(date), rng)
        if date >= FIRST_DAY:
            days.append(day)
            states.append(state)
    return SimulatedSeries(
        dates,
        Observations(*(np.concatenate(part) for part in zip(*days, strict=True))),
        SeaState(*(np.concatenate(part) for part in zip(*states, strict=True))),
    )


def write_simulated_series(path: Path, *, years: int = 40, seed: int = 1) -> int:
    """Write the series as CSV, Parquet or NPZ, by the suffix, and return its number of days.

    The sea temperature is missing on about one day in a hundred, as if the thermometer failed.
    """
    writers: dict[str, Callable[[Columns], str | bytes]] = {
        ".csv": _write_csv,
        ".parquet": _write_parquet,
        ".npz": _write_npz,
    }
    if path.suffix.lower() not in writers:
        raise InputError(
            message(
                "{path}: the suffix '{suffix}' is not supported", path=path, suffix=path.suffix
            ),
            hint="use .csv, .parquet or .npz",
        )
    series = simulate_series(years=years, seed=seed)
    columns: Columns = {
        "date": series.dates.astype(str),
        "sea_temperature": np.where(
            _simulate_outages(len(series.dates), seed), np.nan, series.observations.sea.round(2)
        ),
        "pressure": series.observations.air.round(1),
        "wind_shear": series.observations.shear.round(1),
        "typhoon": np.where(series.observations.typhoon, "yes", "no"),
    }
    write_atomically(path, writers[path.suffix.lower()](columns))
    return len(series.dates)


def _simulate_outages(num_days: int, seed: int) -> NDArray[np.bool_]:
    """Return the days without a sea temperature: outages of some days."""
    rng = np.random.default_rng(derive_seed(seed, "sample series", "outages"))
    is_start = rng.random(num_days) < 0.003
    lengths = rng.integers(1, 7, num_days)
    change = np.zeros(num_days + 7, dtype=np.int64)
    np.add.at(change, np.flatnonzero(is_start), 1)
    np.add.at(change, np.flatnonzero(is_start) + lengths[is_start], -1)
    return np.cumsum(change)[:num_days] > 0


def _write_csv(columns: Columns) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    writer.writerows(["" if value != value else value for value in row] for row in rows)
    return text.getvalue()


def _write_parquet(columns: Columns) -> bytes:
    try:
        arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise MissingExtraError("pyarrow", "series") from None
    arrays = {name: arrow.array(column, from_pandas=True) for name, column in columns.items()}
    arrays["date"] = arrays["date"].cast(arrow.date32())
    file = io.BytesIO()
    parquet.write_table(arrow.table(arrays), file)
    return file.getvalue()


def _write_npz(columns: Columns) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **{**columns, "date": columns["date"].astype("datetime64[D]")})  # type: ignore[arg-type]
    return file.getvalue()


def forecast_oracle(
    series: SimulatedSeries, origins: NDArray[np.int64], *, horizon: int, num_samples: int = 200
) -> Values:
    """Return the best possible typhoon probabilities (origins, horizon) from each origin on.

    They follow from the rule and the hidden state of the day before, by simulating `num_samples`
    continuations: no model can do better, except due to chance.
    """
    rng = np.random.default_rng(derive_seed(1, "foresee", num_samples))  # fixed: part of the data
    rows = np.repeat(origins - 1, num_samples)
    state = SeaState(*(part[rows] for part in series.states))
    probabilities = np.empty((len(origins), horizon))
    for step in range(horizon):
        state, day = _simulate_day(state, _season_angle(series.dates[rows] + (step + 1)), rng)
        probabilities[:, step] = day.typhoon_probability.reshape(len(origins), num_samples).mean(
            axis=1
        )
    return probabilities


def typhoon_probability(state: SeaState) -> Values:
    """Return the probability that the next day has a typhoon: the rule of this module."""
    heat, wetness = state.excess_heat.sum(axis=1), state.wetness[:, 0]
    calm = _logistic(-np.abs(state.shear), -SHEAR_RESPONSE[0], SHEAR_RESPONSE[1])
    genesis = (
        MAX_GENESIS_PROBABILITY
        * _logistic(heat, *HEAT_RESPONSE)
        * _logistic(wetness, *WETNESS_RESPONSE)
        * calm
    )
    persistence = np.where(state.typhoon_age < MIN_TYPHOON_DAYS, 1.0, PERSISTENCE_PROBABILITY)
    return np.where(state.typhoon_age > 0, persistence, genesis)


def _logistic(value: Values, midpoint: float, scale: float) -> Values:
    return np.asarray(1 / (1 + np.exp(-(value - midpoint) / scale)))


def _season_angle(date: Any) -> Any:
    """Return the day of the year as an angle."""
    since = (date - date.astype("datetime64[Y]").astype("datetime64[D]")).astype(np.float64)
    return 2 * np.pi * since / DAYS_PER_YEAR


def _initial_state() -> SeaState:
    zeros = np.zeros(1)
    return SeaState(
        *(zeros,) * 6,
        oscillation=zeros.astype(np.complex128),
        wetness=np.zeros((1, WET_LAG)),
        excess_heat=np.zeros((1, HEAT_DAYS)),
        shear=zeros,
        typhoon_age=np.zeros(1, dtype=np.int64),
    )


def _simulate_day(
    state: SeaState, season: Any, rng: np.random.Generator
) -> tuple[SeaState, Observations]:
    """Simulate one day: first the hidden state, then the observations."""
    count = len(state.el_nino)
    noise = rng.standard_normal((7, count))
    probability = typhoon_probability(state)
    age = np.where(rng.random(count) < probability, state.typhoon_age + 1, 0)
    strength = np.where(age > 0, rng.gamma(4, 0.25, count), 0.0)
    hidden = state._replace(
        log_period_ratio=_ar1_step(state.log_period_ratio, 60, 0.1, noise[0]),
        oscillation=_advance_oscillation(state, noise[1] + 1j * noise[2]),
        el_nino=_ar1_step(state.el_nino, 150, 0.45, noise[3]),
        sea_weather=_ar1_step(state.sea_weather, 5, 0.25, noise[4]),
        air_weather=_ar1_step(state.air_weather, 2.5, 1.2, noise[5]),
        shear_weather=_ar1_step(state.shear_weather, 8, 7.0, noise[6]),
        wake=state.wake * np.exp(-1 / 8) - 0.35 * strength,
        typhoon_age=age,
    )
    sea, air, shear = _observe(hidden, season, strength)
    after = hidden._replace(
        wetness=np.column_stack([state.wetness[:, 1:], hidden.oscillation.real]),
        excess_heat=np.column_stack(
            [state.excess_heat[:, 1:], np.maximum(sea - WARM_SEA_THRESHOLD, 0.0)]
        ),
        shear=shear,
    )
    return after, Observations(sea, air, shear, age > 0, probability)


def _observe(state: SeaState, season: Any, strength: Values) -> tuple[Values, Values, Values]:
    """Return the observed sea temperature, air pressure and wind shear."""
    # Clear skies come a quarter of the period before the rains.
    wet, clear = state.oscillation.real, -state.oscillation.imag
    sea = 27.2 + 2.1 * np.cos(season - 4.1) + state.el_nino + state.sea_weather
    air = 1010.5 - 2.5 * np.cos(season - 3.9) - 2.0 * wet + state.air_weather
    shear = 6.0 + 7.0 * np.cos(season - 0.3) - wet + state.shear_weather
    return sea + state.wake + 0.2 * clear, air - 5.0 * strength, shear


def _advance_oscillation(state: SeaState, noise: NDArray[Any]) -> NDArray[Any]:
    """Advance the oscillation by one day: it rotates, decays and receives noise."""
    phase_step = 2 * np.pi / (OSCILLATION_DAYS * np.exp(state.log_period_ratio))
    innovation = np.sqrt(1 - OSCILLATION_DECAY**2) * noise
    return np.asarray(OSCILLATION_DECAY * np.exp(1j * phase_step) * state.oscillation + innovation)


def _ar1_step(value: Values, days: float, deviation: float, noise: Values) -> Values:
    """Return the next value of an autoregressive process with a memory of some days."""
    decay = np.exp(-1 / days)
    return np.asarray(decay * value + deviation * np.sqrt(1 - decay**2) * noise)
