"""`attendo lessons`: lessons with computed numbers, in Korean and English."""

from __future__ import annotations

from collections import Counter
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.lessons.blocks import Block, Lang
    from attendo.lessons.lesson import Lesson
    from attendo.lessons.own_model import OwnModelSection


BUILD = "build"


def lessons(
    lesson: Annotated[
        str | None,
        typer.Argument(
            help="Lesson number, or `build` to write a Transformer yourself in ten tested steps; "
            "without it, the lessons are listed."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Argument(help="With `build`: the folder of your file, which is created if missing."),
    ] = None,
    lang: LangOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Change an input of the lesson: name=value (repeatable). "
            "A matrix is written row by row: x='1 0; 0 2' or x='[[1,0],[0,2]]'.",
        ),
    ] = None,
    hints: Annotated[
        bool,
        typer.Option("--hints", help="Show hints to the questions, from vague to clear."),
    ] = False,
    answers: Annotated[
        bool,
        typer.Option(help="Show the answers to the questions."),
    ] = False,
    answer: Annotated[
        list[str] | None,
        typer.Option(
            help="Check an answer: 1=42 for question 1, 2=b for the second choice of question 2 "
            "(repeatable). A wrong answer gets a hint."
        ),
    ] = None,
    glossary: Annotated[
        bool,
        typer.Option(
            "--glossary",
            help="Show the terms of the lessons, or of one lesson, in both languages.",
        ),
    ] = False,
    model: Annotated[
        Path | None,
        typer.Option(help="Your own model; by default the quickstart's."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Your own sentence.")] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(help="Save the diagram and the pictures of your model to this folder."),
    ] = None,
    hint: Annotated[
        int,
        typer.Option(
            "--hint",
            count=True,
            show_default=False,
            help="With `build`: a hint for the current step (repeat it for a clearer one).",
        ),
    ] = 0,
    solution: Annotated[
        bool,
        typer.Option("--solution", help="With `build`: the solution of the current step."),
    ] = False,
) -> None:
    """Learn the Transformer lesson by lesson, down to the numbers and your own model."""
    from rich.console import Console

    from attendo.lessons.contents import load_lesson, load_lessons
    from attendo.lessons.render.terminal import render_lesson, render_questions

    output_lang = choose_language(lang)
    if lesson == BUILD:
        _build(folder, output_lang, hint, solution)
        return
    _reject_options_of_build(folder, hint, solution)
    if model is not None:
        from attendo.cli.inputs import check_models

        check_models(model)
    if pictures is not None:
        from attendo.plotting.style import require_matplotlib

        require_matplotlib()
    console = Console(highlight=False)
    if glossary:
        _print_glossary(console, output_lang, None if lesson is None else _parse_number(lesson))
        return
    if lesson is None:
        _print_contents(console, load_lessons(), output_lang)
        return
    chosen = load_lesson(_parse_number(lesson))
    if answer:
        _check_answers(console, chosen, answer, output_lang)
        return
    input_values = dict(_parse_assignment(pair) for pair in settings or [])
    blocks = chosen.blocks(input_values)
    console.print(render_lesson(chosen, blocks, output_lang), soft_wrap=False)
    if chosen.inputs:
        _print_inputs(console, chosen, output_lang)
    heading = translate_message("Questions", output_lang)
    console.print(f"\n[bold]{heading}[/bold]")
    console.print(render_questions(chosen, output_lang, with_answers=answers, with_hints=hints))
    section = _print_own_model_section(console, chosen, output_lang, model, text, pictures)
    if section is not None and pictures is not None:
        _save_pictures(console, blocks, section, pictures, output_lang)


def _build(folder: Path | None, lang: Lang, num_hints: int, has_solution: bool) -> None:
    from attendo.cli.lessons_build import build_track

    if folder is None:
        raise ConfigError(
            message("no folder for `{command}`", command="attendo lessons build"),
            hint=message("name one: {command}", command="attendo lessons build my_transformer"),
        )
    if not build_track(folder, lang, num_hints=num_hints, has_solution=has_solution):
        raise typer.Exit(1)


def _reject_options_of_build(folder: Path | None, num_hints: int, has_solution: bool) -> None:
    if folder is not None or num_hints or has_solution:
        raise ConfigError(
            "a folder, --hint and --solution belong to `attendo lessons build`",
            hint=message("name one: {command}", command="attendo lessons build my_transformer"),
        )


