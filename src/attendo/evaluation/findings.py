"""All that is found out about two systems on a test set, as the dictionary that a report is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import AttendoError
from attendo.core.version import __version__
from attendo.evaluation.breakdown import (
    by_source_length,
    length_ratio,
    sentence_scores,
    worst_sentences,
)
from attendo.evaluation.error_rates import error_rates
from attendo.evaluation.measures import build_measures
from attendo.evaluation.metrics import compare, score_outputs
from attendo.evaluation.report import FORMAT_VERSION, KIND
from attendo.evaluation.texts import count_silences, find_oddities

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.evaluation.measures import Measure, Measures
    from attendo.evaluation.metrics import Scored
    from attendo.evaluation.perplexity import Likelihood
    from attendo.evaluation.resampling import Counts
    from attendo.evaluation.texts import Texts
    from attendo.translator import Translator

    Progress = Callable[[str, int, int | None], None]
    """Is told the stage, what is done and what there is to do."""

NUM_WORST = 20
HISTOGRAM_BINS = 20
FEW_SENTENCES = 100


@dataclass(frozen=True)
class System:
    """One system: a model, a file of outputs, or both."""

    outputs: list[str]
    translator: Translator | None
    facts: dict[str, Any]
    """Its name, and where the outputs come from."""


class Examiner:
    """Scores systems on a test set, each by the same measures.

    Args:
        texts: the test set.
        measures: what `build_measures` made for it.
        num_samples: of the bootstrap; 0 leaves intervals and p-values out.
        progress: is told how far it is.
        needs_error_rates: count wrong sequences and tokens too.

    """

    def __init__(
        self,
        texts: Texts,
        measures: Measures,
        *,
        num_samples: int,
        progress: Progress,
        needs_error_rates: bool = False,
    ) -> None:
        self.needs_error_rates = needs_error_rates
        self.texts = texts
        self.measures = measures
        self.num_samples = num_samples
        self.progress = progress
        self.notes: list[str] = []
        known = {measure.key: measure for measure in measures.used}
        missing = [key for key in ("bleu", "chrf") if key not in known]
        made = build_measures(texts.references, wanted=missing).used
        self.basis: dict[str, Measure] = known | {measure.key: measure for measure in made}
        """The measures by key, with those that the breakdowns rest on."""

    def report(self, system: System, other: System | None, *, lang: str | None) -> dict[str, Any]:
        """Examine one system, or two side by side."""
        self.notes = [*self.measures.left_out, *find_oddities(self.texts)]
        if self.num_samples and len(self.texts.references) < FEW_SENTENCES:
            self.notes.append(f"intervals of fewer than {FEW_SENTENCES} sentences are too narrow")
        ours = self._score(system)
        report: dict[str, Any] = {
            "kind": KIND,
            "format_version": FORMAT_VERSION,
            "finished": True,
            "attendo": __version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "data": self.texts.describe(lang),
            "system": self._describe(system, ours),
            "against": None,
            "comparison": None,
            "notes": self.notes,
        }
        if other is not None:
            theirs = self._score(other)
            report["against"] = self._describe(other, theirs)
            report["comparison"] = [
                {**row._asdict(), "difference": row.difference} for row in compare(ours, theirs)
            ]
        return report

    def _score(self, system: System) -> Scored:
        return score_outputs(
            self.measures.used,
            system.outputs,
            num_samples=self.num_samples,
            progress=lambda done, total: self.progress("scoring", done, total),
        )

    def _describe(self, system: System, scored: Scored) -> dict[str, Any]:
        """Gather the figures of one system."""
        texts = self.texts
        counts = {
            key: scored.counts[key]
            if key in scored.counts
            else self.basis[key].count(system.outputs)
            for key in ("bleu", "chrf")
        }
        chrf = sentence_scores(self.basis["chrf"], counts["chrf"])
        likelihood = self._measure_likelihood(system)
        worst = worst_sentences(
            chrf,
            texts.sources,
            system.outputs,
            texts.references,
            number=NUM_WORST,
            likelihood=likelihood,
        )
        return {
            **system.facts,
            "scores": [score._asdict() for score in scored.scores],
            "likelihood": None if likelihood is None else _describe_likelihood(likelihood),
            "length_ratio": length_ratio(counts["bleu"]),
            "error_rates": self._count_errors(system),
            "num_exact": sum(map(str.__eq__, system.outputs, texts.references)),
            "num_empty_outputs": count_silences(texts.sources or texts.references, system.outputs),
            "by_source_length": self._describe_lengths(counts["bleu"]),
            "sentence_chrf": _describe_spread(chrf),
            "worst": [sentence._asdict() for sentence in worst],
        }

    def _count_errors(self, system: System) -> dict[str, Any] | None:
        if not self.needs_error_rates:
            return None
        texts = self.texts
        sources = texts.sources or [str(place) for place in range(len(texts.references))]
        return error_rates(sources, system.outputs, texts.references)._asdict()

    def _describe_lengths(self, counts: Counts) -> dict[str, Any] | None:
        if self.texts.sources is None:
            return None
        bleu = self.basis["bleu"]
        found = by_source_length(bleu, counts, self.texts.sources, num_samples=self.num_samples)
        return {
            "unit": found.unit,
            "measure": bleu.name,
            "buckets": [{"label": bucket.label, **bucket._asdict()} for bucket in found.buckets],
        }

    def _measure_likelihood(self, system: System) -> Likelihood | None:
        if system.translator is None or self.texts.sources is None:
            return None
        from attendo.evaluation.perplexity import measure_likelihood

        try:
            return measure_likelihood(
                system.translator.model,
                system.translator.tokenizer,
                self.texts.sources,
                self.texts.references,
                progress=lambda done, total: self.progress("perplexity", done, total),
            )
        except AttendoError as error:  # one sentence too long shall not cost every other figure
            self.notes.append(f"no perplexity of {system.facts['name']}: {error.reason}")
            return None


def _describe_likelihood(likelihood: Likelihood) -> dict[str, Any]:
    return {
        "loss": likelihood.loss,
        "perplexity": likelihood.perplexity,
        "accuracy": likelihood.accuracy,
        "num_tokens": sum(likelihood.num_tokens),
        "num_skipped": likelihood.num_skipped,
    }


def _describe_spread(scores: Sequence[float]) -> dict[str, Any]:
    histogram, _ = np.histogram(np.clip(scores, 0, 100), bins=HISTOGRAM_BINS, range=(0, 100))
    return {
        "mean": float(np.mean(scores)),
        "median": float(np.median(scores)),
        "histogram": histogram.tolist(),
    }
