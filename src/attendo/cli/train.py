"""`attendo train`: from text files to a finished model folder."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Any

import typer

from attendo.core.errors import ConfigError

Files = typer.Option(help="May be given several times, side by side.")


def train(
    config: Annotated[
        Path | None, typer.Argument(help="A TOML file that describes the run.", show_default=False)
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder.")] = None,
    src: Annotated[list[Path] | None, Files] = None,
    tgt: Annotated[list[Path] | None, Files] = None,
    path: Annotated[
        list[Path] | None, typer.Option(help="One file with both sides: TSV, JSONL, TMX, PO ...")
    ] = None,
    dev_src: Annotated[Path | None, typer.Option(help="Split off train when not given.")] = None,
    dev_tgt: Annotated[Path | None, typer.Option()] = None,
    corpus: Annotated[
        str | None, typer.Option(help="A known corpus (attendo corpus), with --pair.")
    ] = None,
    pair: Annotated[str | None, typer.Option(help="Its languages, e.g. en-de.")] = None,
    mirror: Annotated[
        str | None, typer.Option(help="Where the corpus lies: a folder or an address.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="tiny, small, base, big, or a row of Table 3.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="transformer, rnn-seq2seq, rnn-attention or conv-s2s.")
    ] = None,
    init_from: Annotated[
        Path | None,
        typer.Option(help="Begin with the weights and the tokenizer of this model folder."),
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. train.max_steps=100.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Delete a run that lies in the folder.")] = False,
) -> None:
    """Train a model on your own text files, from tokenizer to finished model folder."""
    from rich.console import Console

    from attendo.core.speech import choose_language
    from attendo.training.command import build_config
    from attendo.training.progress import Bar
    from attendo.training.run import train_run

    if out is None:
        raise ConfigError("no run folder", remedy="give one with --out runs/my-model")
    chosen: dict[str, Any] = {
        "src": src or [],
        "tgt": tgt or [],
        "path": path or [],
        "dev_src": dev_src,
        "dev_tgt": dev_tgt,
        "corpus": corpus,
        "pair": pair,
        "mirror": mirror,
        "preset": preset,
        "model": model,
        "init_from": init_from,
    }
    console = Console(quiet=os.environ.get("RANK", "0") != "0")  # under torchrun one speaks
    with Bar(console, lang=choose_language()) as bar:
        resolved = build_config(config, settings or [], reporter=bar, **chosen)
        finished = train_run(resolved, out, force=force, reporter=bar)
    dev = finished.report["dev"]
    console.print(
        f"\ndone: dev BLEU {dev['bleu']:.2f} ({dev['decoding']}, {dev['bleu_signature']}), "
        f"perplexity {dev['perplexity']:.3f}\n"
        f"model:  {finished.model_dir}\nreport: {finished.directory / 'report.md'}\n"
        f"use it: attendo translate {finished.directory} '...'",
        highlight=False,
        soft_wrap=True,
    )
