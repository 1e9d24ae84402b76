"""`attendo look`: one page that shows every head, every step and every beam of a translation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attendo.core.errors import InputError
from attendo.core.files import write_atomically


def look(
    model: Annotated[Path, typer.Argument(help="A model folder, or the run's.")],
    text: Annotated[str, typer.Argument(help="The sentence.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The page, or *.json for the record alone.")
    ] = Path("look.html"),
    tgt: Annotated[
        str | None, typer.Option(help="Look at this translation instead of the model's own.")
    ] = None,
    beam_size: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 4,
    attribution: Annotated[
        bool | None,
        typer.Option(
            "--attribution/--no-attribution",
            help="Which source words each word rests on; by default for small Transformers.",
        ),
    ] = None,
    ablation: Annotated[
        bool | None,
        typer.Option(
            "--ablation/--no-ablation",
            help="Each head switched off in turn; by default for small Transformers.",
        ),
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Draw every picture into this folder, too (PNG).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the page.")] = False,
) -> None:
    """Look inside a translation: one offline page with every head, every step, every beam."""
    from rich.console import Console

    from attendo.inspection.look import look_inside
    from attendo.inspection.page import render
    from attendo.translator import Translator

    if output.is_dir() or not output.parent.is_dir():
        reason = f"{output} is a folder" if output.is_dir() else f"no folder {output.parent}"
        raise InputError(reason, remedy="name a file in a folder that exists with -o")
    if output.exists() and not force:
        raise InputError(f"{output} exists", remedy="choose another -o, or --force to replace it")
    console = Console(highlight=False, stderr=True)
    with console.status("translating and looking inside"):
        translator = Translator.load(model)
        record = look_inside(
            translator, text, tgt, beam_size=beam_size, attribution=attribution, ablation=ablation
        )
        page = record.to_json() if output.suffix == ".json" else render(record)
        write_atomically(output, page)
    typer.echo(record.tgt["text"])
    use = "the record alone" if output.suffix == ".json" else "open it in a browser"
    typer.echo(f"{output}: {len(page.encode()) / 1e6:.1f} MB; {use}", err=True)
    if pictures is not None:
        from attendo.inspection.plots import draw_all

        for path in draw_all(pictures, record, translator):
            typer.echo(str(path), err=True)
