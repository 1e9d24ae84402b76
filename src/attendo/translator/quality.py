"""What a score of a translation is worth: a table from scores to quality, and three bands.

The model's probability of its own translation ranks translations well, but says little by itself:
nonsense can have a mean token probability of 0.92. The table was fitted on the dev set at the end
of training (`attendo.evaluation.quality`): of the dev sentences with a similar score, this share
was right. Without a table (an old or imported model, a small dev set) no translation is `high`.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from attendo.core.config import Config

if TYPE_CHECKING:
    from collections.abc import Sequence

Band = Literal["high", "check", "low"]
BANDS: tuple[Band, ...] = get_args(Band)
"""From the best to the worst."""
MIN_UNCALIBRATED_MEAN = 0.5
"""Without a table: below this mean token probability the band is `low`, else `check`."""

MIN_KNOWN_SHARE = 0.75
"""Without a table: below this share of known tokens the band is `low`."""

ScoreName = Literal["probability", "mean_token_probability", "min_token_probability"]
SCORE_NAMES: tuple[ScoreName, ...] = get_args(ScoreName)


class QualityStep(Config):
    """The quality of translations whose log score is at least `min_log_score`."""

    min_log_score: float
    quality: float


class BandCounts(Config):
    """The dev sentences of one band."""

    count: int
    num_right: int
    num_exact: int
    """Equal to the reference."""


class QualityTable(Config):
    """The table that was fitted on dev; `model_dump(mode="json")` saves it."""

    score: ScoreName
    """The score that separates right from wrong translations best."""
    auroc: float | None
    """How well it does: the probability that a right translation has a higher score than a wrong
    one. None if all were right or all wrong."""
    min_chrf: float | None
    """A translation was right if its chrF was at least this; None: if it equaled the reference."""
    min_quality: dict[Band, float]
    """The quality from which a translation is in each band."""
    num_sentences: int
    exact_share: float
    median_chrf: float
    steps: tuple[QualityStep, ...]
    """In the order of their scores; the quality never decreases."""
    bands: dict[Band, BandCounts]

    def quality(self, log_probs: Sequence[float]) -> float:
        """Return the share of dev translations with a similar score that were right.

        Below every score of dev nothing was measured: there the score itself is an upper bound.
        """
        score = log_score(self.score, log_probs)
        index = bisect_right(self.steps, score, key=lambda step: step.min_log_score) - 1
        if index < 0:
            return min(self.steps[0].quality, math.exp(score))
        return self.steps[index].quality

    def band(self, quality: float) -> Band:
        """Return the band of a quality."""
        return next(band for band in BANDS if quality >= self.min_quality[band])


class Assessment(NamedTuple):
    """The expected quality of one translation."""

    quality: float | None
    """None if the model has no table."""
    band: Band


def assess(table: QualityTable | None, log_probs: Sequence[float]) -> Assessment:
    """Return quality and band of a translation from the log-probabilities of its tokens."""
    if table is not None:
        quality = table.quality(log_probs)
        return Assessment(quality, table.band(quality))
    mean = math.exp(log_score("mean_token_probability", log_probs))
    return Assessment(None, "check" if mean >= MIN_UNCALIBRATED_MEAN else "low")


def lower_for_unseen(
    table: QualityTable | None, assessment: Assessment, unseen_share: float
) -> Assessment:
    """Return a lower assessment for a source with tokens that never occurred in training.

    The scores of dev do not apply to it: it is never `high`, and the quality falls with the
    square of the share of known tokens.
    """
    known_share = 1.0 - unseen_share
    if table is None or assessment.quality is None:
        is_low = assessment.band == "low" or known_share < MIN_KNOWN_SHARE
        return Assessment(None, "low" if is_low else "check")
    most = (table.min_quality["high"] + table.min_quality["check"]) / 2
    quality = min(assessment.quality * known_share**2, most)
    return Assessment(quality, table.band(quality))


def log_score(name: ScoreName, log_probs: Sequence[float]) -> float:
    """Return the logarithm of a score of a translation."""
    if name == "probability":
        return sum(log_probs)
    if name == "mean_token_probability":
        return sum(log_probs) / max(len(log_probs), 1)
    return min(log_probs, default=0.0)
