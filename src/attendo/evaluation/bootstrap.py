"""Confidence intervals and paired tests by bootstrap resampling of sacreBLEU's sentence statistics.

The samples, intervals and p-values equal those of sacreBLEU's `n_bootstrap` and `PairedTest` (a
test checks this), but each sentence is counted once for all samples, and memory does not grow with
their number: sacreBLEU would hold 1,000 copies of the counts of a test set at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

SentenceCounts = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""One row per sentence with the statistics of a metric: matching n-grams, lengths, edits."""
Values = np.ndarray[tuple[int], np.dtype[np.float64]]
BOOTSTRAP_SEED = 12345
"""sacreBLEU's default seed."""


class Interval(NamedTuple):
    """The range of the middle 95 % of the resampled scores."""

    low: float
    high: float


def bootstrap_scores(
    counts: SentenceCounts, score: Callable[[Values], float], num_samples: int
) -> Values:
    """Return the scores of `num_samples` test sets sampled from the sentences with replacement."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    num_sentences = len(counts)
    scores = np.empty(num_samples)
    for index in range(num_samples):
        rows = rng.choice(num_sentences, size=num_sentences, replace=True)
        multiplicities = np.bincount(rows, minlength=num_sentences).astype(np.float64)
        scores[index] = score(multiplicities @ counts)
    return scores


def confidence_interval(scores: Values) -> Interval:
    """Return the interval without the lowest and the highest 2.5 %.

    >>> confidence_interval(np.arange(1000.0))
    Interval(low=25.0, high=974.0)
    """
    ordered = np.sort(scores)
    num_excluded = len(ordered) // 40
    return Interval(float(ordered[num_excluded]), float(ordered[len(ordered) - num_excluded - 1]))


def paired_bootstrap_p_value(ours: Values, theirs: Values, difference: float) -> float:
    """Return the two-sided p-value of a difference between two systems.

    Both must be resampled with the same samples, as `bootstrap_scores` does. Systems that agree in
    every sample get 1, where sacreBLEU returns 1 / (samples + 1).
    """
    distances = np.abs(ours - theirs)
    if not distances.any():
        return 1.0
    num_more_extreme = int(np.sum(distances - distances.mean() > abs(difference)))
    return (num_more_extreme + 1) / (len(distances) + 1)
