"""`attendo train`: train a model on files, up to a finished model folder."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.console import make_console, survive_closed_terminal
from attendo.cli.data_options import (
    ConfigArgument,
    CorpusOption,
    DevPathOption,
    DevSrcOption,
    DevTextOption,
    DevTgtOption,
    MirrorOption,
    PairOption,
    PathOption,
    PathSrcLangOption,
    PathTgtLangOption,
    SrcFieldOption,
    SrcOption,
    TextOption,
    TgtFieldOption,
    TgtOption,
    only_config,
)
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    DeviceOption,
    RunSettingsOption,
    StepsOption,
    ThreadsOption,
)
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.tasks.run import FinishedRun


def train(
    config: ConfigArgument = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.")] = None,
    src: SrcOption = None,
    tgt: TgtOption = None,
    path: PathOption = None,
    text: TextOption = None,
    dev_src: DevSrcOption = None,
    dev_tgt: DevTgtOption = None,
    dev_path: DevPathOption = None,
    dev_text: DevTextOption = None,
    src_lang: PathSrcLangOption = None,
    tgt_lang: PathTgtLangOption = None,
    src_field: SrcFieldOption = None,
    tgt_field: TgtFieldOption = None,
    task: Annotated[
        str | None, typer.Option(help="text or series; by default inferred from the data.")
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
    corpus: CorpusOption = None,
    pair: PairOption = None,
    mirror: MirrorOption = None,
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
        typer.Option(help="Start from the weights and the tokenizer of this model folder."),
    ] = None,
    replay_src: Annotated[
        list[Path] | None,
        typer.Option(help="Earlier training data to mix in with --init-from, against forgetting."),
    ] = None,
    replay_tgt: Annotated[
        list[Path] | None, typer.Option(help="Its translations, in the same order.")
    ] = None,
    replay_share: Annotated[
        float | None,
        typer.Option(help="Fraction of each epoch that is earlier data; 0.3 by default."),
    ] = None,
    steps: StepsOption = None,
    budget: Annotated[
        str | None,
        typer.Option(
            help="Time that training may take, e.g. 30m or 2h; the model is chosen to fit."
        ),
    ] = None,
    quality: Annotated[
        str | None, typer.Option(help="fast, balanced (the default) or best.")
    ] = None,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    storage: Annotated[
        str | None,
        typer.Option(
            help="Copy checkpoints and the model to this address, e.g. s3://bucket/run, and "
            "continue from there where the run folder is empty."
        ),
    ] = None,
    settings: RunSettingsOption = None,
    force: Annotated[bool, typer.Option(help="Delete another run in the run folder.")] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the data, the settings and the time; train nothing."),
    ] = False,
) -> None:
    """Train a model on your own files, text or time series, up to a finished model folder."""
    arguments = {**locals(), "config": only_config(config)}
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
    with (
        survive_closed_terminal(),
        explain_interruption(),
        ProgressReporter(console, lang=choose_language()) as bar,
    ):
        run_config = request.check(reporter=bar, out=None if dry_run else out, force=force)
        if out is None or dry_run:
            from attendo.tasks.dry_run import describe_run

            describe_run(run_config, device=device, threads=threads, reporter=bar)
            return
        from attendo.tasks.run import train_run  # imports PyTorch: the settings are checked before

        finished_run = train_run(
            run_config,
            out,
            storage=storage,
            force=force,
            device=device,
            threads=threads,
            reporter=bar,
        )
    print_finished_run(console, finished_run, choose_language())


@contextmanager
def explain_interruption() -> Iterator[None]:
    """Say how to go on after Ctrl-C outside of training, which has its own message."""
    from attendo.i18n.messages import choose_language, translate_message

    try:
        yield
    except KeyboardInterrupt:
        text = "stopped; run the same command again: it continues from what is saved"
        typer.echo(translate_message(text, choose_language()), err=True)
        raise


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
