"""Evaluation of one or two systems on a test set, as the dictionary of the report."""

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
from attendo.evaluation.evaluation_set import count_empty_outputs, find_anomalies
from attendo.evaluation.metrics import build_metrics
from attendo.evaluation.report_folder import FORMAT_VERSION, REPORT_KIND
from attendo.evaluation.scores import compare_systems, score_outputs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.evaluation.bootstrap import SentenceCounts
    from attendo.evaluation.evaluation_set import EvaluationSet
    from attendo.evaluation.metrics import Metric, MetricSet
    from attendo.evaluation.perplexity import Likelihood
    from attendo.evaluation.scores import SystemScores
    from attendo.translator import Translator

    Progress = Callable[[str, int, int | None], None]
    """Called with the stage, the number of items done and the total."""

NUM_WORST = 20
HISTOGRAM_BINS = 20
FEW_SENTENCES = 100


@dataclass(frozen=True)
class System:
    """One system: a model, a file of outputs, or both."""

    outputs: list[str]
    translator: Translator | None
    metadata: dict[str, Any]
    """Name and origin of the outputs."""


class Evaluator:
    """Scores systems on a test set, each by the same metrics.

    Args:
        test_set: the test set.
        metrics: the result of `build_metrics`.
        num_samples: bootstrap samples; 0 leaves out intervals and p-values.
        progress: receives progress.
        needs_error_rates: also count wrong sequences and tokens.

    """

    def __init__(
        self,
        test_set: EvaluationSet,
        metrics: MetricSet,
        *,
        num_samples: int,
        progress: Progress,
        needs_error_rates: bool = False,
    ) -> None:
        self.needs_error_rates = needs_error_rates
        self.test_set = test_set
        self.metrics = metrics
        self.num_samples = num_samples
        self.progress = progress
        self.notes: list[str] = []
        known = {metric.key: metric for metric in metrics.selected}
        missing = [key for key in ("bleu", "chrf") if key not in known]
        added = build_metrics(
            test_set.references, more_references=test_set.more_references, requested=missing
        ).selected
        self.metrics_by_key: dict[str, Metric] = known | {measure.key: measure for measure in added}
        """The metrics by key, including those that the breakdowns need."""

    def report(
        self,
        system: System,
        other: System | None,
        *,
        lang: str | None,
        systems: Sequence[System] = (),
    ) -> dict[str, Any]:
        """Evaluate one system, or compare it with another one, or with the outputs of several."""
        self.notes = [*self.metrics.skipped, *find_anomalies(self.test_set)]
        if self.num_samples and len(self.test_set.references) < FEW_SENTENCES:
            self.notes.append(f"intervals over fewer than {FEW_SENTENCES} sentences are too narrow")
        ours = self._score(system)
        report: dict[str, Any] = {
            "kind": REPORT_KIND,
            "format_version": FORMAT_VERSION,
            "finished": True,
            "attendo": __version__,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "data": self.test_set.describe(lang),
            "system": self._describe_system(system, ours),
            "against": None,
            "comparison": None,
            "notes": self.notes,
        }
        if other is not None:
            theirs = self._score(other)
            report["against"] = self._describe_system(other, theirs)
            report["comparison"] = [
                {**row._asdict(), "difference": row.difference}
                for row in compare_systems(ours, theirs)
            ]
        if systems:
            scored = [(system.metadata["name"], ours)]
            scored += [(one.metadata["name"], self._score(one)) for one in systems]
            report["systems"] = [_compare_with(ours, name, scores) for name, scores in scored]
        return report

    def _score(self, system: System) -> SystemScores:
        return score_outputs(
            self.metrics.selected,
            system.outputs,
            num_samples=self.num_samples,
            progress=lambda done, total: self.progress("scoring", done, total),
        )

    def _describe_system(self, system: System, scored: SystemScores) -> dict[str, Any]:
        """Return the metrics of one system."""
        test_set = self.test_set
        counts = {
            key: scored.counts[key]
            if key in scored.counts
            else self.metrics_by_key[key].sentence_counts(system.outputs)
            for key in ("bleu", "chrf")
        }
        chrf = sentence_scores(self.metrics_by_key["chrf"], counts["chrf"])
        likelihood = self._compute_likelihood(system)
        worst = worst_sentences(
            chrf,
            test_set.sources,
            system.outputs,
            test_set.references,
            number=NUM_WORST,
            likelihood=likelihood,
        )
        return {
            **system.metadata,
            "scores": [score._asdict() for score in scored.scores],
            "likelihood": None if likelihood is None else _describe_likelihood(likelihood),
            "length_ratio": length_ratio(counts["bleu"]),
            "error_rates": self._compute_error_rates(system),
            "num_exact": sum(
                output in references
                for output, *references in zip(
                    system.outputs, *test_set.all_references, strict=True
                )
            ),
            "num_empty_outputs": count_empty_outputs(
                test_set.sources or test_set.references, system.outputs
            ),
            "by_source_length": self._describe_lengths(counts["bleu"]),
            "sentence_chrf": _describe_distribution(chrf),
            "worst": [sentence._asdict() for sentence in worst],
        }

    def _compute_error_rates(self, system: System) -> dict[str, Any] | None:
        if not self.needs_error_rates:
            return None
        test_set = self.test_set
        sources = test_set.sources or [str(index) for index in range(len(test_set.references))]
        count = len(test_set.all_references)
        references = [text for texts in test_set.all_references for text in texts]
        return error_rates(count * sources, count * system.outputs, references)._asdict()

    def _describe_lengths(self, counts: SentenceCounts) -> dict[str, Any] | None:
        if self.test_set.sources is None:
            return None
        bleu = self.metrics_by_key["bleu"]
        breakdown = by_source_length(
            bleu, counts, self.test_set.sources, num_samples=self.num_samples
        )
        return {
            "unit": breakdown.unit,
            "measure": bleu.name,
            "buckets": [
                {"label": bucket.label, **bucket._asdict()} for bucket in breakdown.buckets
            ],
        }

    def _compute_likelihood(self, system: System) -> Likelihood | None:
        if system.translator is None or self.test_set.sources is None:
            return None
        from attendo.evaluation.perplexity import compute_likelihood

        try:
            return compute_likelihood(
                system.translator.model,
                system.translator.tokenizer,
                self.test_set.sources,
                self.test_set.references,
                progress=lambda done, total: self.progress("perplexity", done, total),
            )
        except (
            AttendoError
        ) as error:  # one sentence that is too long must not cost the other metrics
            self.notes.append(f"no perplexity for {system.metadata['name']}: {error.reason}")
            return None


def _compare_with(baseline: SystemScores, name: str, scored: SystemScores) -> dict[str, Any]:
    """Return the scores of a system, each with its difference from the baseline."""
    rows = compare_systems(scored, baseline)
    is_baseline = scored is baseline
    return {
        "name": name,
        "scores": [
            {
                **score._asdict(),
                "difference": None if is_baseline else row.difference,
                "p_value": None if is_baseline else row.p_value,
            }
            for score, row in zip(scored.scores, rows, strict=True)
        ],
    }


def _describe_likelihood(likelihood: Likelihood) -> dict[str, Any]:
    return {
        "loss": likelihood.loss,
        "perplexity": likelihood.perplexity,
        "accuracy": likelihood.accuracy,
        "num_tokens": sum(likelihood.num_tokens),
        "num_skipped": likelihood.num_skipped,
    }


def _describe_distribution(scores: Sequence[float]) -> dict[str, Any]:
    histogram, _ = np.histogram(np.clip(scores, 0, 100), bins=HISTOGRAM_BINS, range=(0, 100))
    return {
        "mean": float(np.mean(scores)),
        "median": float(np.median(scores)),
        "histogram": histogram.tolist(),
    }
