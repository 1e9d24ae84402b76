"""Judge an adapted model: its scores before and after on dev and on corrections held back.

On a large set a drop counts if it is larger than the limit. The scores of a small one change by
several points when a few lines change: there only chrF counts, which varies less than BLEU, and
only if a paired bootstrap (Koehn 2004) finds the drop significant.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.core.message import message
from attendo.evaluation.bleu import bleu, chrf
from attendo.evaluation.bootstrap import Interval, bootstrap_scores, confidence_interval

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.data.corpus_config import Pair

MIN_LINES = 200
"""Sets with fewer lines are small."""
NUM_SAMPLES = 1000


class Scores(NamedTuple):
    """BLEU and chrF on one set."""

    bleu: float
    chrf: float

    @classmethod
    def compute(cls, outputs: Sequence[str], references: Sequence[str]) -> Scores:
        """Score translations against one reference each."""
        return cls(bleu(outputs, references).score, chrf(outputs, references))


class Comparison(NamedTuple):
    """A set, and its scores before and after."""

    name: str
    num_lines: int
    before: Scores
    after: Scores
    chrf_change: Interval | None = None
    """The 95 % interval of the change in chrF; None for a large set."""

    @property
    def chrf_gain(self) -> float:
        """The change in chrF."""
        return self.after.chrf - self.before.chrf

    def drops(self, limit: float) -> list[str]:
        """Return the metrics that fell by more than a limit, as messages."""
        changes = list(zip(("BLEU", "chrF"), self.before, self.after, strict=True))
        if self.chrf_change is not None:
            is_significant = self.chrf_change.high < max(-limit, 0.0)
            changes = changes[1:] if is_significant else []
        return [
            message(
                "{metric} on {set} fell from {before} to {after}",
                metric=label, set=message(self.name), before=f"{old:.1f}", after=f"{new:.1f}",
            )
            for label, old, new in changes
            if old - new > limit
        ]  # fmt: skip


def compare(
    name: str, references: Sequence[str], before: Sequence[str], after: Sequence[str]
) -> Comparison:
    """Compare the translations of a set by two models."""
    return Comparison(
        name,
        len(references),
        before=Scores.compute(before, references),
        after=Scores.compute(after, references),
        chrf_change=_chrf_change(references, before, after)
        if len(references) < MIN_LINES
        else None,
    )


class ModelComparer:
    """Compares models with the first one on sets of pairs, whose outputs are kept.

    Args:
        sets: pairs by the name of the set.
        translate: the translations of sources by the model in a folder.
        base: the folder of the first model.

    """

    def __init__(
        self,
        sets: dict[str, list[Pair]],
        translate: Callable[[Path, list[str]], list[str]],
        base: Path,
    ) -> None:
        self.sets = sets
        self.translate = translate
        self.base_outputs = {name: self._outputs(base, name) for name in sets}

    def compare(self, model: Path, name: str) -> Comparison:
        """Compare the model in a folder with the first one on one set."""
        references = [pair.tgt for pair in self.sets[name]]
        return compare(name, references, self.base_outputs[name], self._outputs(model, name))

    def _outputs(self, model: Path, name: str) -> list[str]:
        return self.translate(model, [pair.src for pair in self.sets[name]])


def _chrf_change(
    references: Sequence[str], before: Sequence[str], after: Sequence[str]
) -> Interval:
    from attendo.evaluation.metrics import build_metrics

    (metric,) = build_metrics(references, requested=["chrf"]).selected
    old, new = (
        bootstrap_scores(metric.sentence_counts(outputs), metric.score, NUM_SAMPLES)
        for outputs in (before, after)
    )
    return confidence_interval(new - old)
