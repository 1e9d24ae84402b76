"""`attendo generate`: a language model goes on with a text, by chance."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Any

import typer

from attendo.cli.localization import LangOption, argument, localized_command, option


@localized_command("언어 모델이 글을 이어 쓰거나 새로 쓰게 합니다.")
def generate(
    model: Annotated[
        Path,
        argument("The folder of a language model, or the run's.", "언어 모델 폴더나 학습 폴더."),
    ],
    beginnings: Annotated[
        list[str] | None,
        argument(
            "What the texts begin with; several are gone on with one by one.",
            "글머리. 여럿이면 하나씩 이어 씁니다.",
        ),
    ] = None,
    count: Annotated[
        int, option("Texts for each beginning.", "글머리마다 쓸 글의 수.", "--count", "-n")
    ] = 3,
    max_tokens: Annotated[
        int, option("Most pieces that are added.", "덧붙일 조각의 최대 개수.")
    ] = 100,
    temperature: Annotated[
        float,
        option("Below 1 the likely becomes likelier.", "1보다 작으면 그럴듯한 쪽으로 더 쏠립니다."),
    ] = 1.0,
    top_k: Annotated[
        int,
        option(
            "Draw from so many of the likeliest pieces; 0 is all.",
            "가장 그럴듯한 조각 몇 개에서만 뽑을지. 0이면 모두.",
        ),
    ] = 0,
    top_p: Annotated[
        float,
        option(
            "Draw from the fewest pieces that have this probability.",
            "확률의 합이 이만큼인 가장 적은 조각에서만 뽑습니다.",
        ),
    ] = 1.0,
    seed: Annotated[
        int, option("The same seed gives the same texts.", "시드가 같으면 같은 글이 나옵니다.")
    ] = 0,
    greedy: Annotated[
        bool,
        option(
            "Take the likeliest piece every time: one text.",
            "언제나 가장 그럴듯한 조각을 고릅니다. 글은 하나.",
            "--greedy",
        ),
    ] = False,
    as_json: Annotated[
        bool,
        option("Print a JSON object a beginning.", "글머리마다 JSON 객체를 찍습니다.", "--json"),
    ] = False,
    lang: LangOption = None,  # noqa: ARG001 - `speaking` reads it
) -> None:
    """Let a language model go on with a text, or begin one."""
    from attendo.tasks.language_model.generator import TextGenerator
    from attendo.text.normalize import normalize

    options: dict[str, Any] = {
        "count": count, "max_tokens": max_tokens, "greedy": greedy, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    generator = TextGenerator.load(model)
    for raw in beginnings or [""]:
        prompt = raw.encode(errors="surrogateescape").decode(errors="replace")
        texts = generator.generate(prompt, **options)
        if as_json:
            payload = {"beginning": prompt, "texts": texts}
            typer.echo(json.dumps(payload, ensure_ascii=False))
            continue
        for text in texts:
            typer.echo(_format_text(text, normalize(prompt)))


def _format_text(text: str, prompt: str) -> str:
    """Set off what was given from what is new, where a person reads it."""
    if not sys.stdout.isatty() or not prompt or not text.startswith(prompt):
        return text
    return typer.style(prompt, dim=True) + text[len(prompt) :]
