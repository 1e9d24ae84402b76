"""Where a system fails: sentence by sentence, by the length of the source, in length itself."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from attendo.evaluation.resampling import find_interval, resample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.evaluation.measures import Measure
    from attendo.evaluation.perplexity import Likelihood
    from attendo.evaluation.resampling import Counts

EDGES = {
    "words": (0, 5, 10, 15, 20, 30, 40, 60),
    "characters": (0, 10, 20, 30, 40, 60, 80, 120),
}
"""A bucket holds the lengths above one edge up to the next; the last one has no end."""
UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Letters of Thai, Lao, Burmese, Khmer, Japanese and Chinese, which part no words by spaces."""
FEWEST = 10
"""Of fewer sentences no interval is told: those that are not there cannot be drawn."""


class Sentence(NamedTuple):
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


def sentence_scores(measure: Measure, counts: Counts) -> list[float]:
    """Score every sentence alone: meant for chrF, which is steady on few words."""
    return [measure.score(row) for row in counts]


def worst_sentences(
    scores: Sequence[float],
    sources: Sequence[str] | None,
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    number: int,
    likelihood: Likelihood | None = None,
) -> list[Sentence]:
    """List the lowest scores, of equal ones the longer reference first; empty lines are none."""
    places = [place for place, text in enumerate(references) if text.strip()]
    places.sort(key=lambda place: (scores[place], -len(references[place]), place))
    return [
        Sentence(
            line=place + 1,
            chrf=scores[place],
            source="" if sources is None else sources[place],
            output=str(outputs[place]),
            reference=references[place],
            log_prob=None if likelihood is None else likelihood.per_token(place),
        )
        for place in places[:number]
    ]


def by_source_length(
    measure: Measure, counts: Counts, sources: Sequence[str], *, num_samples: int
) -> LengthBreakdown:
    """Score the sentences of each range of lengths, ranges without a sentence left out."""
    unit = choose_unit(sources)
    lengths = np.array([count_length(text, unit) for text in sources])
    edges = EDGES[unit]
    buckets = []
    for below, last in pairwise([*edges, None]):
        chosen = lengths > below if last is None else (lengths > below) & (lengths <= last)
        if chosen.any():
            buckets.append(_score_bucket(measure, counts[chosen], below or 0, last, num_samples))
    return LengthBreakdown(unit, buckets)


def _score_bucket(
    measure: Measure, counts: Counts, below: int, last: int | None, num_samples: int
) -> Bucket:
    low = high = None
    if num_samples and len(counts) >= FEWEST:
        low, high = find_interval(resample(counts, measure.score, num_samples))
    value = measure.score(counts.sum(axis=0))
    return Bucket(below + 1, last, len(counts), value, low, high)


def choose_unit(texts: Sequence[str]) -> str:
    """Count words where they are parted by spaces, else characters.

    >>> choose_unit(["나는 학생이다."]), choose_unit(["我是学生。"])
    ('words', 'characters')
    """
    num_unspaced = sum(len(UNSPACED.findall(text)) for text in texts)
    num_letters = sum(letter.isalpha() for text in texts for letter in text)
    return "characters" if num_unspaced * 2 > num_letters else "words"


def count_length(text: str, unit: str) -> int:
    """Count the words or the characters of a text."""
    words = text.split()
    return len(words) if unit == "words" else sum(map(len, words))


def length_ratio(counts: Counts) -> float:
    """Give the words of the outputs over those of the references, from the counts of a BLEU."""
    num_said, num_expected = counts[:, 0].sum(), counts[:, 1].sum()
    return float(num_said / num_expected) if num_expected else 0.0
