"""Where a system fails: sentence by sentence, by the length of the source, in length itself."""

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
"""A bucket holds the lengths above one edge up to the next; the last one has no end."""
UNSPACED_SCRIPTS = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which part no words by spaces."""
MIN_BUCKET_SENTENCES = 10
"""Of fewer sentences no interval is told: those that are not there cannot be drawn."""


class ScoredSentence(NamedTuple):
    """One line of the test set; `line` counts from 1."""

    line: int
    chrf: float
    source: str
    output: str
    reference: str
    log_prob: float | None = None
    """Of the reference, a token: how far it was from what the model expected."""


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
        """Write the bounds."""
        return f"{self.first}+" if self.last is None else f"{self.first}-{self.last}"


class LengthBreakdown(NamedTuple):
    """BLEU by the length of the source, and what the length is counted in."""

    unit: str
    buckets: list[Bucket]


def sentence_scores(metric: Metric, counts: SentenceCounts) -> list[float]:
    """Score every sentence alone: meant for chrF, which is steady on few words."""
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
    """List the lowest scores, of equal ones the longer reference first; empty lines are none."""
    indices = [index for index, text in enumerate(references) if text.strip()]
    indices.sort(key=lambda place: (scores[place], -len(references[place]), place))
    return [
        ScoredSentence(
            line=place + 1,
            chrf=scores[place],
            source="" if sources is None else sources[place],
            output=str(outputs[place]),
            reference=references[place],
            log_prob=None if likelihood is None else likelihood.mean_log_prob(place),
        )
        for place in indices[:number]
    ]


def by_source_length(
    metric: Metric, counts: SentenceCounts, sources: Sequence[str], *, num_samples: int
) -> LengthBreakdown:
    """Score the sentences of each range of lengths, ranges without a sentence left out."""
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
    """Count words where they are parted by spaces, else characters.

    >>> choose_length_unit(["나는 학생이다."]), choose_length_unit(["我是学生。"])
    ('words', 'characters')
    """
    num_unspaced = sum(len(UNSPACED_SCRIPTS.findall(text)) for text in texts)
    num_letters = sum(letter.isalpha() for text in texts for letter in text)
    return "characters" if num_unspaced * 2 > num_letters else "words"


def count_length(text: str, unit: str) -> int:
    """Count the words or the characters of a text."""
    words = text.split()
    return len(words) if unit == "words" else sum(map(len, words))


def length_ratio(counts: SentenceCounts) -> float:
    """Return the words of the outputs over those of the references, from the counts of a BLEU."""
    num_output_words, num_reference_words = counts[:, 0].sum(), counts[:, 1].sum()
    return float(num_output_words / num_reference_words) if num_reference_words else 0.0
