"""`attendo score`: the log-probability of each pair of a corpus, by one or two models."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.console import make_console
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    DeviceOption,
    ModelArgument,
    ThreadsOption,
)
from attendo.core.device import use_threads

if TYPE_CHECKING:
    from attendo.evaluation.dual_score import PairScores


def score(
    model: ModelArgument,
    src: Annotated[Path, typer.Option(help="Source sentences, one per line.")],
    tgt: Annotated[Path, typer.Option(help="Their translations, in the same order.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Output file: one line of scores per pair.")
    ],
    backward: Annotated[
        Path | None,
        typer.Option(help="A model of the reverse direction: score with both."),
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite --output.")] = False,
) -> None:
    """Score sentence pairs by cross-entropy, with one model or one per direction."""
    from attendo.cli.inputs import check_files, check_models, check_outputs
    from attendo.core.errors import InputError
    from attendo.core.files import write_atomically
    from attendo.data.corpus_config import CorpusConfig
    from attendo.data.readers import read_pairs
    from attendo.training.progress import ProgressReporter

    check_models(model, backward)
    check_files(src, tgt)
    check_outputs(src, output, force=force)
    pairs = list(read_pairs(CorpusConfig(src=src, tgt=tgt, allow_copies=True)))
    if not pairs:
        raise InputError("nothing to score", hint="pass at least one pair")

    from attendo.bundle import raise_if_language_model
    from attendo.evaluation.dual_score import score_pairs
    from attendo.translator import Translator

    use_threads(threads)
    translators = []
    for path in (model, *([backward] if backward is not None else [])):
        translator = Translator.load(path, device=device)
        raise_if_language_model(translator.about, path)
        translators.append(translator)
    sources, targets = zip(*pairs, strict=True)
    with ProgressReporter(make_console(stderr=True)) as bar:
        scores = score_pairs(sources, targets, *translators, progress=bar.stage)
    write_atomically(output, format_scores(scores))
    typer.echo(f"{output}: {len(pairs):,}", err=True)


def format_scores(scores: PairScores) -> str:
    """Return one line per pair; the last column is the score, higher for better pairs."""
    columns = [scores.forward, *([] if scores.backward is None else [scores.backward])]
    columns += [] if scores.backward is None else [scores.score]
    return "".join(
        "\t".join(f"{value:.4f}" for value in row) + "\n" for row in zip(*columns, strict=True)
    )
