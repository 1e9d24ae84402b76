"""`attendo bench`: training and decoding speed, compared with other implementations.

`attendo.bench` measures; this module prints. Progress goes to stderr, so that the table or the JSON
can be piped.
"""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

KINDS = ("train", "decode")


def bench(
    what: Annotated[str, typer.Argument(help="What to measure: train or decode.")] = "train",
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
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write all results to this JSON file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure training and decoding speed, compared with other implementations."""
    from rich.console import Console

    from attendo.core.files import write_atomically

    if what not in KINDS:
        raise ConfigError(f"no benchmark '{what}'", hint=suggest(what, KINDS))
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
    if what == "train":
        report = run_training(common | training_settings, batch or [])
    else:
        report = run_decoding(common, batch or [], unused=training_settings)
    text = json.dumps(report, indent=2) + "\n"
    if out is not None:
        write_atomically(out, text)
    if as_json:
        typer.echo(text, nl=False)
    else:
        print_report(Console(highlight=False), report)


def run_training(settings: dict[str, Any], batches: Sequence[str]) -> dict[str, Any]:
    """Measure training and print each result."""
    from rich.console import Console

    from attendo.bench.config import TrainingBenchConfig
    from attendo.bench.training import benchmark_training
    from attendo.training.progress import ProgressReporter

    if len(batches) > 1:
        reason = f"train takes one --batch, got {len(batches)}"
        raise ConfigError(reason, hint="run the command once per batch")
    config = TrainingBenchConfig(**settings, batch=batches[0] if batches else None)
    console = Console(stderr=True, highlight=False)

    def print_line(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    with ProgressReporter(console) as bar:
        return benchmark_training(config, log=print_line, progress=bar.stage)


def run_decoding(
    settings: dict[str, Any], batches: Sequence[str], *, unused: dict[str, Any]
) -> dict[str, Any]:
    """Measure decoding and print each result."""
    from attendo.bench.config import DecodingBenchConfig
    from attendo.bench.decoding import benchmark_decoding

    unsupported = [name.replace("_", "-") for name, value in unused.items() if value is not None]
    if unsupported:
        raise ConfigError(f"--{unsupported[0]} is for train only", hint="omit it, or measure train")
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
