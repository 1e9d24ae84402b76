"""Fits the table from a translation's score to its quality, on greedy translations of dev.

A dev translation counts as right if it equals the reference, where the model reproduces at least
half of the references: such a corpus has one right answer. Otherwise, a sentence chrF of at least
`MIN_CHRF` is right: a reference is only one of many good translations. Of 1,500 English sentences
of Tatoeba with two French translations, the two reach a chrF of 50 in 82 % of the cases, the
translations of two different sentences never. So the bands ask for less than with equality. All
thresholds are absolute: a model that translates dev badly never claims a high quality.

The quality is an isotonic regression (pool adjacent violators) of being right on the score. Of
three scores the one that separates best is used: the probability of the sentence, the geometric
mean of its tokens, or its least likely token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attendo.translator.quality import (
    BANDS,
    SCORE_NAMES,
    Band,
    BandCounts,
    QualityStep,
    QualityTable,
    log_score,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

MIN_SENTENCES = 100
"""With fewer dev sentences there is no table."""
MIN_EXACT_SHARE = 0.5
"""Share of translations that equal the reference from which nothing else is right."""
MIN_CHRF = 50.0
MIN_QUALITY_EXACT: dict[Band, float] = {"high": 0.9, "check": 0.5, "low": 0.0}
MIN_QUALITY_CHRF: dict[Band, float] = {"high": 0.75, "check": 0.4, "low": 0.0}
"""About 0.9 and 0.5 of the 82 % that a second human translation reaches."""
GROUP_SIZE = 10
"""Neighboring scores that are taken together before the regression."""
DIGITS = 6


class ScoredTranslation(NamedTuple):
    """A translation of dev, the log-probabilities of its tokens, and the reference."""

    text: str
    log_probs: Sequence[float]
    reference: str


def fit_quality(
    translations: Sequence[ScoredTranslation], *, is_exact_only: bool = False
) -> QualityTable | None:
    """Fit the table; return None if there are too few translations.

    With `is_exact_only`, as for classes, only what equals the reference is right.
    """
    if len(translations) < MIN_SENTENCES:
        return None
    is_exact = np.array([one.text == one.reference for one in translations])
    chrf = sentence_chrf(
        [one.text for one in translations], [one.reference for one in translations]
    )
    needs_exact = is_exact_only or is_exact.mean() >= MIN_EXACT_SHARE
    is_right = is_exact if needs_exact else chrf >= MIN_CHRF
    scores = {
        name: np.array([log_score(name, one.log_probs) for one in translations])
        for name in SCORE_NAMES
    }
    areas = {name: auroc(values, is_right) for name, values in scores.items()}
    best = max(SCORE_NAMES, key=lambda name: areas[name] or 0.0)  # the first one of equals
    area = areas[best]
    table = QualityTable(
        score=best,
        auroc=None if area is None else round(area, DIGITS),
        min_chrf=None if needs_exact else MIN_CHRF,
        min_quality=MIN_QUALITY_EXACT if needs_exact else MIN_QUALITY_CHRF,
        num_sentences=len(translations),
        exact_share=round(float(is_exact.mean()), DIGITS),
        median_chrf=round(float(np.median(chrf)), 2),
        steps=tuple(fit_steps(scores[best], is_right)),
        bands={},
    )
    return table.replace(bands=_count_bands(table, translations, is_right, is_exact))


def _count_bands(
    table: QualityTable,
    translations: Sequence[ScoredTranslation],
    is_right: NDArray[np.bool_],
    is_exact: NDArray[np.bool_],
) -> dict[Band, BandCounts]:
    bands = np.array([table.band(table.quality(one.log_probs)) for one in translations])
    return {
        band: BandCounts(
            count=int((bands == band).sum()),
            num_right=int(is_right[bands == band].sum()),
            num_exact=int(is_exact[bands == band].sum()),
        )
        for band in BANDS
    }


def sentence_chrf(outputs: Iterable[str], references: Iterable[str]) -> NDArray[np.float64]:
    """Return sacreBLEU's chrF of each output, from 0 to 100."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    pairs = zip(outputs, references, strict=True)
    return np.array([metric.sentence_score(str(output), [ref]).score for output, ref in pairs])


def auroc(scores: NDArray[np.float64], is_right: NDArray[np.bool_]) -> float | None:
    """Return the probability that a right one has a higher score than a wrong one.

    Equal scores count half. None if all are right or all are wrong.

    >>> auroc(np.array([0.1, 0.4, 0.4, 0.9]), np.array([False, False, True, True]))
    0.875
    """
    num_right = int(is_right.sum())
    num_wrong = len(is_right) - num_right
    if not num_right or not num_wrong:
        return None
    _, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_ranks = counts.cumsum() - (counts - 1) / 2  # from 1
    rank_sum = mean_ranks[group][is_right].sum()
    return float((rank_sum - num_right * (num_right + 1) / 2) / (num_right * num_wrong))


def fit_steps(scores: NDArray[np.float64], is_right: NDArray[np.bool_]) -> list[QualityStep]:
    """Return the isotonic regression of being right on the score, as steps.

    The share of a step is (right + 1) / (all + 2), Laplace's rule of succession: ten of ten are not
    certainty. This may break the order, so that the steps are pooled again.
    """
    blocks = pool_adjacent_violators(_group(scores, is_right))
    smoothed = [
        block._replace(share=(block.share * block.size + 1) / (block.size + 2)) for block in blocks
    ]
    return [
        QualityStep(
            min_log_score=round(block.min_score, DIGITS), quality=round(block.share, DIGITS)
        )
        for block in pool_adjacent_violators(smoothed)
    ]


class _Block(NamedTuple):
    """Neighboring scores, and the share of right ones."""

    min_score: float
    share: float
    size: int

    def merge(self, other: _Block) -> _Block:
        size = self.size + other.size
        share = (self.share * self.size + other.share * other.size) / size
        return _Block(self.min_score, share, size)


def _group(scores: NDArray[np.float64], is_right: NDArray[np.bool_]) -> list[_Block]:
    """Return groups of at least `GROUP_SIZE` scores, the last one excepted; equal ones together."""
    order = np.argsort(scores, kind="stable")
    groups: list[_Block] = []
    previous: float | None = None
    for score, right in zip(scores[order].tolist(), is_right[order].tolist(), strict=True):
        one = _Block(score, float(right), 1)
        if groups and (groups[-1].size < GROUP_SIZE or score == previous):
            groups[-1] = groups[-1].merge(one)
        else:
            groups.append(one)
        previous = score
    return groups


def pool_adjacent_violators(blocks: Iterable[_Block]) -> list[_Block]:
    """Merge neighbors until the shares never decrease (Ayer et al. 1955)."""
    pooled: list[_Block] = []
    for block in blocks:
        pooled.append(block)
        while len(pooled) > 1 and pooled[-2].share >= pooled[-1].share:
            last = pooled.pop()
            pooled[-1] = pooled[-1].merge(last)
    return pooled
