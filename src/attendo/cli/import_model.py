"""`attendo import`: convert a model of another toolkit to a model folder."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from attendo.core.errors import ConfigError


def import_model(
    source: Annotated[
        str,
        typer.Argument(help="hf:DIR (Hugging Face Marian folder) or fairseq:FILE (checkpoint)."),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Model folder to write.")] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Target language of a multilingual Marian model, e.g. fra."),
    ] = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(help="For fairseq: dict.*.txt; twice, source first, if there are two."),
    ] = None,
    sentencepiece: Annotated[
        list[Path] | None,
        typer.Option(
            help="For fairseq: the SentencePiece model; twice, source first, if there are two."
        ),
    ] = None,
) -> None:
    """Import a Hugging Face Marian model or a fairseq checkpoint."""
    from attendo.interop.import_model import import_model as read_model

    if out is None:
        raise ConfigError("no output folder", hint="pass one with -o models/my-model")
    result = read_model(
        source,
        out,
        code=language,
        dictionaries=dictionary or [],
        models=sentencepiece or [],
    )
    for line in result.lines:
        typer.echo(line)
    typer.echo(f"model: {result.model_dir}\nuse it: attendo translate {result.model_dir} '...'")
