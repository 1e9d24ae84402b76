"""How well a classifier does: accuracy, F1 of each class and their mean, calibration.

A class that is never found, or never there, has an F1 of 0 where it is counted: the mean (macro
F1) is over all classes that occur, in the references or in what was said, however few lines they
have.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.core.version import __version__
from attendo.evaluation.calibration import NUM_BINS
from attendo.evaluation.evaluation_set import read_test_set
from attendo.evaluation.report_folder import (
    FORMAT_VERSION,
    MARKDOWN_FILE,
    REPORT_FILE,
    REPORT_KIND,
    prepare_folder,
    save_outputs,
    to_json,
)
from attendo.text.normalize import normalize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from attendo.translator import Translation, Translator

NUM_DECIMALS = 6
MAX_CONFUSED_PAIRS = 10


class ClassScore(NamedTuple):
    """One class: how many of its lines were found, and how many of those so called were its own."""

    label: str
    support: int
    """Lines of the references."""
    precision: float
    recall: float
    f1: float


class LabelScores(NamedTuple):
    """What was said against what is right."""

    num_lines: int
    accuracy: float
    macro_f1: float
    majority: float
    """Accuracy of who always says the commonest class of these references."""
    classes: list[ClassScore]
    """The commonest first."""
    confused: list[tuple[str, str, int]]
    """What is right, what was said instead, and how often; the most frequent first."""
    ece: float | None = None
    """Expected calibration error, where the model's confidence is known."""
    unseen: dict[str, int] | None = None
    """Labels of the references that the model has never seen, and their lines: all are wrong."""

    def to_dict(self) -> dict[str, Any]:
        """Give it as JSON."""
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
            {"right": expected, "said": predicted, "count": count}
            for expected, predicted, count in self.confused
        ]
        return fields

    def to_lines(self) -> list[str]:
        """Word it for a terminal."""
        parts = [
            message("accuracy {value}", value=f"{self.accuracy:.2%}"),
            f"macro F1 {self.macro_f1:.3f}",
            *([] if self.ece is None else [f"ECE {self.ece:.1%}"]),
        ]
        lines = [
            f"{', '.join(parts)} ({self.num_lines:,} lines, {len(self.classes)} classes; "
            f"always the commonest: {self.majority:.2%})"
        ]
        width = max(len(one.label) for one in self.classes)
        lines += [
            f"  {one.label:<{width}}  F1 {one.f1:.3f}  precision {one.precision:.3f}  "
            f"recall {one.recall:.3f}  {one.support:,} lines"
            for one in self.classes
        ]
        lines += [
            f"  '{label}' was never seen in training: {count:,} lines are wrong for it"
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
    """Compare labels line by line; `known` are all that could have been said.

    >>> scores = score_labels(["a", "b", "b", "b"], ["a", "a", "b", "b"])
    >>> scores.accuracy, round(scores.macro_f1, 3), scores.majority
    (0.75, 0.733, 0.5)
    """
    if len(predictions) != len(references):
        raise InputError(
            f"{len(predictions)} labels were said for {len(references)} references",
            hint="give one for each line",
        )
    if not references:
        raise InputError("there is no label to compare with", hint="give at least one line")
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
    """Tell how far confidence and accuracy lie apart, from 0 to 1, over fifteen bins.

    >>> round(expected_calibration_error([0.9, 0.9, 0.5, 0.5], [True, True, True, False]), 3)
    0.05
    """
    sums = [0.0] * NUM_BINS
    for confidence, correct in zip(confidences, is_correct, strict=True):
        bin_index = min(max(math.ceil(confidence * NUM_BINS), 1), NUM_BINS) - 1
        sums[bin_index] += float(correct) - confidence
    return sum(map(abs, sums)) / max(len(confidences), 1)


def is_classifier(model: str | Path | Translator) -> bool:
    """Tell whether what a model, or that of a folder, says is the name of a class."""
    from attendo.bundle import find_bundle
    from attendo.text.tokenizer import METADATA_FILE, Tokenizer

    if not isinstance(model, (str, Path)):
        return model.tokenizer.tgt_kind == "label"
    folder = find_bundle(model)
    return (folder / METADATA_FILE).is_file() and Tokenizer.load(folder).tgt_kind == "label"


def classify(translator: Translator, sources: Sequence[str], **options: Any) -> list[Translation]:
    """Name the class of each text, with the calibrated confidence in it."""
    return translator.translate(sources, split="never", beam_size=1, confidence=True, **options)


def score_translations(
    translator: Translator, predictions: Sequence[Translation], references: Sequence[str]
) -> LabelScores:
    """Compare what was said of texts with their labels; those never seen in training are told."""
    return score_labels(
        [str(one) for one in predictions],
        [normalize(label) for label in references],
        confidences=[one.confidence.probability if one.confidence else 0.0 for one in predictions],
        known_labels=translator.tokenizer.labels,
    )


def classify_and_score(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> LabelScores:
    """Classify texts and compare."""
    return score_translations(translator, classify(translator, sources), references)


class LabelEvaluation(NamedTuple):
    """What the evaluation of a classifier found, and where it was written."""

    scores: LabelScores
    report: dict[str, Any]
    directory: Path | None


def evaluate_labels(
    model: str | Path,
    *,
    src: str | Path,
    ref: str | Path,
    out: str | Path | None = None,
    device: str | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> LabelEvaluation:
    """Measure a classifier on a test set: texts (`src`) and their labels (`ref`), line by line.

    With `out`, the folder gets outputs.txt, report.json and report.md.
    """
    from attendo.translator import Translator

    directory = None if out is None else Path(out)
    if directory is not None:
        prepare_folder(directory)
    test_set = read_test_set({"ref": Path(ref), "src": Path(src)})
    translator = Translator.load(model, device=device)
    report_progress = progress or (lambda *_: None)
    predictions = classify(
        translator,
        test_set.sources or [],
        progress=lambda done, total: report_progress("classifying", done, total),
    )
    if directory is not None:
        save_outputs(directory, [str(one) for one in predictions], None)
    scores = score_translations(translator, predictions, test_set.references)
    report = {
        "kind": REPORT_KIND,
        "format_version": FORMAT_VERSION,
        "finished": True,
        "attendo": __version__,
        "model": str(model),
        "data": test_set.describe(None),
        "labels": scores.to_dict(),
    }
    if directory is not None:
        lines = "\n".join(scores.to_lines())
        write_atomically(directory / MARKDOWN_FILE, f"# {model}\n\n```\n{lines}\n```\n")
        write_atomically(directory / REPORT_FILE, to_json(report))
    return LabelEvaluation(scores, report, directory)
