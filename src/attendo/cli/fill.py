"""`attendo fill`: what could stand in the gaps of a text."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from attendo.cli.localization import (
    LangOption,
    argument,
    choose_language,
    localized_command,
    option,
)

MESSAGES = {"en": {"gap": "gap {number}"}, "ko": {"gap": "빈칸 {number}"}}


@localized_command("글의 빈칸(___)에 들어갈 말을 양쪽 문맥을 보고 찾습니다.")
def fill(
    model: Annotated[
        Path,
        argument(
            "A folder of attendo train --model encoder --text FILE.",
            "attendo train --model encoder --text FILE로 만든 폴더.",
        ),
    ],
    texts: Annotated[
        list[str],
        argument("Texts with ___ where a word is missing.", "빈 곳을 ___로 적은 글."),
    ],
    top: Annotated[int, option("Guesses for each gap.", "빈칸마다 보여 줄 후보 수.")] = 5,
    as_json: Annotated[
        bool, option("One JSON object a line.", "한 줄에 JSON 하나씩 씁니다.", "--json")
    ] = False,
    lang: LangOption = None,
) -> None:
    """Fill the gaps (___) of a text with the words that fit best, seen from both sides."""
    from attendo.tasks.masked_lm.fill_mask import MaskFiller

    messages = MESSAGES[choose_language(lang)]
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
            typer.echo(f"  {messages['gap'].format(number=number)}: {candidates}")
