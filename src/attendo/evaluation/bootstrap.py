"""Intervals and paired tests by the bootstrap, on what sacreBLEU counts in each sentence.

The same draws, intervals and p-values as sacreBLEU's own `n_bootstrap` and `PairedTest` (a test
holds them equal), but each sentence is counted once for all of them, and memory does not grow with
the number of samples: sacreBLEU would hold 1,000 copies of the counts of a test set at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

SentenceCounts = np.ndarray[tuple[int, int], np.dtype[np.float64]]
"""Sentences by counts: n-grams that match, lengths, edits ... as the measure needs them."""
Values = np.ndarray[tuple[int], np.dtype[np.float64]]
BOOTSTRAP_SEED = 12345
"""What sacreBLEU starts from when it is told nothing else."""


class Interval(NamedTuple):
    """Where 95 % of the resampled scores lie."""

    low: float
    high: float


def bootstrap_scores(
    counts: SentenceCounts, score: Callable[[Values], float], num_samples: int
) -> Values:
    """Score as many test sets, each drawn from the sentences with replacement."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    num_sentences = len(counts)
    scores = np.empty(num_samples)
    for index in range(num_samples):
        rows = rng.choice(num_sentences, size=num_sentences, replace=True)
        multiplicities = np.bincount(rows, minlength=num_sentences).astype(np.float64)
        scores[index] = score(multiplicities @ counts)
    return scores


def confidence_interval(scores: Values) -> Interval:
    """Leave out the lowest and the highest fortieth.

    >>> confidence_interval(np.arange(1000.0))
    Interval(low=25.0, high=974.0)
    """
    ordered = np.sort(scores)
    num_excluded = len(ordered) // 40
    return Interval(float(ordered[num_excluded]), float(ordered[len(ordered) - num_excluded - 1]))


def paired_bootstrap_p_value(ours: Values, theirs: Values, difference: float) -> float:
    """Tell how often chance alone would part two systems as far as they are (two-sided).

    Both must have been resampled with the same draws, as `bootstrap_scores` does. Systems that agree in
    every draw get 1, where sacreBLEU would say 1 / (samples + 1).
    """
    distances = np.abs(ours - theirs)
    if not distances.any():
        return 1.0
    num_more_extreme = int(np.sum(distances - distances.mean() > abs(difference)))
    return (num_more_extreme + 1) / (len(distances) + 1)
