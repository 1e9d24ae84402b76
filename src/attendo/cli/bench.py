"""`attendo bench`: speed of training, decoding, file translation and serving.

`attendo.bench` measures; this module prints. Progress goes to stderr, so that the table or the JSON
can be piped.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.bench_serve import print_serving, run_serving
from attendo.cli.console import make_console
from attendo.cli.inputs import ENGINES, check_choice, check_files, check_models
from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

KINDS = ("train", "decode", "file", "serve")
SIZES = ("tiny", "small", "base", "big")
RANDOM_LINES = {"cpu": 1000, "cuda": 100_000}
RANDOM_LENGTH, FILE_ROUNDS = 12, 3
"""Of a file: lines and tokens if nothing is given, and how often it is translated."""


def bench(
    what: Annotated[
        str, typer.Argument(help="What to measure: train, decode, file or serve.")
    ] = "train",
    model: Annotated[
        Path | None,
        typer.Argument(
            help="For file and serve: the model folder or run folder; by default file uses random "
            "weights of --size."
        ),
    ] = None,
    size: Annotated[str, typer.Option(help="Model size: tiny, small, base or big.")] = "base",
    device: Annotated[str, typer.Option(help="Device: cpu, cuda or auto.")] = "auto",
    batch: Annotated[
        list[str] | None,
        typer.Option(
            help="Batch of equal-length sentences, e.g. 800x32+32 (repeatable for decode)."
        ),
    ] = None,
    corpus: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Two text files: train on their sentence lengths."),
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(help="With --corpus: tokens per batch and side.")
    ] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--input", "-i", help="For file: the text to translate; by default generated."
        ),
    ] = None,
    lines: Annotated[
        int | None, typer.Option(help="For file: the number of lines, from the first.", min=1)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Number of timed training steps.")] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Rounds in which Attendo and a baseline are timed alternately."),
    ] = None,
    precision: Annotated[str, typer.Option(help="Precision: auto, float32 or bfloat16.")] = "auto",
    vocab: Annotated[int | None, typer.Option(help="Vocabulary size.")] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", help="Compare with this baseline only (repeatable)."),
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="Do not measure baselines.")] = False,
    compiled: Annotated[
        bool | None,
        typer.Option(
            "--compile/--no-compile", help="Measure the baselines with torch.compile too."
        ),
    ] = None,
    clients: Annotated[
        list[str] | None,
        typer.Option(help="For serve: clients, or clients x sentences, e.g. 16x64 (repeatable)."),
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="For serve: seconds to measure each number of clients.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="For serve: measure this running server instead.")
    ] = None,
    engine: Annotated[
        str | None, typer.Option(help="For file and serve: attendo, ctranslate2 or auto.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="For serve: a setting of the server, e.g. slots=0 (repeatable)."
        ),
    ] = None,
    beams: Annotated[
        list[int] | None,
        typer.Option("--beam", help="For decode: beam size (repeatable); 1 is greedy search."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write all results to this JSON file.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure the speed of training, decoding, a file or a server against other tools."""
    from attendo.core.files import write_atomically

    if what not in KINDS:
        raise ConfigError(message("no benchmark '{what}'", what=what), hint=suggest(what, KINDS))
    check_choice("--size", size, SIZES)
    check_choice("--engine", engine or "auto", ENGINES)
    common: dict[str, Any] = {
        "size": size,
        "device": device,
        "precision": precision,
        "vocab_size": vocab,
        "peers": () if alone else peers,
    }
    training_settings = {
        "corpus": corpus,
        "batch_tokens": batch_tokens,
        "steps": steps,
        "rounds": rounds,
        "compile": compiled,
    }
    check_unused(
        what,
        {
            "model": (model, ("file", "serve")),
            "--engine": (engine, ("file", "serve")),
            "--input": (source, ("file",)),
            "--lines": (lines, ("file",)),
            "--clients": (clients, ("serve",)),
            "--seconds": (seconds, ("serve",)),
            "--url": (url, ("serve",)),
            "--set": (settings, ("serve",)),
            "--beam": (beams, ("decode",)),
            "--batch": (batch, ("train", "decode")),
            "--peer": (peers, ("train", "decode")),
            "--steps": (steps, ("train",)),
            "--corpus": (corpus, ("train",)),
            "--batch-tokens": (batch_tokens, ("train",)),
            "--rounds": (rounds, ("train", "file")),
            "--compile": (compiled, ("train",)),
        },
    )
    check_models(model)
    check_files(source, *(corpus or ()))
    if what == "file":
        given = {"model": model, "source": source, "lines": lines, "engine": engine or "auto"}
        report = run_file_translation(common, given | {"rounds": rounds})
    elif what == "serve":
        chosen = [*(settings or []), f"precision={precision}"]
        report = run_serving(
            model, url=url, loads=clients, seconds=seconds, engine=engine, settings=chosen
        )
    elif what == "train":
        report = run_training(common | training_settings, batch or [])
    else:
        sizes = {"beam_sizes": tuple(beams)} if beams else {}
        report = run_decoding({**common, **sizes}, batch or [])
    text = json.dumps(report, indent=2) + "\n"
    if out is not None:
        write_atomically(out, text)
    if as_json:
        typer.echo(text, nl=False)
    elif what == "file":
        print_file_report(make_console(), report)
    elif what == "serve":
        print_serving(make_console(), report)
    else:
        print_report(make_console(), report)


