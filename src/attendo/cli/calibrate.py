"""`attendo calibrate`: fit the confidence of a finished model on translated sentences."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    DeviceOption,
    ModelArgument,
    ThreadsOption,
)
from attendo.core.device import use_threads
from attendo.core.message import message
from attendo.core.model_versions import NOTES_FILE
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.core.run_folder import ModelFolder
    from attendo.data.corpus_config import Pair


def calibrate(
    model: ModelArgument,
    src: Annotated[
        Path | None,
        typer.Option(help="Source sentences, one per line, that are not in the training data."),
    ] = None,
    ref: Annotated[Path | None, typer.Option(help="Their translations, in the same order.")] = None,
    path: Annotated[
        Path | None,
        typer.Option(help="One file with both sides: TSV, CSV, JSON, Parquet, TMX, PO ..."),
    ] = None,
    corrections: Annotated[
        Path | None,
        typer.Option(
            help="More of them: the file of attendo serve --memory. Of a model that was adapted, "
            "only those that adapt held back."
        ),
    ] = None,
    src_field: Annotated[
        str | None, typer.Option(help="Column of the source in --path, by name or number.")
    ] = None,
    tgt_field: Annotated[str | None, typer.Option(help="Column of the target in --path.")] = None,
    max_sentences: Annotated[
        int, typer.Option(help="Maximum number of sentences, from the first.", min=100)
    ] = 2000,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
) -> None:
    """Calibrate the confidence of a model on a dev set, after an import or for other texts."""
    from itertools import islice

    from attendo.cli.inputs import check_files, check_models
    from attendo.cli.translation.confidence import describe_bands
    from attendo.cli.translation.progress import progress_bar
    from attendo.core.errors import InputError
    from attendo.core.files import write_atomically
    from attendo.core.run_folder import ModelFolder
    from attendo.data.corpus_config import CorpusConfig
    from attendo.data.readers import read_pairs

    has_too_many = path is not None and src is not None
    has_none = path is None and src is None and corrections is None
    if has_too_many or has_none or (src is None) != (ref is None):
        raise InputError("the sentences are missing", hint="pass --src and --ref, or --path")
    check_models(model)
    check_files(src, ref, path, corrections)
    fields = {"src_field": src_field, "tgt_field": tgt_field}
    given: dict[str, Any] = {
        name: _read_field(value) for name, value in fields.items() if value is not None
    }
    folder = ModelFolder.find(model)
    pairs = [] if corrections is None else _read_corrections(corrections, folder)
    if src is not None or path is not None:
        corpus = CorpusConfig(src=src, tgt=ref, path=path, allow_copies=True, **given)
        pairs += islice(read_pairs(corpus), max_sentences)
    if not folder.index_path.is_file():
        raise InputError(
            message("{path} is not a finished model", path=model),
            hint="end its run first: attendo finish RUN",
        )

    from attendo.bundle import raise_if_language_model
    from attendo.evaluation.recalibration import recalibrate
    from attendo.tasks.report import calibration_line
    from attendo.translator import Translator

    use_threads(threads)
    translator = Translator.load(model, device=device)
    raise_if_language_model(translator.about, model)
    with progress_bar(len(pairs)) as progress:
        sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
        calibration = recalibrate(translator, sources, references, progress=progress)
    index = json.loads(folder.index_path.read_text(encoding="utf-8"))
    index["about"]["calibration"] = calibration.model_dump(mode="json")
    text = json.dumps(index, indent=2, ensure_ascii=False)
    write_atomically(folder.index_path, text + "\n")
    typer.echo(translate_message(calibration_line(calibration), choose_language()))
    if calibration.quality is not None:
        typer.echo(translate_message(describe_bands(calibration.quality), choose_language()))
    saved = message("saved in {path}", path=folder.index_path)
    typer.echo(translate_message(saved, choose_language()))


def _read_corrections(path: Path, folder: ModelFolder) -> list[Pair]:
    """Return the corrections that a model has not been trained on."""
    from attendo.bundle import read_about
    from attendo.tasks.translation.adaptation import find_languages
    from attendo.tasks.translation.corrections import read_corrections

    found = read_corrections(path, *find_languages(read_about(folder.path), folder.path))
    is_adapted = (folder.path / NOTES_FILE).is_file()
    return [*found.held_back, *(() if is_adapted else found.train)]


def _read_field(text: str) -> str | int:
    """Return a column's number, or its name."""
    return int(text) if text.isdecimal() else text
