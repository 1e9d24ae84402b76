"""Score a classifier on a test set of texts and labels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.bundle import find_bundle
from attendo.core.files import write_atomically
from attendo.core.version import __version__
from attendo.evaluation.report_folder import (
    FORMAT_VERSION,
    MARKDOWN_FILE,
    REPORT_FILE,
    REPORT_KIND,
    prepare_folder,
    save_outputs,
    to_json,
)
from attendo.evaluation.test_set import read_test_set
from attendo.tasks.classification.metrics import LabelScores, score_labels
from attendo.text.normalize import normalize
from attendo.text.tokenizer import METADATA_FILE, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.translator import Translation, Translator


def is_classifier(model: str | Path | Translator) -> bool:
    """Return whether a model, or the model of a folder, predicts labels."""
    if not isinstance(model, (str, Path)):
        return model.tokenizer.tgt_kind == "label"
    folder = find_bundle(model)
    return (folder / METADATA_FILE).is_file() and Tokenizer.load(folder).tgt_kind == "label"


def classify(translator: Translator, sources: Sequence[str], **options: Any) -> list[Translation]:
    """Return the class of each text, with its calibrated confidence."""
    return translator.translate(sources, split="never", beam_size=1, confidence=True, **options)


def score_translations(
    translator: Translator, predictions: Sequence[Translation], references: Sequence[str]
) -> LabelScores:
    """Score the predicted classes of texts, counting labels that the model does not know."""
    return score_labels(
        [str(one) for one in predictions],
        [normalize(label) for label in references],
        confidences=[one.confidence.probability if one.confidence else 0.0 for one in predictions],
        known_labels=translator.tokenizer.labels,
    )


def classify_and_score(
    translator: Translator, sources: Sequence[str], references: Sequence[str]
) -> LabelScores:
    """Classify texts and score the predictions."""
    return score_translations(translator, classify(translator, sources), references)


class LabelEvaluation(NamedTuple):
    """The scores of a classifier, the report, and the folder it was written to."""

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
    """Score a classifier on texts (`src`) and their labels (`ref`), one per line.

    With `out`, predictions and report are also written to a folder.
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
