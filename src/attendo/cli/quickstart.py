"""`attendo quickstart`: train, score and try a translator on the built-in corpus."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from attendo.cli.localization import LangOption, choose_language, localized_command, option

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.cli.localization import Lang
    from attendo.tasks.translation.quickstart import QuickstartResult

MESSAGES = {
    "en": {
        "intro": "Training a {direction} translator on the built-in corpus: everyday Korean and "
        "English, {pairs:,} pairs. This takes about two minutes on two CPU cores.",
        "score": "BLEU {score:.1f} on {count} sentences with unseen word combinations",
        "again": "(already trained: delete {folder} or add --force to train again)",
        "next": "Now use your own files, one sentence per line, translations in the same order:",
        "look": "Look inside it (every head, step and beam) in a browser:",
        "no_page": "the page that shows the inside is not built: run make web, then run this again",
        "serve": "Use it in a browser and from other programs:",
        "lessons": "Understand it, number by number, in fifteen lessons:",
        "search": "greedy",
    },
    "ko": {
        "intro": "내장 말뭉치(일상 한국어와 영어 {pairs:,}쌍)로 {direction} 번역기를 학습합니다. "
        "CPU 두 코어에서 2분쯤 걸립니다.",
        "score": "처음 보는 조합의 문장 {count}개에서 BLEU {score:.1f}",
        "again": "(이미 학습했습니다. 다시 하려면 {folder} 폴더를 지우거나 --force를 붙이세요)",
        "next": "이제 여러분의 파일로 해 보세요. 한 줄에 한 문장, 두 파일의 줄이 짝을 이룹니다:",
        "look": "안을 들여다보세요. 모든 헤드, 스텝, 빔을 브라우저에서 볼 수 있습니다:",
        "no_page": "안을 보여 주는 화면이 아직 없습니다. make web 다음에 다시 실행하세요",
        "serve": "브라우저에서, 그리고 다른 프로그램에서 써 보세요:",
        "lessons": "강의 열다섯 편으로 숫자 하나하나까지 이해해 보세요:",
        "search": "탐욕 탐색",
    },
}

HEADINGS = {"en": ("source", "translation", "reference"), "ko": ("원문", "번역", "정답")}
KOREAN_HINT = "\n다음 명령들도 한국어로 쓰려면: export ATTENDO_LANG=ko"
"""Printed if Korean was chosen by the option alone: the next commands would print English."""


@localized_command("내장 말뭉치로 번역기를 학습하고 점수를 매기고 써 봅니다. 2분쯤 걸립니다.")
def quickstart(
    direction: Annotated[
        str, option("Direction: ko-en or en-ko.", "번역 방향: ko-en이나 en-ko.")
    ] = "ko-en",
    out: Annotated[Path, option("The folder to work in.", "작업할 폴더.", "--out", "-o")] = Path(
        "runs/quickstart"
    ),
    lang: LangOption = None,
    force: Annotated[bool, option("Train again.", "처음부터 다시 학습합니다.")] = False,
) -> None:
    """Train a translator on the built-in corpus, score it and try it, in two minutes."""
    from rich.console import Console

    from attendo.core.run_folder import RunFolder
    from attendo.tasks.translation.quickstart import NUM_TRAIN
    from attendo.tasks.translation.quickstart import quickstart as run_quickstart
    from attendo.training.progress import ProgressReporter

    output_lang = choose_language(lang)
    messages = MESSAGES[output_lang]
    console = Console(highlight=False)
    console.print(messages["intro"].format(direction=direction, pairs=NUM_TRAIN))
    is_done = RunFolder(out / direction).is_finished() and not force
    with ProgressReporter(console, lang=output_lang) as bar:
        result = run_quickstart(direction, out, force=force, reporter=bar)
    if is_done:
        console.print(messages["again"].format(folder=out))
    page = write_inspection_page(result, out / f"look-{direction}.html")
    print_result(console, result, page, lang=output_lang)
    if output_lang == "ko" and choose_language() != "ko":
        console.print(KOREAN_HINT, style="dim", markup=False)


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

    messages = MESSAGES[lang]
    table = Table(box=None, pad_edge=False)
    for heading in HEADINGS[lang]:
        table.add_column(heading, overflow="fold")
    for source, translation, reference in result.examples:
        shown_reference = "" if translation == reference else "[dim]" + reference + "[/]"
        table.add_row(source, translation, shown_reference or "=")
    console.print()
    console.print(table)
    console.print()
    console.print(
        "[bold]" + messages["score"].format(score=result.bleu.score, count=result.num_test) + "[/]"
    )
    console.print(f"[dim]sacreBLEU {result.bleu.signature}, {messages['search']}[/]")
    console.print(f"\n{messages['next']}")
    console.print("  attendo train --src my.ko --tgt my.en --out runs/my-model", soft_wrap=True)
    console.print(
        f'  attendo translate {result.run.directory} "{result.examples[0][0]}" --confidence',
        soft_wrap=True,
        markup=False,
    )
    console.print(f"\n{messages['look']}" if page else f"\n[dim]{messages['no_page']}[/]")
    if page:
        console.print(f"  {page}", soft_wrap=True, markup=False)
    console.print(f"{messages['serve']}")
    console.print(f"  attendo serve {result.run.directory}", soft_wrap=True, markup=False)
    console.print(f"{messages['lessons']}")
    console.print(f"  attendo lessons --lang {lang}", markup=False)