def _parse_number(lesson: str) -> int:
    if not lesson.isdecimal():
        raise ConfigError(
            message("'{lesson}' is neither a lesson number nor `build`", lesson=lesson),
            hint="`attendo lessons` lists the lessons",
        )
    return int(lesson)


def _print_contents(console: Console, all_lessons: list[Lesson], lang: Lang) -> None:
    from rich.padding import Padding

    for lesson in all_lessons:
        console.print(f"[bold]{lesson.number:>2}  {lesson.title.localize(lang)}[/bold]")
        console.print(Padding(lesson.summary.localize(lang), (0, 0, 0, 4)))
    usage = translate_message("Open a lesson, e.g.: attendo lessons 4", lang)
    build = translate_message("Write it yourself: attendo lessons build DIR", lang)
    console.print(f"\n{usage}\n{build}", style="dim")


def _print_glossary(console: Console, lang: Lang, number: int | None) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from attendo.lessons.contents import load_lesson
    from attendo.lessons.glossary import headers, rows

    if number is not None:
        number = load_lesson(number).number
    table = Table(*headers(lang), box=SIMPLE_HEAD)
    for row in rows(lang, number):
        table.add_row(*row)
    console.print(table)


def _print_inputs(console: Console, lesson: Lesson, lang: Lang) -> None:
    names = ", ".join(f"{item.name} ({item.label.localize(lang)})" for item in lesson.inputs)
    example = f"--set {lesson.inputs[0].name}={lesson.inputs[0].example()}"
    text = message("You can change: {names}; {example}", names=names, example=example)
    console.print(f"\n{translate_message(text, lang)}", style="dim", markup=False)


def _check_answers(console: Console, lesson: Lesson, answers: list[str], lang: Lang) -> None:
    """Print whether each answer is right; each wrong answer to a question earns one more hint."""
    from attendo.lessons.render.terminal import number_hints

    num_wrong: Counter[int] = Counter()
    for pair in answers:
        question_number, value = _parse_assignment(pair)
        if not question_number.isdigit():
            raise ConfigError(
                message("'{pair}' does not name a question", pair=pair),
                hint="use e.g. --answer 1=42",
            )
        number = int(question_number)
        question = lesson.question(number)
        is_correct = question.check(value)
        verdict = translate_message("right" if is_correct else "not yet", lang)
        if is_correct:
            comment = question.explanation
        else:
            numbered = number_hints(question)
            comment = numbered[min(num_wrong[number], len(numbered) - 1)]
            num_wrong[number] += 1
        console.print(f"{number}) {verdict}. {comment.localize(lang)}", markup=False)


def _print_own_model_section(
    console: Console,
    lesson: Lesson,
    lang: Lang,
    model: Path | None,
    text: str | None,
    pictures: Path | None,
) -> OwnModelSection | None:
    """Print the section, and return it if the model translates."""
    from attendo.core.errors import InputError
    from attendo.core.run_folder import ModelFolder
    from attendo.lessons.own_model import (
        build_section,
        build_task_blocks,
        find_model_dir,
    )
    from attendo.lessons.render.terminal import render_blocks
    from attendo.translator import Translator

    console.print(f"\n[bold]{translate_message('On your own model', lang)}[/bold]")
    try:
        folder = find_model_dir(model)
    except InputError as error:
        if pictures is not None:
            raise
        console.print(translate_message(error.hint or "", lang), style="dim")
        return None
    task_blocks = build_task_blocks(lesson, folder, text)
    if task_blocks is not None:
        console.print(render_blocks(task_blocks, lang))
        return None
    section = build_section(lesson, Translator.load(folder), text)
    run = ModelFolder.find(folder).run
    from_run = lesson.run_blocks(run, text) if lesson.run_blocks and run.exists() else []
    console.print(render_blocks([*section.blocks, *from_run], lang))
    return section


def _save_pictures(
    console: Console, blocks: list[Block], section: OwnModelSection, folder: Path, lang: Lang
) -> None:
    from attendo.lessons.own_model import save_all_plots
    from attendo.lessons.render.svg import save_diagrams

    for path in (*save_diagrams(blocks, folder, lang), *save_all_plots(section, folder, lang)):
        console.print(str(path), style="dim", soft_wrap=True, markup=False)


def _parse_assignment(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise ConfigError(
            message("'{pair}' is not of the form name=value", pair=pair),
            hint="use a name, =, and a value",
        )
    return name.strip(), value.strip()
