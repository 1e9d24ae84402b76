"""`attendo quickstart`: train, score and try a translator on the built-in corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.tasks.translation.quickstart import QuickstartResult

HEADINGS = ("source", "translation", "reference")
KOREAN_HINT = "To use Korean in the next commands too: export ATTENDO_LANG=ko"
"""Shown if Korean was requested by --lang only: the next commands would print English."""


def quickstart(
    direction: Annotated[
        str, typer.Option(help="Translation direction: ko-en or en-ko.")
    ] = "ko-en",
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder.")] = Path(
        "runs/quickstart"
    ),
    lang: LangOption = None,
    force: Annotated[bool, typer.Option(help="Train again from scratch.")] = False,
) -> None:
    """Train a translator on the built-in corpus, score it and try it, in two minutes."""
    from rich.console import Console

    from attendo.core.run_folder import RunFolder
    from attendo.tasks.translation.quickstart import NUM_TRAIN
    from attendo.tasks.translation.quickstart import quickstart as run_quickstart
    from attendo.training.progress import ProgressReporter

    output_lang = choose_language(lang)
    console = Console(highlight=False)
    introduction = message(
        "Training a {direction} translator on the built-in corpus: everyday Korean and English, "
        "{pairs:,} pairs. This takes about two minutes on two CPU cores.",
        direction=direction,
        pairs=NUM_TRAIN,
    )
    console.print(translate_message(introduction, output_lang))
    is_done = RunFolder(out / direction).is_finished() and not force
    with ProgressReporter(console, lang=output_lang) as bar:
        result = run_quickstart(direction, out, force=force, reporter=bar)
    if is_done:
        trained_before = message(
            "(already trained: delete {folder} or add --force to train again)", folder=out
        )
        console.print(translate_message(trained_before, output_lang))
    page = write_inspection_page(result, out / f"look-{direction}.html")
    print_result(console, result, page, lang=output_lang)
    if output_lang == "ko" and choose_language() != "ko":
        console.print(f"\n{translate_message(KOREAN_HINT, output_lang)}", style="dim", markup=False)


def write_inspection_page(result: QuickstartResult, path: Path) -> Path | None:
    """Write the page of the first example; return None if the front end is not built."""
    from attendo.core.errors import AttendoError
    from attendo.core.files import write_atomically
    from attendo.inspection.html_page import read_template, render_page
    from attendo.inspection.inspect_sentence import inspect_sentence
    from attendo.translator import Translator

    try:
        read_template()
    except AttendoError:
        return None
    record = inspect_sentence(Translator.load(result.run.model_dir), result.examples[0][0])
    write_atomically(path, render_page(record))
    return path


def print_result(
    console: Console, result: QuickstartResult, page: Path | None, *, lang: Lang
) -> None:
    """Print examples, the score and the next commands."""
    from rich.table import Table

    def localize(text: str) -> str:
        return translate_message(text, lang)

    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS:
        table.add_column(localize(heading), overflow="fold")
    for source, translation, reference in result.examples:
        shown_reference = "" if translation == reference else "[dim]" + reference + "[/]"
        table.add_row(source, translation, shown_reference or "=")
    console.print()
    console.print(table)
    console.print()
    score = message(
        "BLEU {score:.1f} on {count} sentences with unseen word combinations",
        score=result.bleu.score,
        count=result.num_test,
    )
    console.print(f"[bold]{localize(score)}[/]")
    console.print(f"[dim]sacreBLEU {result.bleu.signature}, {localize('greedy search')}[/]")
    console.print(
        "\n"
        + localize("Now use your own files, one sentence per line, translations in the same order:")
    )
    console.print("  attendo train --src my.ko --tgt my.en --out runs/my-model", soft_wrap=True)
    console.print(
        f'  attendo translate {result.run.directory} "{result.examples[0][0]}" --confidence',
        soft_wrap=True,
        markup=False,
    )
    inspect_hint = localize("Inspect it in a browser (every attention head, step and beam):")
    no_page = localize("the inspection page is not built: run make web, then this command again")
    console.print(f"\n{inspect_hint}" if page else f"\n[dim]{no_page}[/]")
    if page:
        console.print(f"  {page}", soft_wrap=True, markup=False)
    console.print(localize("Use it in a browser and from other programs:"))
    console.print(f"  attendo serve {result.run.directory}", soft_wrap=True, markup=False)
    console.print(localize("Understand it, number by number, in fifteen lessons:"))
    console.print(f"  attendo lessons --lang {lang}", markup=False)
