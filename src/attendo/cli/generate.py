"""`attendo generate`: text generation with a language model."""

from __future__ import annotations

import json
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated, Any

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations


def generate(
    model: Annotated[
        Path,
        typer.Argument(help="Folder of a language model, or its run folder."),
    ],
    prompts: Annotated[
        list[str] | None,
        typer.Argument(
            help="Prompts to continue; by default the lines of standard input, or an empty prompt."
        ),
    ] = None,
    count: Annotated[int, typer.Option("--count", "-n", help="Texts per prompt.")] = 3,
    max_tokens: Annotated[int, typer.Option(help="Maximum number of generated tokens.")] = 100,
    temperature: Annotated[
        float,
        typer.Option(help="Sampling temperature; below 1 favors probable tokens."),
    ] = 1.0,
    top_k: Annotated[
        int,
        typer.Option(help="Sample from the k most probable tokens; 0 is all."),
    ] = 0,
    top_p: Annotated[
        float,
        typer.Option(help="Sample from the smallest set of tokens with this total probability."),
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    greedy: Annotated[
        bool,
        typer.Option("--greedy", help="Always take the most probable token; generates one text."),
    ] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object per prompt."),
    ] = False,
    lang: LangOption = None,  # noqa: ARG001 - read by `cli.main`
) -> None:
    """Generate text with a language model."""
    from attendo.cli.inputs import check_models
    from attendo.cli.standard_input import read_texts

    check_models(model)
    from attendo.tasks.language_model.generator import TextGenerator
    from attendo.text.normalize import normalize

    options: dict[str, Any] = {
        "count": count, "max_tokens": max_tokens, "greedy": greedy, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "seed": seed,
    }  # fmt: skip
    generator = TextGenerator.load(model)
    for prompt in read_texts(prompts, default=""):
        texts = generator.generate(prompt, **options)
        if as_json:
            payload = {"prompt": prompt, "texts": texts}
            typer.echo(json.dumps(payload, ensure_ascii=False))
            continue
        for text in texts:
            typer.echo(_format_text(text, normalize(prompt)))


def _format_text(text: str, prompt: str) -> str:
    """Dim the prompt on a terminal."""
    if not sys.stdout.isatty() or not prompt or not text.startswith(prompt):
        return text
    return typer.style(prompt, dim=True) + text[len(prompt) :]
