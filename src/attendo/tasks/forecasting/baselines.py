"""Baselines of forecasts: climatology, persistence, and a linear regression on the last rows.

Each is fitted on the windows of train and forecasts those of another plan: probabilities
(windows, horizon, labels), or values (windows, horizon, targets) in the units of the file. The
regressions use scikit-learn (extra `series`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from attendo.tasks.forecasting.batching import SeriesBatchPlan

    Values = NDArray[np.float64]

DAYS_PER_YEAR = 366
SMOOTHING_DAYS = 7.0
"""Standard deviation of the Gaussian kernel of climatology."""
NUM_LAST_ROWS = 7
REGULARIZATION_STRENGTHS = (1e-3, 1e-2, 1e-1, 1.0, 10.0)
"""Candidates for the inverse regularization strength (scikit-learn's C)."""
TUNING_FRACTION = 0.2
"""The last part of train, on which the strength is chosen."""


def climatology_forecast(train: SeriesBatchPlan, plan: SeriesBatchPlan) -> Values:
    """Return the mean of the day of the year, or of all days if there are no dates."""
    truth = _as_values(train)  # (N, T, columns)
    _, first = np.unique(_target_rows(train), return_index=True)  # windows overlap
    values = truth.reshape(len(train) * truth.shape[1], -1)[first]  # (rows, columns)
    overall_mean = np.nanmean(values, axis=0)
    days = _days_of_year(train)
    wanted = _days_of_year(plan)
    if days is None or wanted is None:
        shape = (len(plan), plan.codec.horizon, len(overall_mean))
        return np.broadcast_to(overall_mean, shape).copy()
    return _mean_by_day(days.ravel()[first], values, overall_mean)[wanted]


def persistence_forecast(train: SeriesBatchPlan, plan: SeriesBatchPlan) -> Values:
    """Return the last value for numbers, and transition frequencies for labels.

    The probabilities of a step are how often train had each label that many steps after the last
    known label.
    """
    if train.codec.kind == "numbers":
        last = _last_known(plan.past_targets())  # (N, K)
        filled = np.where(np.isnan(last), np.asarray(train.codec.target_mean), last)
        return np.repeat(filled[:, None], plan.codec.horizon, axis=1)
    num_labels = len(train.codec.labels)
    seen = _last_known(_one_hot(train.past_targets(), num_labels))  # (N, labels)
    after = _one_hot(train.truth(), num_labels)  # (N, T, labels)
    base_rates = np.nanmean(after, axis=0)  # (T, labels)
    known = np.nan_to_num(seen)
    counts = np.einsum("ni,ntj->itj", known, np.nan_to_num(after)) + base_rates
    transition_probabilities = counts / counts.sum(-1, keepdims=True)  # (labels, T, labels)
    current = _last_known(_one_hot(plan.past_targets(), num_labels))
    forecast = np.einsum("ni,itj->ntj", np.nan_to_num(current), transition_probabilities)
    return np.asarray(np.where(np.isnan(current[:, :1, None]), base_rates, forecast))


def regression_forecast(
    train: SeriesBatchPlan, plan: SeriesBatchPlan, *, num_last_rows: int = NUM_LAST_ROWS
) -> Values:
    """Return the forecast of one regression per step, on the last rows of the window.

    It is a logistic regression for labels and a ridge regression for numbers. Inputs are
    standardized, with flags for missing values. The regularization strength is chosen on the last
    part of train.
    """
    inputs, query_inputs = (
        _regression_inputs(train, num_last_rows),
        _regression_inputs(plan, num_last_rows),
    )
    mean, deviation = inputs.mean(axis=0), inputs.std(axis=0)
    deviation[deviation == 0] = 1.0
    inputs, query_inputs = (inputs - mean) / deviation, (query_inputs - mean) / deviation
    truth = train.truth()
    fit = _fit_labels if train.codec.kind == "labels" else _fit_numbers
    order = np.argsort(train.origins, kind="stable")
    steps = [
        fit(inputs[order], truth[order, step], query_inputs, len(train.codec.labels))
        for step in range(train.codec.horizon)
    ]
    return np.stack(steps, axis=1)


def _fit_labels(
    inputs: Values, truth: NDArray[Any], query_inputs: Values, num_labels: int
) -> Values:
    known = truth >= 0
    inputs, truth = inputs[known], truth[known]
    if len(np.unique(truth)) < 2:  # there is only one class
        base_rates = np.bincount(truth, minlength=num_labels) / max(1, len(truth))
        return np.broadcast_to(base_rates, (len(query_inputs), num_labels)).copy()
    linear = _import_extra("sklearn.linear_model")

    def predict(part: slice, strength: float, query: Values) -> Values:
        model = linear.LogisticRegression(C=strength, max_iter=2000)
        model.fit(inputs[part], truth[part])
        probabilities = np.zeros((len(query), num_labels))
        probabilities[:, model.classes_] = model.predict_proba(query)
        return probabilities

    def loss(early: slice, late: slice, strength: float) -> float:
        if len(np.unique(truth[early])) < 2:
            return 0.0
        probabilities = predict(early, strength, inputs[late])
        true_probabilities = probabilities[np.arange(len(probabilities)), truth[late]]
        return float(-np.log(np.maximum(true_probabilities, 1e-15)).mean())

    return predict(slice(None), _choose_strength(len(truth), loss), query_inputs)


def _fit_numbers(
    inputs: Values,
    truth: NDArray[Any],
    query_inputs: Values,
    num_labels: int,  # noqa: ARG001 - the signature of `_fit_labels`
) -> Values:
    linear = _import_extra("sklearn.linear_model")
    columns = [
        _fit_column(linear, inputs, truth[:, k], query_inputs) for k in range(truth.shape[1])
    ]
    return np.stack(columns, axis=1)


def _fit_column(linear: Any, inputs: Values, truth: Values, query_inputs: Values) -> Values:
    known = ~np.isnan(truth)
    known_inputs, values = inputs[known], truth[known]

    def predict(part: slice, strength: float, query: Values) -> Values:
        model = linear.Ridge(alpha=1 / strength).fit(known_inputs[part], values[part])
        return np.asarray(model.predict(query))

    def loss(early: slice, late: slice, strength: float) -> float:
        return float(((predict(early, strength, known_inputs[late]) - values[late]) ** 2).mean())

    return predict(slice(None), _choose_strength(len(values), loss), query_inputs)


def _choose_strength(count: int, loss: Callable[[slice, slice, float], float]) -> float:
    """Return the strength with the lowest loss on the last part of train, fitted on the rest."""
    boundary = count - max(1, round(TUNING_FRACTION * count))
    if not boundary:
        return 1.0
    return min(
        REGULARIZATION_STRENGTHS,
        key=lambda strength: loss(slice(boundary), slice(boundary, None), strength),
    )


def _import_extra(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError("scikit-learn", "series") from None


def _regression_inputs(plan: SeriesBatchPlan, num_last_rows: int) -> Values:
    """Return the last rows (N, rows x F) with 0 for missing values, and flags for those."""
    values = plan.codec.normalize(plan.windows(num_last=num_last_rows)).astype(np.float64)
    missing = np.isnan(values)
    flat = [np.nan_to_num(values).reshape(len(plan), -1), missing.reshape(len(plan), -1)]
    return np.concatenate(flat, axis=1)


# -- the calendar


def _target_rows(plan: SeriesBatchPlan) -> NDArray[np.int64]:
    return plan.origins[:, None] + np.arange(plan.codec.horizon)


def _days_of_year(plan: SeriesBatchPlan) -> NDArray[np.int64] | None:
    """Return the day of the year (N, T), from 0; None if times are not dates."""
    times = plan.target_times()
    if times is None or not np.issubdtype(times.dtype, np.datetime64):
        return None
    days = times.astype("datetime64[D]")
    return np.asarray((days - days.astype("datetime64[Y]")).astype(np.int64))


def _mean_by_day(days: NDArray[np.int64], values: Values, overall_mean: Values) -> Values:
    """Return the smoothed mean (days, columns) of each day of the year.

    The overall mean counts as one more day, for days that do not occur in train.
    """
    known = ~np.isnan(values)
    sums, counts = np.zeros((2, DAYS_PER_YEAR, values.shape[1]))
    np.add.at(sums, days, np.nan_to_num(values))
    np.add.at(counts, days, known)
    distances = np.abs(np.arange(DAYS_PER_YEAR)[:, None] - np.arange(DAYS_PER_YEAR))
    kernel = np.exp(-0.5 * (np.minimum(distances, DAYS_PER_YEAR - distances) / SMOOTHING_DAYS) ** 2)
    return np.asarray((kernel @ sums + overall_mean) / (kernel @ counts + 1.0))


# -- labels as numbers


def _as_values(plan: SeriesBatchPlan) -> Values:
    truth = plan.truth()
    if plan.codec.kind == "numbers":
        return truth
    return _one_hot(truth, len(plan.codec.labels))


def _one_hot(label_ids: NDArray[Any], num_labels: int) -> Values:
    """Return label numbers as one-hot vectors, NaN for missing labels."""
    encoded = np.eye(num_labels)[np.maximum(label_ids, 0)]
    return np.where((label_ids >= 0)[..., None], encoded, np.nan)


def _last_known(past: Values) -> Values:
    """Return the last known value of each column of (N, window, K), NaN if there is none."""
    known = ~np.isnan(past)
    index = past.shape[1] - 1 - known[:, ::-1].argmax(axis=1)  # (N, K)
    return np.asarray(np.take_along_axis(past, index[:, None], axis=1)[:, 0])
