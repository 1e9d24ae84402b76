"""`attendo bench`: how fast training and decoding are here, beside peers.

`attendo.bench` measures; here is only what a person sees of it. Lines come as soon as there is
something to tell, on the error stream, so that the table or the JSON can be piped.
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
    what: Annotated[str, typer.Argument(help="train or decode.")] = "train",
    size: Annotated[str, typer.Option(help="tiny, small, base or big.")] = "base",
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    batch: Annotated[
        list[str] | None,
        typer.Option(help="Sentences of equal length: 800x32+32. Several times for decode."),
    ] = None,
    corpus: Annotated[
        tuple[Path, Path] | None,
        typer.Option(help="Two text files: train on their mixture of lengths."),
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option(help="Of a corpus: tokens of a batch on either side.")
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps that are timed.")] = None,
    rounds: Annotated[
        int | None, typer.Option(help="Turns in which Attendo and a peer are timed side by side.")
    ] = None,
    precision: Annotated[str, typer.Option(help="auto, float32 or bfloat16.")] = "auto",
    vocab: Annotated[int | None, typer.Option(help="Pieces of the vocabulary.")] = None,
    peers: Annotated[
        list[str] | None,
        typer.Option("--peer", help="Only this peer; may be given several times."),
    ] = None,
    alone: Annotated[bool, typer.Option("--alone", help="Measure no peer.")] = False,
    compiled: Annotated[
        bool | None,
        typer.Option("--compile/--no-compile", help="Peers under torch.compile too."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write everything as JSON here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure the speed of training and decoding, beside peers where they are installed."""
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
    """Time training, telling each result as it comes."""
    from rich.console import Console

    from attendo.bench.config import TrainingBenchConfig
    from attendo.bench.training import benchmark_training
    from attendo.training.progress import ProgressReporter

    if len(batches) > 1:
        reason = f"{len(batches)} --batch for train"
        raise ConfigError(reason, hint="give one, and run the command once for each")
    config = TrainingBenchConfig(**settings, batch=batches[0] if batches else None)
    console = Console(stderr=True, highlight=False)

    def print_line(line: str) -> None:
        console.print(line, soft_wrap=True, markup=False)

    with ProgressReporter(console) as bar:
        return benchmark_training(config, log=print_line, progress=bar.stage)


def run_decoding(
    settings: dict[str, Any], batches: Sequence[str], *, unused: dict[str, Any]
) -> dict[str, Any]:
    """Time decoding, telling each result as it comes."""
    from attendo.bench.config import DecodingBenchConfig
    from attendo.bench.decoding import benchmark_decoding

    unsupported = [name.replace("_", "-") for name, value in unused.items() if value is not None]
    if unsupported:
        raise ConfigError(f"decode takes no --{unsupported[0]}", hint="leave it out, or use train")
    config = DecodingBenchConfig(**settings, batches=tuple(batches) or None)
    return benchmark_decoding(config, log=lambda line: typer.echo(line, err=True))


def print_report(console: Console, report: dict[str, Any]) -> None:
    """Print the table, what was measured, and what came out."""
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
