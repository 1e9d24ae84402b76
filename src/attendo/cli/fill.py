"""`attendo fill`: candidates for the gaps in a text."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message


def fill(
    model: Annotated[
        Path,
        typer.Argument(help="Folder of a model trained with --model encoder --text FILE."),
    ],
    texts: Annotated[
        list[str],
        typer.Argument(help="Texts with ___ for missing words."),
    ],
    top: Annotated[int, typer.Option(help="Candidates shown per gap.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
    lang: LangOption = None,
) -> None:
    """Fill the gaps (___) in a text with a masked language model."""
    from attendo.tasks.masked_lm.fill_mask import MaskFiller

    output_lang = choose_language(lang)
    filler = MaskFiller.load(model)
    for text in texts:
        filled = filler.fill(text, top=top)
        if as_json:
            gaps = [[guess._asdict() for guess in gap] for gap in filled.guesses]
            typer.echo(json.dumps({"text": filled.text, "gaps": gaps}, ensure_ascii=False))
            continue
        typer.echo(filled.text)
        for number, guesses in enumerate(filled.guesses, start=1):
            candidates = "  ".join(f"{guess.text} {guess.probability:.1%}" for guess in guesses)
            gap = translate_message(message("gap {number}", number=number), output_lang)
            typer.echo(f"  {gap}: {candidates}")
