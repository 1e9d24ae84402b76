"""Metrics of classification: accuracy, F1 of each class, macro F1, calibration.

Macro F1 is the mean over all classes that occur in the references or in the predictions, however
rare. A class that is never predicted, or never in the references, has an F1 of 0.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.evaluation.calibration import NUM_BINS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

NUM_DECIMALS = 6
MAX_CONFUSED_PAIRS = 10


class ClassScore(NamedTuple):
    """The scores of one class."""

    label: str
    support: int
    """Lines with this class in the references."""
    precision: float
    recall: float
    f1: float


class LabelScores(NamedTuple):
    """Predictions compared with references."""

    num_lines: int
    accuracy: float
    macro_f1: float
    majority: float
    """Majority-class accuracy: the share of the most frequent class."""
    classes: list[ClassScore]
    """The most frequent first."""
    confused: list[tuple[str, str, int]]
    """Reference, prediction and count of wrong lines; the most frequent first."""
    ece: float | None = None
    """Expected calibration error, if confidences are known."""
    unseen: dict[str, int] | None = None
    """Labels of the references that the model does not know, with their number of lines."""

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as JSON."""
        fields = self._asdict()
        for name in ("accuracy", "macro_f1", "majority", "ece"):
            fields[name] = None if fields[name] is None else round(fields[name], NUM_DECIMALS)
        fields["classes"] = [
            {
                key: round(value, NUM_DECIMALS) if isinstance(value, float) else value
                for key, value in one._asdict().items()
            }
            for one in self.classes
        ]
        fields["confused"] = [
            {"expected": expected, "predicted": predicted, "count": count}
            for expected, predicted, count in self.confused
        ]
        return fields

    def to_lines(self) -> list[str]:
        """Return the scores as lines to print."""
        parts = [
            message("accuracy {value}", value=f"{self.accuracy:.2%}"),
            f"macro F1 {self.macro_f1:.3f}",
            *([] if self.ece is None else [f"ECE {self.ece:.1%}"]),
        ]
        lines = [
            f"{', '.join(parts)} ({self.num_lines:,} lines, {len(self.classes)} classes; "
            f"majority class: {self.majority:.2%})"
        ]
        width = max(len(one.label) for one in self.classes)
        lines += [
            f"  {one.label:<{width}}  F1 {one.f1:.3f}  precision {one.precision:.3f}  "
            f"recall {one.recall:.3f}  {one.support:,} lines"
            for one in self.classes
        ]
        lines += [
            f"  '{label}' does not occur in the training data: {count:,} lines are wrong"
            for label, count in (self.unseen or {}).items()
        ]
        return lines


def score_labels(
    predictions: Sequence[str],
    references: Sequence[str],
    *,
    confidences: Sequence[float] | None = None,
    known_labels: Iterable[str] | None = None,
) -> LabelScores:
    """Compare labels line by line; `known_labels` are those that the model can predict.

    >>> scores = score_labels(["a", "b", "b", "b"], ["a", "a", "b", "b"])
    >>> scores.accuracy, round(scores.macro_f1, 3), scores.majority
    (0.75, 0.733, 0.5)
    """
    if len(predictions) != len(references):
        raise InputError(
            message(
                "{num_predictions} predictions for {num_references} references",
                num_predictions=len(predictions),
                num_references=len(references),
            ),
            hint="give one prediction per reference",
        )
    if not references:
        raise InputError("there is no reference", hint="give at least one line")
    num_references, num_predictions = Counter(references), Counter(predictions)
    num_correct = Counter(
        one for one, other in zip(predictions, references, strict=True) if one == other
    )
    names = sorted(
        {*num_references, *num_predictions}, key=lambda name: (-num_references[name], name)
    )
    classes = [
        _score_class(name, num_references[name], num_predictions[name], num_correct[name])
        for name in names
    ]
    wrong = Counter(
        pair for pair in zip(references, predictions, strict=True) if pair[0] != pair[1]
    )
    is_correct = [one == other for one, other in zip(predictions, references, strict=True)]
    known_set = None if known_labels is None else set(known_labels)
    return LabelScores(
        num_lines=len(references),
        accuracy=sum(is_correct) / len(references),
        macro_f1=sum(one.f1 for one in classes) / len(classes),
        majority=max(num_references.values()) / len(references),
        classes=classes,
        confused=[(*pair, count) for pair, count in wrong.most_common(MAX_CONFUSED_PAIRS)],
        ece=None if confidences is None else expected_calibration_error(confidences, is_correct),
        unseen=None
        if known_set is None
        else {name: count for name, count in num_references.items() if name not in known_set},
    )


def _score_class(
    label: str, num_references: int, num_predictions: int, num_correct: int
) -> ClassScore:
    precision, recall = (
        num_correct / num_predictions if num_predictions else 0.0,
        num_correct / num_references if num_references else 0.0,
    )
    return ClassScore(
        label,
        num_references,
        precision,
        recall,
        2 * num_correct / (num_references + num_predictions),
    )


def expected_calibration_error(confidences: Sequence[float], is_correct: Sequence[bool]) -> float:
    """Return the mean gap between confidence and accuracy over fifteen bins.

    >>> round(expected_calibration_error([0.9, 0.9, 0.5, 0.5], [True, True, True, False]), 3)
    0.05
    """
    sums = [0.0] * NUM_BINS
    for confidence, correct in zip(confidences, is_correct, strict=True):
        bin_index = min(max(math.ceil(confidence * NUM_BINS), 1), NUM_BINS) - 1
        sums[bin_index] += float(correct) - confidence
    return sum(map(abs, sums)) / max(len(confidences), 1)
