"""What a forecast must beat: climatology, a linear regression on the last days, and persistence.

Each learns from the windows of train and foretells those of another plan: probabilities
(windows, horizon, labels), or numbers (windows, horizon, targets) in the units of the file.
scikit-learn does the regressions (extra `series`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from attendo.data.series.plan import SeriesPlan

    Values = NDArray[np.float64]

DAYS_A_YEAR = 366
SMOOTHING = 7.0
"""Days: the width of the bell over which climatology takes its mean."""
LAST_ROWS = 7
STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Regularisation (scikit-learn's C) that regression chooses from."""
TUNING_SHARE = 0.2
"""The last part of train, by which it chooses."""


def forecast_by_climatology(train: SeriesPlan, plan: SeriesPlan) -> Values:
    """Foretell what is usual on that day of the year, or on any day where there are no dates."""
    truth = _as_values(train)  # (N, T, columns)
    _, first = np.unique(_target_rows(train), return_index=True)  # windows overlap
    values = truth.reshape(len(train) * truth.shape[1], -1)[first]  # (rows, columns)
    usual = np.nanmean(values, axis=0)
    days = _days_of_year(train)
    wanted = _days_of_year(plan)
    if days is None or wanted is None:
        shape = (len(plan), plan.codec.horizon, len(usual))
        return np.broadcast_to(usual, shape).copy()
    return _mean_by_day(days.ravel()[first], values, usual)[wanted]


def forecast_by_persistence(train: SeriesPlan, plan: SeriesPlan) -> Values:
    """Foretell that all stays as it is: numbers their last value; labels as often as in train.

    A label's probabilities are how often train had each label so many steps behind that one.
    """
    if train.codec.kind == "numbers":
        last = _last_known(plan.past())  # (N, K)
        filled = np.where(np.isnan(last), np.asarray(train.codec.target_mean), last)
        return np.repeat(filled[:, None], plan.codec.horizon, axis=1)
    num_labels = len(train.codec.labels)
    seen = _last_known(_one_hot(train.past(), num_labels))  # (N, labels)
    after = _one_hot(train.truth(), num_labels)  # (N, T, labels)
    usual = np.nanmean(after, axis=0)  # (T, labels)
    known = np.nan_to_num(seen)
    counts = np.einsum("ni,ntj->itj", known, np.nan_to_num(after)) + usual
    chances = counts / counts.sum(-1, keepdims=True)  # (labels, T, labels)
    now = _last_known(_one_hot(plan.past(), num_labels))
    found = np.einsum("ni,itj->ntj", np.nan_to_num(now), chances)
    return np.asarray(np.where(np.isnan(now[:, :1, None]), usual, found))


def forecast_by_regression(
    train: SeriesPlan, plan: SeriesPlan, *, last_rows: int = LAST_ROWS
) -> Values:
    """Foretell each step by a regression of its own on the last rows of the window.

    Logistic regression for labels, ridge regression for numbers; inputs are standardised and tell
    which values are missing. The strength of regularisation is chosen on the last part of train.
    """
    inputs, asked = _inputs(train, last_rows), _inputs(plan, last_rows)
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0)
    deviation[deviation == 0] = 1.0
    inputs, asked = (inputs - mean) / deviation, (asked - mean) / deviation
    truth = train.truth()
    fit = _fit_labels if train.codec.kind == "labels" else _fit_numbers
    order = np.argsort(train.places, kind="stable")
    steps = [
        fit(inputs[order], truth[order, step], asked, len(train.codec.labels))
        for step in range(train.codec.horizon)
    ]
    return np.stack(steps, axis=1)


def _fit_labels(inputs: Values, truth: NDArray[Any], asked: Values, num_labels: int) -> Values:
    known = truth >= 0
    inputs, truth = inputs[known], truth[known]
    if len(np.unique(truth)) < 2:  # nothing to tell apart
        usual = np.bincount(truth, minlength=num_labels) / max(1, len(truth))
        return np.broadcast_to(usual, (len(asked), num_labels)).copy()
    linear = _load("sklearn.linear_model")

    def foretell(part: slice, strength: float, wanted: Values) -> Values:
        model = linear.LogisticRegression(C=strength, max_iter=2000)
        model.fit(inputs[part], truth[part])
        found = np.zeros((len(wanted), num_labels))
        found[:, model.classes_] = model.predict_proba(wanted)
        return found

    def loss(early: slice, late: slice, strength: float) -> float:
        if len(np.unique(truth[early])) < 2:
            return 0.0
        found = foretell(early, strength, inputs[late])
        own = found[np.arange(len(found)), truth[late]]
        return float(-np.log(np.maximum(own, 1e-15)).mean())

    return foretell(slice(None), _choose(len(truth), loss), asked)


