"""`attendo train`: train a model on files, up to a finished model folder."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.console import make_console, survive_closed_terminal
from attendo.cli.options import DeviceOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.tasks.run import FinishedRun


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
        list[Path] | None,
        typer.Option(help="One file with both sides: TSV, CSV, JSON, Parquet, TMX, PO ..."),
    ] = None,
    text: Annotated[
        list[Path] | None,
        typer.Option(help="Plain text, for --model encoder or --model decoder."),
    ] = None,
    dev_src: Annotated[
        Path | None, typer.Option(help="Source of dev; split off by default.")
    ] = None,
    dev_tgt: Annotated[Path | None, typer.Option(help="Target of dev.")] = None,
    dev_path: Annotated[
        Path | None, typer.Option(help="Dev with both sides in one file, like --path.")
    ] = None,
    dev_text: Annotated[Path | None, typer.Option(help="Plain text for dev.")] = None,
    src_lang: Annotated[
        str | None, typer.Option(help="Language of the source; chooses it in --path, e.g. en.")
    ] = None,
    tgt_lang: Annotated[
        str | None, typer.Option(help="Language of the target; chooses it in --path.")
    ] = None,
    src_field: Annotated[
        str | None, typer.Option(help="Column (name or number) or field of the source in --path.")
    ] = None,
    tgt_field: Annotated[
        str | None, typer.Option(help="Column or field of the target in --path.")
    ] = None,
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
    window: Annotated[
        int | None, typer.Option(help="Time steps that the model reads; 30 by default.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(help="Time steps to forecast; 7 by default.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A public corpus (see attendo corpus), with --pair.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="Its languages, e.g. en-de.")] = None,
    mirror: Annotated[
        str | None, typer.Option(help="A folder or an address to fetch the corpus from.")
    ] = None,
    preset: Annotated[
        str | None,
        typer.Option(help="tiny, small, base, big or a row of Table 3; by default by the data."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="transformer (default), encoder, decoder, rnn-seq2seq, rnn-attention, conv-s2s."
        ),
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option(help="Start with the weights and the tokenizer of this model folder."),
    ] = None,
    replay_src: Annotated[
        list[Path] | None,
        typer.Option(help="Old training data, mixed into --init-from so that it is not forgotten."),
    ] = None,
    replay_tgt: Annotated[
        list[Path] | None, typer.Option(help="Its translations, in the same order.")
    ] = None,
    replay_share: Annotated[
        float | None, typer.Option(help="Share of every epoch that is old; 0.3 by default.")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Training steps; by default they follow from the data.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="The time that training may take, e.g. 30m or 2h; the model follows."),
    ] = None,
    quality: Annotated[
        str | None, typer.Option(help="fast, balanced (the default) or best.")
    ] = None,
    device: DeviceOption = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; by default one per core.", min=1)
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. train.max_steps=100.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Delete another run in the run folder.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the data, the settings and the time; train nothing."),
    ] = False,
) -> None:
    """Train a model on your own files, text or time series, up to a finished model folder."""
    arguments = dict(locals())
    from attendo.i18n.messages import choose_language
    from attendo.tasks.request import TrainRequest
    from attendo.training.progress import ProgressReporter

    if out is None and not dry_run:
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
    # Under torchrun, rank 0 prints.
    console = make_console(quiet=os.environ.get("RANK", "0") != "0")
    with survive_closed_terminal(), ProgressReporter(console, lang=choose_language()) as bar:
        run_config = request.check(reporter=bar, out=None if dry_run else out, force=force)
        if out is None or dry_run:
            from attendo.tasks.dry_run import describe_run

            describe_run(run_config, device=device, threads=threads, reporter=bar)
            return
        from attendo.tasks.run import train_run  # imports PyTorch: the settings are checked before

        finished_run = train_run(
            run_config,
            out,
            force=force,
            device=device,
            threads=threads,
            reporter=bar,
        )
    print_finished_run(console, finished_run, choose_language())


def print_finished_run(console: Console, finished_run: FinishedRun, lang: Lang) -> None:
    """Print the scores of a finished run, and where its model is."""
    from attendo.core.run_folder import RunFolder
    from attendo.i18n.messages import translate_message

    text = message(
        "done: dev {headline}\n          {explanation}\nmodel:  {model}\nreport: {report}\n"
        "use it: {command}",
        headline=finished_run.headline,
        explanation=finished_run.explanation,
        model=finished_run.model_dir,
        report=RunFolder(finished_run.directory).report_page_path,
        command=finished_run.usage_hint,
    )
    shown = translate_message(text, lang)
    console.print(f"\n{shown}", highlight=False, markup=False, soft_wrap=True)


def _split_names(text: str | None) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]
