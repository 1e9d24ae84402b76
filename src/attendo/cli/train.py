"""`attendo train`: train a model on files, up to a finished model folder."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from attendo.core.errors import ConfigError


def train(
    config: Annotated[
        Path | None,
        typer.Argument(help="A TOML file with the settings of the run.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.")] = None,
    src: Annotated[
        list[Path] | None, typer.Option(help="Source sentences, one per line (repeatable).")
    ] = None,
    tgt: Annotated[
        list[Path] | None, typer.Option(help="Their translations, in the same order.")
    ] = None,
    path: Annotated[
        list[Path] | None, typer.Option(help="One file with both sides: TSV, JSONL, TMX, PO ...")
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Plain text, for --model encoder or --model decoder."),
    ] = None,
    dev_src: Annotated[
        Path | None, typer.Option(help="Source of dev; split off by default.")
    ] = None,
    dev_tgt: Annotated[Path | None, typer.Option(help="Target of dev.")] = None,
    dev_text: Annotated[Path | None, typer.Option(help="Plain text for dev.")] = None,
    task: Annotated[
        str | None, typer.Option(help="text or series; by default whatever is given.")
    ] = None,
    series: Annotated[
        list[Path] | None, typer.Option(help="Time series: CSV, Parquet or NPZ (repeatable).")
    ] = None,
    dev_series: Annotated[
        list[Path] | None, typer.Option(help="Time series for dev; by default the last part.")
    ] = None,
    targets: Annotated[
        str | None, typer.Option(help="Target columns, comma-separated: labels or numbers.")
    ] = None,
    features: Annotated[
        str | None, typer.Option(help="Input columns, comma-separated; by default all numbers.")
    ] = None,
    time: Annotated[str | None, typer.Option(help="The time column.")] = None,
    group: Annotated[
        str | None, typer.Option(help="The column that names the series of a row.")
    ] = None,
    window: Annotated[int | None, typer.Option(help="Time steps that the model reads.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Time steps to forecast.")] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A public corpus (see attendo corpus), with --pair.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="Its languages, e.g. en-de.")] = None,
    mirror: Annotated[
        str | None, typer.Option(help="A folder or an address to fetch the corpus from.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="tiny, small, base, big, or a row of Table 3.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="transformer, encoder, decoder, rnn-seq2seq, rnn-attention or conv-s2s."),
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option(help="Start with the weights and the tokenizer of this model folder."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. train.max_steps=100.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Delete another run in the run folder.")] = False,
) -> None:
    """Train a model on your own files, text or time series, up to a finished model folder."""
    arguments = dict(locals())
    from rich.console import Console

    from attendo.core.run_folder import RunFolder
    from attendo.i18n.messages import choose_language
    from attendo.tasks.request import TrainRequest
    from attendo.tasks.run import train_run
    from attendo.training.progress import ProgressReporter

    if out is None:
        raise ConfigError("no run folder", hint="give one with --out runs/my-model")
    columns = {
        "targets": _split_names(targets),
        "features": _split_names(features),
        "time": time,
        "group": group,
        "window": window,
        "horizon": horizon,
    }
    request = TrainRequest.from_arguments({**arguments, "columns": columns})
    console = Console(quiet=os.environ.get("RANK", "0") != "0")  # under torchrun, rank 0 prints
    with ProgressReporter(console, lang=choose_language()) as bar:
        finished_run = train_run(request.build_config(reporter=bar), out, force=force, reporter=bar)
    headline = finished_run.headline.replace("\n", "\n" + " " * 10)
    console.print(
        f"\ndone: dev {headline}\n"
        f"model:  {finished_run.model_dir}\n"
        f"report: {RunFolder(finished_run.directory).report_page_path}\n"
        f"use it: {finished_run.usage_hint}",
        highlight=False,
        soft_wrap=True,
    )


def _split_names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