def _fit_numbers(inputs: Values, truth: NDArray[Any], asked: Values, num_labels: int) -> Values:  # noqa: ARG001 - as `_fit_labels`
    linear = _load("sklearn.linear_model")
    columns = [_fit_column(linear, inputs, truth[:, k], asked) for k in range(truth.shape[1])]
    return np.stack(columns, axis=1)


def _fit_column(linear: Any, inputs: Values, truth: Values, asked: Values) -> Values:
    known = ~np.isnan(truth)
    own, values = inputs[known], truth[known]

    def foretell(part: slice, strength: float, wanted: Values) -> Values:
        model = linear.Ridge(alpha=1 / strength).fit(own[part], values[part])
        return np.asarray(model.predict(wanted))

    def loss(early: slice, late: slice, strength: float) -> float:
        return float(((foretell(early, strength, own[late]) - values[late]) ** 2).mean())

    return foretell(slice(None), _choose(len(values), loss), asked)


def _choose(count: int, loss: Callable[[slice, slice, float], float]) -> float:
    """Choose the strength that foretells the last part of train best from its first."""
    cut = count - max(1, round(TUNING_SHARE * count))
    if not cut:
        return 1.0
    return min(STRENGTHS, key=lambda strength: loss(slice(cut), slice(cut, None), strength))


def _load(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("scikit-learn", "series") from None


def _inputs(plan: SeriesPlan, last_rows: int) -> Values:
    """Give the last rows (N, rows x F) with 0 for missing values, and flags that tell them."""
    values = plan.codec.normalise(plan.windows(last=last_rows)).astype(np.float64)
    missing = np.isnan(values)
    flat = [np.nan_to_num(values).reshape(len(plan), -1), missing.reshape(len(plan), -1)]
    return np.concatenate(flat, axis=1)


# -- the calendar


def _target_rows(plan: SeriesPlan) -> NDArray[np.int64]:
    return plan.places[:, None] + np.arange(plan.codec.horizon)


def _days_of_year(plan: SeriesPlan) -> NDArray[np.int64] | None:
    """Give the day of the year (N, T), from 0; None where times are no dates."""
    times = plan.target_times()
    if times is None or not np.issubdtype(times.dtype, np.datetime64):
        return None
    days = times.astype("datetime64[D]")
    return np.asarray((days - days.astype("datetime64[Y]")).astype(np.int64))


def _mean_by_day(days: NDArray[np.int64], values: Values, usual: Values) -> Values:
    """Give the smoothed mean (days, columns) of each day of the year.

    The usual value counts as one day more, for days of the year that train has never seen.
    """
    known = ~np.isnan(values)
    sums, counts = np.zeros((2, DAYS_A_YEAR, values.shape[1]))
    np.add.at(sums, days, np.nan_to_num(values))
    np.add.at(counts, days, known)
    apart = np.abs(np.arange(DAYS_A_YEAR)[:, None] - np.arange(DAYS_A_YEAR))
    bell = np.exp(-0.5 * (np.minimum(apart, DAYS_A_YEAR - apart) / SMOOTHING) ** 2)
    return np.asarray((bell @ sums + usual) / (bell @ counts + 1.0))


# -- labels as numbers


def _as_values(plan: SeriesPlan) -> Values:
    truth = plan.truth()
    if plan.codec.kind == "numbers":
        return truth
    return _one_hot(truth, len(plan.codec.labels))


def _one_hot(numbers: NDArray[Any], num_labels: int) -> Values:
    """Turn label numbers into ones and zeros, NaN where a label is missing."""
    hot = np.eye(num_labels)[np.maximum(numbers, 0)]
    return np.where((numbers >= 0)[..., None], hot, np.nan)


def _last_known(past: Values) -> Values:
    """Give the last value of each column (N, window, K) that is known, NaN where none is."""
    known = ~np.isnan(past)
    place = past.shape[1] - 1 - known[:, ::-1].argmax(axis=1)  # (N, K)
    return np.asarray(np.take_along_axis(past, place[:, None], axis=1)[:, 0])
