"""`attendo look`: one page that shows every attention head, step and beam of a translation."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    BeamSizeOption,
    ModelArgument,
)
from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.inspection.record import Record
    from attendo.translator import Translator


DEFAULT_STEPS = 32
"""Steps of the integrated gradients."""


def look(
    model: ModelArgument,
    text: Annotated[
        str | None,
        typer.Argument(help="Sentence to inspect."),
    ] = None,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="Output page, or *.json for the record only."),
    ] = Path("look.html"),
    tgt: Annotated[
        str | None,
        typer.Option(help="Inspect this translation instead of the model's own."),
    ] = None,
    beam_size: BeamSizeOption = 4,
    attribution: Annotated[
        bool | None,
        typer.Option(
            "--attribution/--no-attribution",
            help="Attribute each target word to source words; default for small Transformers.",
        ),
    ] = None,
    attribution_steps: Annotated[
        int, typer.Option(help="Steps of the integrated gradients; more are more exact.")
    ] = DEFAULT_STEPS,
    ablation: Annotated[
        bool | None,
        typer.Option(
            "--ablation/--no-ablation",
            help="Ablate each attention head in turn; default for small Transformers.",
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(help="Also save every picture to this folder (PNG)."),
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option(help="For a time series model: the input file (CSV, Parquet or NPZ)."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            help="First time step to forecast; by default the one after the end of the file."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the output file.")] = False,
    lang: LangOption = None,
) -> None:
    """Inspect a translation on one offline page: every attention head, step and beam."""
    from attendo.cli.inputs import check_files, check_models

    output_lang = choose_language(lang)
    check_models(model)
    check_files(series)
    _check_output(output, force=force)
    text_only = {"--tgt": tgt, "--attribution": attribution, "--ablation": ablation,
                 "--pictures": pictures}  # fmt: skip
    _check_model_input(model, text, series, at, text_only)
    from attendo.inspection.html_page import render_page

    console = make_console(stderr=True)
    translator: Translator | None = None
    activity = "inspecting the translation" if series is None else "inspecting the forecast"
    with console.status(translate_message(activity, output_lang)):
        if series is not None:
            record = _inspect_series(model, series, at)
        else:
            translator, record = _inspect_text(
                model, text or "", tgt=tgt, beam_size=beam_size, attribution=attribution,
                attribution_steps=attribution_steps, ablation=ablation,
            )  # fmt: skip
        page = record.to_json() if output.suffix == ".json" else render_page(record)
        write_atomically(output, page)
    typer.echo(record.tgt["text"])
    summary = message(
        "{path}: {size:.1f} MB; {detail}",
        path=output,
        size=len(page.encode()) / 1e6,
        detail="record only" if output.suffix == ".json" else "open it in a browser",
    )
    typer.echo(translate_message(summary, output_lang), err=True)
    if pictures is not None and translator is not None:
        from attendo.inspection.plots import save_all_plots

        for path in save_all_plots(pictures, record, translator, language=output_lang):
            typer.echo(str(path), err=True)


def _check_output(output: Path, *, force: bool) -> None:
    if output.is_dir() or not output.parent.is_dir():
        reason = (
            message("{path} is a folder", path=output)
            if output.is_dir()
            else message("no folder {path}", path=output.parent)
        )
        raise InputError(reason, hint="set -o to a file in an existing folder")
    if output.suffix.lower() not in (".html", ".htm", ".json"):
        raise InputError(
            message("{path}: the page is HTML, or JSON for the record only", path=output),
            hint="end the name in .html or .json; --pictures FOLDER writes every picture as PNG",
        )
    if output.exists() and not force:
        raise InputError(
            message("{path} exists", path=output),
            hint="choose another -o, or use --force to overwrite it",
        )


def _check_model_input(
    model: Path, text: str | None, series: Path | None, at: str | None, text_only: dict[str, Any]
) -> None:
    """Raise an error unless the input fits the model: a sentence, or a file for a series model."""
    from attendo.bundle import read_input_type

    if text is not None and series is not None:
        raise InputError("both a text and --series", hint="pass the one that the model reads")
    if read_input_type(model) == "series":
        if series is None:
            raise InputError(
                message("{model} reads a time series", model=model),
                hint="pass a file with --series FILE",
            )
        if unsupported := [name for name, value in text_only.items() if value is not None]:
            reason = message("{options}: only for text models", options=", ".join(unsupported))
            raise InputError(reason, hint="omit it for a time series")
    elif series is not None or at is not None:
        raise InputError(
            message("{model} reads text", model=model),
            hint="pass a sentence, without --series and --at",
        )
    elif text is None:
        raise InputError("no text to inspect", hint='pass it after the model: MODEL "a sentence"')


def _inspect_text(model: Path, text: str, **options: Any) -> tuple[Translator, Record]:
    from attendo.inspection.inspect_sentence import inspect_sentence
    from attendo.translator import Translator

    translator = Translator.load(model)
    return translator, inspect_sentence(translator, text, **options)


def _inspect_series(model: Path, path: Path, at: str | None) -> Record:
    from attendo.tasks.forecasting.capture import capture_series
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.tasks.forecasting.windows import read_window

    forecaster = Forecaster.load(model)
    window = read_window(forecaster.codec, path, at=at)
    record = capture_series(
        forecaster,
        window.values,
        times=window.times,
        tgt_times=window.tgt_times,
        observed=window.observed,
    )
    return record.replace(notes=[*window.notes, *record.notes])
