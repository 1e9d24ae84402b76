"""Metrics of forecasts: labels by their probabilities, numbers by their errors.

Missing targets do not count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.evaluation.calibration import NUM_BINS, ReliabilityBin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

MIN_PROBABILITY = 1e-15
"""Smaller probabilities are clipped before taking the logarithm."""


def label_metrics(
    truth: NDArray[np.integer[Any]],
    probabilities: NDArray[np.floating[Any]],
    labels: Sequence[str],
    *,
    predicted: NDArray[np.integer[Any]] | None = None,
) -> dict[str, Any]:
    """Score probabilities (N, T, labels) against numbers of labels (N, T), -1 = missing.

    `predicted` (N, T) are the labels to score; by default the most probable one of each step. The
    metrics, as JSON:

    - `num_scored`, `accuracy`
    - `f1_by_label`: the harmonic mean of precision and recall, 0 for a label that never occurs;
      `f1`: their mean over the labels
    - `brier`: the mean squared error of the probabilities; for two labels that of one of them, from
      0 to 1, for more the sum over all, from 0 to 2
    - `log_loss`: with probabilities of at least `MIN_PROBABILITY`
    - `ece`: the gap between confidence and accuracy, from 0 to 1; `bins`: by confidence
    - `accuracy_by_step`, `brier_by_step`, `log_loss_by_step`: None if no target is known

    >>> found = label_metrics(np.array([[0]]), np.array([[[0.8, 0.2]]]), ["no", "yes"])
    >>> round(found["brier"], 3), found["f1_by_label"]
    (0.04, {'no': 1.0, 'yes': 0.0})
    """
    _check_probabilities(probabilities, truth, labels)
    argmax = probabilities.argmax(-1)
    guess = argmax if predicted is None else predicted
    known = truth >= 0
    correct = np.where(known, guess == truth, np.nan)  # (N, T)
    hits = np.eye(len(labels))[np.maximum(truth, 0)]  # (N, T, labels)
    scale = 0.5 if len(labels) == 2 else 1.0  # two labels have one free probability
    brier = np.where(known, scale * ((probabilities - hits) ** 2).sum(-1), np.nan)
    true_probabilities = np.take_along_axis(
        probabilities, np.maximum(truth, 0)[..., None], axis=-1
    )[..., 0]
    loss = np.where(known, -np.log(np.maximum(true_probabilities, MIN_PROBABILITY)), np.nan)
    f1 = _f1_scores(guess[known], truth[known], labels)
    bins = _reliability_bins(probabilities.max(-1)[known], (argmax == truth)[known])
    return {
        "num_scored": int(known.sum()),
        "accuracy": float(np.nanmean(correct)),
        "f1": float(np.mean(list(f1.values()))),
        "f1_by_label": f1,
        "brier": float(np.nanmean(brier)),
        "log_loss": float(np.nanmean(loss)),
        "ece": _calibration_error(bins),
        "bins": [one.model_dump(mode="json") for one in bins],
        "accuracy_by_step": _mean_by_step(correct),
        "brier_by_step": _mean_by_step(brier),
        "log_loss_by_step": _mean_by_step(loss),
    }


def numeric_metrics(
    truth: NDArray[np.floating[Any]],
    values: NDArray[np.floating[Any]],
    targets: Sequence[str] = (),
) -> dict[str, Any]:
    """Score numbers (N, T, K) against the truth, NaN = missing.

    `mae` is the mean absolute error and `rmse` the root mean squared error, over all targets (which
    should have one unit) and `..._by_step`. With the names of the targets, `by_target` has the same
    for each.

    >>> found = numeric_metrics(np.array([[[2.0], [1.0]]]), np.array([[[1.0], [4.0]]]))
    >>> found["mae"], round(found["rmse"], 3), found["mae_by_step"]
    (2.0, 2.236, [1.0, 3.0])
    """
    if values.shape != truth.shape or (targets and truth.shape[-1] != len(targets)):
        raise InputError(
            message(
                "values {shape} do not match truth {truth_shape} and {num_targets} targets",
                shape=values.shape,
                truth_shape=truth.shape,
                num_targets=len(targets),
            ),
            hint="give both as (windows, steps, targets)",
        )
    known = ~np.isnan(truth)
    _check_any_known(known)
    if np.isnan(values[known]).any():
        raise InputError("a forecast is NaN", hint="check the model's weights")
    result = _error_metrics(np.abs(values - truth))
    if targets:
        result["by_target"] = {
            name: _error_metrics(np.abs(values - truth)[..., [index]])
            for index, name in enumerate(targets)
            if known[..., index].any()
        }
    return result


def _error_metrics(absolute: NDArray[Any]) -> dict[str, Any]:
    return {
        "num_scored": int((~np.isnan(absolute)).sum()),
        "mae": float(np.nanmean(absolute)),
        "rmse": float(np.nanmean(absolute**2)) ** 0.5,
        "mae_by_step": _mean_by_step(absolute),
        "rmse_by_step": [
            None if mean is None else mean**0.5 for mean in _mean_by_step(absolute**2)
        ],
    }


def _check_probabilities(
    probabilities: NDArray[Any], truth: NDArray[Any], labels: Sequence[str]
) -> None:
    if probabilities.shape != (*truth.shape, len(labels)):
        raise InputError(
            message(
                "probabilities {shape} do not match truth {truth_shape} and {num_labels} labels",
                shape=probabilities.shape,
                truth_shape=truth.shape,
                num_labels=len(labels),
            ),
            hint="give probabilities as (windows, steps, labels)",
        )
    _check_any_known(truth >= 0)
    sums = probabilities.sum(-1)
    if not (np.abs(sums - 1) < 1e-3).all() or (probabilities < 0).any():
        raise InputError(
            message(
                "probabilities sum to {lowest:.3g} ... {highest:.3g}, not to 1",
                lowest=sums.min(),
                highest=sums.max(),
            ),
            hint="give the probability of each label at each step",
        )


def _check_any_known(known: NDArray[np.bool_]) -> None:
    if not known.any():
        raise InputError("no target is known", hint="give a file with targets")


def _f1_scores(guess: NDArray[Any], truth: NDArray[Any], labels: Sequence[str]) -> dict[str, float]:
    f1_scores = {}
    for number, label in enumerate(labels):
        num_correct = int(((guess == number) & (truth == number)).sum())
        num_relevant = int((guess == number).sum()) + int((truth == number).sum())
        f1_scores[label] = 2 * num_correct / num_relevant if num_relevant else 0.0
    return f1_scores


def _reliability_bins(
    confidence: NDArray[Any], is_correct: NDArray[np.bool_]
) -> tuple[ReliabilityBin, ...]:
    """Return bins by the highest probability, as in `attendo.evaluation.calibration`."""
    bin_indices = np.clip(np.ceil(confidence * NUM_BINS), 1, NUM_BINS).astype(np.int64) - 1
    counts = np.bincount(bin_indices, minlength=NUM_BINS)
    filled = np.maximum(counts, 1)
    confidences = np.bincount(bin_indices, weights=confidence, minlength=NUM_BINS) / filled
    accuracies = np.bincount(bin_indices, weights=is_correct, minlength=NUM_BINS) / filled
    return tuple(
        ReliabilityBin(count=int(count), confidence=float(mean), accuracy=float(share))
        for count, mean, share in zip(counts, confidences, accuracies, strict=True)
    )


def _calibration_error(bins: tuple[ReliabilityBin, ...]) -> float:
    gaps = sum(one.count * abs(one.confidence - one.accuracy) for one in bins)
    return gaps / sum(one.count for one in bins)


def _mean_by_step(values: NDArray[Any]) -> list[float | None]:
    return [_finite_mean(values[:, step]) for step in range(values.shape[1])]


def _finite_mean(values: NDArray[Any]) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None
