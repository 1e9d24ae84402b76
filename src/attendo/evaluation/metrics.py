"""Figures: each with its name, its 95 % interval and the signature that says how it was measured.

What is measured is told in `attendo.evaluation.measures`, how sure it is in
`attendo.evaluation.resampling`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from attendo.evaluation.measures import build_measures
from attendo.evaluation.resampling import find_interval, find_p_value, resample

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.evaluation.measures import Measure
    from attendo.evaluation.resampling import Counts, Values

NUM_SAMPLES = 1000
TOKENISED_SHARE = 0.2
"""From this share of outputs on that end in a parted full stop, they are taken for tokenised."""


class Score(NamedTuple):
    """One figure, with all that is needed to compare it."""

    key: str
    name: str
    value: float
    low: float | None
    high: float | None
    signature: str
    note: str = ""
    lower_is_better: bool = False


class Comparison(NamedTuple):
    """Two systems on one measure."""

    key: str
    name: str
    ours: float
    theirs: float
    p_value: float | None
    lower_is_better: bool

    @property
    def difference(self) -> float:
        """Give ours minus theirs."""
        return self.ours - self.theirs


@dataclass
class Scored:
    """The outputs of one system, scored, with what later questions need."""

    scores: list[Score] = field(default_factory=list)
    counts: dict[str, Counts] = field(default_factory=dict)
    samples: dict[str, Values] = field(default_factory=dict)


def measure(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    wanted: Sequence[str] | None = None,
    lang: str | None = None,
    num_samples: int = NUM_SAMPLES,
) -> list[Score]:
    """Score outputs by every measure that fits, or by those that are named.

    >>> texts = ["the cat sat on the mat", "a dog ran home"]
    >>> [(score.name, score.value) for score in measure(texts, texts, wanted=["bleu", "ter"])]
    [('BLEU (13a, cased)', 100.0), ('TER', 0.0)]
    """
    measures = build_measures(references, wanted=wanted, lang=lang)
    return score_outputs(measures.used, outputs, num_samples=num_samples).scores


def score_outputs(
    measures: Sequence[Measure],
    outputs: Sequence[str],
    *,
    num_samples: int = NUM_SAMPLES,
    progress: Callable[[int, int], None] | None = None,
) -> Scored:
    """Score the outputs of a system by each measure; `num_samples` 0 leaves the intervals out."""
    scored = Scored()
    looks_tokenised = _look_tokenised(outputs)
    for done, one in enumerate(measures):
        if progress is not None:
            progress(done, len(measures))
        counts = one.count(outputs)
        value = one.score(counts.sum(axis=0))
        low = high = None
        if num_samples:
            samples = resample(counts, one.score, num_samples)
            low, high = find_interval(samples)
            scored.samples[one.key] = samples
        is_suspect = looks_tokenised and one.key in ("bleu", "bleu-lc")
        note = "the outputs look tokenised; 13a is meant for plain text" if is_suspect else ""
        signature = one.sign(num_samples)
        scored.counts[one.key] = counts
        scored.scores.append(
            Score(one.key, one.name, value, low, high, signature, note, one.lower_is_better)
        )
    if progress is not None:
        progress(len(measures), len(measures))
    return scored


def compare(ours: Scored, theirs: Scored) -> list[Comparison]:
    """Put two systems side by side; the p-value is that of the paired bootstrap."""
    rows = []
    for our, their in zip(ours.scores, theirs.scores, strict=True):
        p_value = None
        if our.key in ours.samples:
            samples = ours.samples[our.key], theirs.samples[their.key]
            p_value = find_p_value(*samples, our.value - their.value)
        rows.append(
            Comparison(our.key, our.name, our.value, their.value, p_value, our.lower_is_better)
        )
    return rows


def _look_tokenised(outputs: Sequence[str]) -> bool:
    said = [text for text in outputs if text.strip()]
    return sum(text.endswith(" .") for text in said) > TOKENISED_SHARE * max(len(said), 1)
