"""Scores: each with its name, its 95 % interval and its signature.

The metrics are defined in `attendo.evaluation.metrics`, their intervals in
`attendo.evaluation.bootstrap`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from attendo.evaluation.bootstrap import (
    bootstrap_scores,
    confidence_interval,
    paired_bootstrap_p_value,
)
from attendo.evaluation.metrics import build_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.evaluation.bootstrap import SentenceCounts, Values
    from attendo.evaluation.metrics import Metric

NUM_SAMPLES = 1000
TOKENIZED_FRACTION = 0.2
"""Outputs are assumed to be tokenized if more than this share ends in a separate full stop."""


class Score(NamedTuple):
    """One score with everything that is needed to compare it."""

    key: str
    name: str
    value: float
    low: float | None
    high: float | None
    signature: str
    note: str = ""
    lower_is_better: bool = False


class Comparison(NamedTuple):
    """Two systems on one metric."""

    key: str
    name: str
    ours: float
    theirs: float
    p_value: float | None
    lower_is_better: bool

    @property
    def difference(self) -> float:
        """Return ours minus theirs."""
        return self.ours - self.theirs


@dataclass
class SystemScores:
    """The scored outputs of one system."""

    scores: list[Score] = field(default_factory=list)
    counts: dict[str, SentenceCounts] = field(default_factory=dict)
    bootstrap_scores: dict[str, Values] = field(default_factory=dict)


def compute_scores(
    outputs: Sequence[str],
    references: Sequence[str],
    *,
    requested: Sequence[str] | None = None,
    lang: str | None = None,
    num_samples: int = NUM_SAMPLES,
) -> list[Score]:
    """Score outputs by every metric that fits, or by those that are named.

    >>> texts = ["the cat sat on the mat", "a dog ran home"]
    >>> scores = compute_scores(texts, texts, requested=["bleu", "ter"])
    >>> [(score.name, score.value) for score in scores]
    [('BLEU (13a, cased)', 100.0), ('TER', 0.0)]
    """
    metric_set = build_metrics(references, requested=requested, lang=lang)
    return score_outputs(metric_set.selected, outputs, num_samples=num_samples).scores


def score_outputs(
    metrics: Sequence[Metric],
    outputs: Sequence[str],
    *,
    num_samples: int = NUM_SAMPLES,
    progress: Callable[[int, int], None] | None = None,
) -> SystemScores:
    """Score the outputs of a system by each metric; `num_samples` 0 leaves out the intervals."""
    system_scores = SystemScores()
    looks_tokenized = _look_tokenized(outputs)
    for done, metric in enumerate(metrics):
        if progress is not None:
            progress(done, len(metrics))
        counts = metric.sentence_counts(outputs)
        value = metric.score(counts.sum(axis=0))
        low = high = None
        if num_samples:
            samples = bootstrap_scores(counts, metric.score, num_samples)
            low, high = confidence_interval(samples)
            system_scores.bootstrap_scores[metric.key] = samples
        is_suspect = looks_tokenized and metric.key in ("bleu", "bleu-lc")
        note = "the outputs look tokenized; 13a is meant for plain text" if is_suspect else ""
        signature = metric.signature(num_samples)
        system_scores.counts[metric.key] = counts
        system_scores.scores.append(
            Score(
                metric.key, metric.name, value, low, high, signature, note, metric.lower_is_better
            )
        )
    if progress is not None:
        progress(len(metrics), len(metrics))
    return system_scores


def compare_systems(ours: SystemScores, theirs: SystemScores) -> list[Comparison]:
    """Compare two systems; the p-value is that of the paired bootstrap."""
    rows = []
    for our, their in zip(ours.scores, theirs.scores, strict=True):
        p_value = None
        if our.key in ours.bootstrap_scores:
            samples = ours.bootstrap_scores[our.key], theirs.bootstrap_scores[their.key]
            p_value = paired_bootstrap_p_value(*samples, our.value - their.value)
        rows.append(
            Comparison(our.key, our.name, our.value, their.value, p_value, our.lower_is_better)
        )
    return rows


def _look_tokenized(outputs: Sequence[str]) -> bool:
    nonempty = [text for text in outputs if text.strip()]
    return sum(text.endswith(" .") for text in nonempty) > TOKENIZED_FRACTION * max(
        len(nonempty), 1
    )
