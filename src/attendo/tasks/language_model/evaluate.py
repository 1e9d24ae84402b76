"""Score a language model on texts: perplexity and bits per character."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.core.version import __version__
from attendo.evaluation.report_folder import (
    FORMAT_VERSION,
    MARKDOWN_FILE,
    REPORT_FILE,
    REPORT_KIND,
    prepare_folder,
    to_json,
)
from attendo.tasks.language_model.generator import TextGenerator, TextScore
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable

SCORING_BATCH_SIZE = 256
NUM_HARDEST = 10


class LanguageModelEvaluation(NamedTuple):
    """The report on a language model, and the folder it was written to."""

    report: dict[str, Any]
    directory: Path | None


def evaluate_language_model(
    model: str | Path,
    *,
    ref: str | Path,
    out: str | Path | None = None,
    device: str | None = None,
    progress: Callable[[str, int, int | None], None] | None = None,
) -> LanguageModelEvaluation:
    """Score the texts of a file, one per line, with a language model.

    With `out`, the report is also written to a folder as JSON and Markdown.
    """
    directory = None if out is None else Path(out)
    if directory is not None:
        prepare_folder(directory)
    texts = [line for line in read_lines(Path(ref)) if line.strip()]
    if not texts:
        raise InputError(
            message("{ref} has no text", ref=ref), hint="give a file with one text per line"
        )
    generator = TextGenerator.load(model, device=device)
    report_progress = progress or (lambda *_: None)
    scores: list[TextScore] = []
    for first in range(0, len(texts), SCORING_BATCH_SIZE):
        report_progress("scoring", first, len(texts))
        scores += generator.score(texts[first : first + SCORING_BATCH_SIZE])
    total = TextScore.join(scores)
    order = sorted(range(len(texts)), key=lambda index: -scores[index].bits_per_character)
    report = {
        "kind": REPORT_KIND,
        "task": "language",
        "format_version": FORMAT_VERSION,
        "finished": True,
        "attendo": __version__,
        "model": str(model),
        "data": {"ref": str(ref), "texts": len(texts), "tokens": total.num_tokens},
        "scores": _score_to_dict(total),
        "hardest": [
            {"line": texts[index], **_score_to_dict(scores[index])} for index in order[:NUM_HARDEST]
        ],
    }
    if directory is not None:
        lines = "\n".join(format_lines(report))
        write_atomically(directory / MARKDOWN_FILE, f"# {model}\n\n```\n{lines}\n```\n")
        write_atomically(directory / REPORT_FILE, to_json(report))
    return LanguageModelEvaluation(report, directory)


def _score_to_dict(score: TextScore) -> dict[str, float]:
    return {
        "perplexity": score.perplexity,
        "bits_per_character": score.bits_per_character,
    }


def format_lines(report: dict[str, Any]) -> list[str]:
    """Return the report as lines to print."""
    data, scores = report["data"], report["scores"]
    return [
        f"{data['texts']:,} texts of {data['ref']}, {data['tokens']:,} tokens with end symbols",
        f"perplexity          {scores['perplexity']:.2f} (per token of this tokenizer)",
        f"bits per character  {scores['bits_per_character']:.3f}",
        "least probable texts:",
        *(f"  {one['bits_per_character']:.2f} bits  {one['line']}" for one in report["hardest"]),
    ]
