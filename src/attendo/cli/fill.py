"""`attendo fill`: candidates for the gaps in a text."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.i18n.messages import Lang
    from attendo.tasks.masked_lm.fill_mask import FilledText

FAILED_EXIT_CODE = 1
"""Exit code if some texts have no gap."""


def fill(
    model: Annotated[
        Path,
        typer.Argument(help="Folder of a model trained with --model encoder --text FILE."),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Texts with ___ for missing words; by default the lines of standard input."
        ),
    ] = None,
    top: Annotated[int, typer.Option(help="Candidates shown per gap.")] = 5,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
    lang: LangOption = None,
) -> None:
    """Fill the gaps (___) in a text with a masked language model."""
    from attendo.cli.inputs import check_models
    from attendo.cli.standard_input import read_texts

    output_lang = choose_language(lang)
    check_models(model)
    from attendo.tasks.masked_lm.fill_mask import MaskFiller

    filler = MaskFiller.load(model)
    num_failed, hint = 0, ""
    for number, text in enumerate(read_texts(texts), start=1):
        try:
            filled = filler.fill(text, top=top)
        except InputError as error:  # a text without a gap does not stop the others
            note = message("text {number}: {detail}", number=number, detail=error.reason)
            typer.echo(translate_message(note, output_lang), err=True)
            hint = error.hint or ""
            num_failed += 1
            filled = None
        _print_filled(text, filled, as_json=as_json, lang=output_lang)
    if num_failed:
        label = translate_message("hint", output_lang)
        typer.echo(f"  {label}: {translate_message(hint, output_lang)}", err=True)
        raise typer.Exit(FAILED_EXIT_CODE)


def _print_filled(text: str, filled: FilledText | None, *, as_json: bool, lang: Lang) -> None:
    """Print a filled text with the candidates of each gap; a text without a gap as it is."""
    guesses = [] if filled is None else filled.guesses
    shown = text if filled is None else filled.text
    if as_json:
        gaps = [[guess._asdict() for guess in gap] for gap in guesses]
        typer.echo(json.dumps({"text": shown, "gaps": gaps}, ensure_ascii=False))
        return
    typer.echo(shown)
    for number, gap in enumerate(guesses, start=1):
        candidates = "  ".join(f"{guess.text} {guess.probability:.1%}" for guess in gap)
        heading = translate_message(message("gap {number}", number=number), lang)
        typer.echo(f"  {heading}: {candidates}")
