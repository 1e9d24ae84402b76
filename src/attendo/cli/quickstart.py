"""`attendo quickstart`: train, score and try a translator on the built-in corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.console import make_console, survive_closed_terminal
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.translation.confidence import describe_bands, describe_confidence
from attendo.core.message import message
from attendo.core.run_folder import MODEL_INDEX_FILE
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.tasks.translation.quickstart import QuickstartResult

REAL_SENTENCES = {
    "ko-en": "안녕하세요. 만나서 반갑습니다. 저는 서울에 사는 김민수입니다.",
    "en-ko": "Hello, nice to meet you. My name is Minsu Kim and I live in Seoul.",
}
"""What the shipped translators translate on the last screen."""
HEADINGS = ("source", "translation", "confidence", "reference")
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
    from attendo.cli.inputs import check_choice
    from attendo.core.run_folder import RunFolder
    from attendo.tasks.translation.quickstart import DIRECTIONS, NUM_TRAIN
    from attendo.tasks.translation.quickstart import quickstart as run_quickstart
    from attendo.training.progress import ProgressReporter

    output_lang = choose_language(lang)
    check_choice("--direction", direction, DIRECTIONS)
    console = make_console()
    introduction = message(
        "Training a {direction} translator on the built-in corpus: everyday Korean and English, "
        "{pairs:,} pairs. This takes about two minutes on two CPU cores.",
        direction=direction,
        pairs=NUM_TRAIN,
    )
    console.print(translate_message(introduction, output_lang))
    is_done = RunFolder(out / direction).is_finished() and not force
    with survive_closed_terminal(), ProgressReporter(console, lang=output_lang) as bar:
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
        confidence = translation.confidence
        shown_confidence = localize(describe_confidence(confidence)) if confidence else ""
        table.add_row(source, translation, shown_confidence, shown_reference or "=")
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
    if result.quality is not None:
        console.print(f"[dim]{localize(describe_bands(result.quality))}[/]")
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
    print_shipped_translator(console, result, lang=lang)
    console.print(localize("Understand it, number by number, in the lessons:"))
    console.print(f"  attendo lessons --lang {lang}", markup=False)


def print_shipped_translator(console: Console, result: QuickstartResult, *, lang: Lang) -> None:
    """Print a sentence that the model above cannot translate, by the translator that is shipped."""
    from attendo.core.shipped_models import resolve_shipped
    from attendo.translator import Translator

    direction = result.run.directory.name
    folder = resolve_shipped(direction)
    if direction not in REAL_SENTENCES or not (folder / MODEL_INDEX_FILE).is_file():
        return
    source = REAL_SENTENCES[direction]
    translation = Translator.load(folder, engine="auto").translate(source)
    about = message("The model above knows a made-up language. A real translator is included:")
    console.print(f"\n{translate_message(about, lang)}")
    console.print(f'  attendo translate {direction} "{source}"', soft_wrap=True, markup=False)
    console.print(f"  {translation}", style="bold", soft_wrap=True, markup=False)
    console.print(translate_message("Fine-tune it on your own lines:", lang))
    src, tgt = direction.split("-")
    files = f"--src my.{src} --tgt my.{tgt}"
    command = f"  attendo train --init-from {direction} {files} --out runs/my-model"
    console.print(command, soft_wrap=True, markup=False)