def run_file_translation(settings: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Measure the translation of a file, of a given model or of one with random weights."""
    from attendo.bench.config import BenchConfig
    from attendo.bench.file_translation import FileBenchConfig, benchmark_file
    from attendo.bench.random_translator import write_random_file, write_random_model
    from attendo.translator import Translator

    config = BenchConfig(**settings)
    device = config.torch_device
    with TemporaryDirectory(prefix="attendo-bench-") as folder:
        model, source, max_length = given["model"], given["source"], None
        if model is None:
            model, max_length = Path(folder) / "model", RANDOM_LENGTH
            write_random_model(config, model)
        if source is None:
            source = Path(folder) / "text"
            write_random_file(source, given["lines"] or RANDOM_LINES[device.type])
        translator = Translator.load(
            model, device=device, engine=given["engine"], precision=config.precision
        )
        what = FileBenchConfig(
            rounds=given["rounds"] or FILE_ROUNDS, num_lines=given["lines"], max_length=max_length
        )
        return benchmark_file(translator, source, what, log=show)


def show(line: str) -> None:
    """Print a line of progress on stderr."""
    typer.echo(translate_message(line, choose_language()), err=True)


def print_file_report(console: Console, report: dict[str, Any]) -> None:
    """Print where the time of a file goes, and the comparison with CTranslate2."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from attendo.bench import file_translation

    language = choose_language()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for header in file_translation.table_headers():
        table.add_column(translate_message(header, language), justify="right")
    for row in file_translation.table_rows(report):
        table.add_row(*row)
    console.print(table)
    for line in file_translation.describe_peers(report):
        console.print(translate_message(line, language), markup=False)
    setup = translate_message(file_translation.describe_setup(report), language)
    console.print(setup, style="dim", markup=False)


def check_unused(what: str, options: dict[str, tuple[Any, Sequence[str]]]) -> None:
    """Raise an error if an option was given that is for other benchmarks only."""
    for name, (value, kinds) in options.items():
        if value not in (None, []) and what not in kinds:
            raise ConfigError(
                message("{name} is for {what} only", name=name, what=", ".join(kinds)),
                hint="run attendo bench --help",
            )


def run_training(settings: dict[str, Any], batches: Sequence[str]) -> dict[str, Any]:
    """Measure training and print each result."""
    from attendo.bench.config import TrainingBenchConfig
    from attendo.bench.training import benchmark_training
    from attendo.training.progress import ProgressReporter

    if len(batches) > 1:
        reason = message("train takes one --batch, got {count}", count=len(batches))
        raise ConfigError(reason, hint="run the command once per batch")
    config = TrainingBenchConfig(**settings, batch=batches[0] if batches else None)
    console = make_console(stderr=True)

    def print_line(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    with ProgressReporter(console) as bar:
        return benchmark_training(config, log=print_line, progress=bar.stage)


def run_decoding(settings: dict[str, Any], batches: Sequence[str]) -> dict[str, Any]:
    """Measure decoding and print each result."""
    from attendo.bench.config import DecodingBenchConfig
    from attendo.bench.decoding import benchmark_decoding

    config = DecodingBenchConfig(**settings, batches=tuple(batches) or None)
    return benchmark_decoding(config, log=lambda line: typer.echo(line, err=True))


def print_report(console: Console, report: dict[str, Any]) -> None:
    """Print the results, the setup and the verdict."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from attendo.bench import decoding
    from attendo.bench import report as training

    is_training = report["kind"].endswith("train")
    report_module = training if is_training else decoding
    num_text_columns = 1 if is_training else 3
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for index, header in enumerate(report_module.HEADERS):
        justify: Any = "left" if index < num_text_columns else "right"
        table.add_column(
            header, justify=justify, no_wrap=index < num_text_columns or " " not in header
        )
    for row in report_module.table_rows(report):
        table.add_row(*row)
    console.print(table)
    console.print(report_module.describe_setup(report), style="dim", markup=False)
    if is_training:
        for note in training.missing_notes(report):
            console.print(note, markup=False)
        console.print(f"[bold]{training.format_verdict(report)}[/]")
