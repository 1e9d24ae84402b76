"""`attendo import`: a model of another toolkit becomes a model folder."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from attendo.core.errors import ConfigError


def import_model(
    source: Annotated[
        str,
        typer.Argument(
            help="hf:DIR, a Marian folder of Hugging Face, or fairseq:FILE, a checkpoint."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The model folder to write.")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(help="Of a Marian model of many languages: which it writes, e.g. fra."),
    ] = None,
    dictionary: Annotated[
        list[Path] | None,
        typer.Option(help="Of fairseq: dict.*.txt; twice, source first, where they are two."),
    ] = None,
    sentencepiece: Annotated[
        list[Path] | None,
        typer.Option(help="Of fairseq: the SentencePiece model; twice, source first, if two."),
    ] = None,
) -> None:
    """Make a model folder of a Marian model of Hugging Face, or of a fairseq checkpoint."""
    from attendo.interop.import_model import import_model as read_model

    if out is None:
        raise ConfigError("no model folder", hint="give one with -o models/my-model")
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
