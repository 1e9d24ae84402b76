"""Error analysis: worst sentences, BLEU by source length, length ratio."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attendo.evaluation.bootstrap import bootstrap_scores, confidence_interval

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.evaluation.bootstrap import SentenceCounts
    from attendo.evaluation.metrics import Metric
    from attendo.evaluation.perplexity import Likelihood

BUCKET_EDGES = {
    "words": (0, 5, 10, 15, 20, 30, 40, 60),
    "characters": (0, 10, 20, 30, 40, 60, 80, 120),
}
"""A bucket holds the lengths above one edge up to the next; the last one is unbounded."""
UNSPACED_SCRIPTS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Thai, Lao, Burmese, Khmer, Japanese and Chinese: no spaces between words."""
MIN_BUCKET_SENTENCES = 10
"""Buckets with fewer sentences get no interval: a bootstrap over so few is not meaningful."""


class ScoredSentence(NamedTuple):
    """One line of the test set; `line` counts from 1."""

    line: int
    chrf: float
    source: str
    output: str
    reference: str
    log_prob: float | None = None
    """Mean log-probability per token of the reference."""


class Bucket(NamedTuple):
    """The sentences whose source has `first` to `last` words (or characters)."""

    first: int
    last: int | None
    num_sentences: int
    bleu: float
    low: float | None
    high: float | None

    @property
    def label(self) -> str:
        """Return the bounds as text."""
        return f"{self.first}+" if self.last is None else f"{self.first}-{self.last}"


class LengthBreakdown(NamedTuple):
    """BLEU by source length, and the unit of length."""

    unit: str
    buckets: list[Bucket]


def sentence_scores(metric: Metric, counts: SentenceCounts) -> list[float]:
    """Return the score of each sentence; meant for chrF, which is stable on short texts."""
    return [metric.score(row) for row in counts]


def worst_sentences(
    scores: Sequence[float],
    sources: Sequence[str] | None,
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    number: int,
    likelihood: Likelihood | None = None,
) -> list[ScoredSentence]:
    """Return the sentences with the lowest scores, longer references first; skip empty lines."""
    indices = [index for index, text in enumerate(references) if text.strip()]
    indices.sort(key=lambda index: (scores[index], -len(references[index]), index))
    return [
        ScoredSentence(
            line=index + 1,
            chrf=scores[index],
            source="" if sources is None else sources[index],
            output=str(outputs[index]),
            reference=references[index],
            log_prob=None if likelihood is None else likelihood.mean_log_prob(index),
        )
        for index in indices[:number]
    ]


def by_source_length(
    metric: Metric, counts: SentenceCounts, sources: Sequence[str], *, num_samples: int
) -> LengthBreakdown:
    """Return the score of each range of source lengths; empty ranges are left out."""
    unit = choose_length_unit(sources)
    lengths = np.array([count_length(text, unit) for text in sources])
    edges = BUCKET_EDGES[unit]
    buckets = []
    for lower, last in pairwise([*edges, None]):
        selected = lengths > lower if last is None else (lengths > lower) & (lengths <= last)
        if selected.any():
            buckets.append(_score_bucket(metric, counts[selected], lower or 0, last, num_samples))
    return LengthBreakdown(unit, buckets)


def _score_bucket(
    metric: Metric, counts: SentenceCounts, lower: int, last: int | None, num_samples: int
) -> Bucket:
    low = high = None
    if num_samples and len(counts) >= MIN_BUCKET_SENTENCES:
        low, high = confidence_interval(bootstrap_scores(counts, metric.score, num_samples))
    value = metric.score(counts.sum(axis=0))
    return Bucket(lower + 1, last, len(counts), value, low, high)


def choose_length_unit(texts: Sequence[str]) -> str:
    """Return "words" for scripts that separate words by spaces, else "characters".

    >>> choose_length_unit(["나는 학생이다."]), choose_length_unit(["我是学生。"])
    ('words', 'characters')
    """
    num_unspaced = sum(len(UNSPACED_SCRIPTS.findall(text)) for text in texts)
    num_letters = sum(letter.isalpha() for text in texts for letter in text)
    return "characters" if num_unspaced * 2 > num_letters else "words"


def count_length(text: str, unit: str) -> int:
    """Return the number of words or characters of a text."""
    words = text.split()
    return len(words) if unit == "words" else sum(map(len, words))


def length_ratio(counts: SentenceCounts) -> float:
    """Return the output length divided by the reference length, from the counts of a BLEU."""
    num_output_words, num_reference_words = counts[:, 0].sum(), counts[:, 1].sum()
    return float(num_output_words / num_reference_words) if num_reference_words else 0.0
