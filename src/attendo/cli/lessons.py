"""`attendo lessons`: fifteen lessons with computed numbers, in Korean and English."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson


def lessons(
    number: Annotated[
        int | None,
        typer.Argument(help="Lesson number; without it, the lessons are listed."),
    ] = None,
    lang: LangOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Change an input of the lesson: name=value (repeatable)."),
    ] = None,
    answers: Annotated[
        bool,
        typer.Option(help="Show the answers to the questions."),
    ] = False,
    answer: Annotated[
        list[str] | None,
        typer.Option(help="Check an answer, e.g. 1=42 for question 1 (repeatable)."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(help="Your own model; by default the quickstart's."),
    ] = None,
    text: Annotated[str | None, typer.Option(help="Your own sentence.")] = None,
    pictures: Annotated[
        Path | None,
        typer.Option(help="Save the pictures of your model to this folder."),
    ] = None,
) -> None:
    """Learn the Transformer in fifteen lessons, down to the numbers and your own model."""
    from rich.console import Console

    from attendo.lessons.contents import load_lesson, load_lessons
    from attendo.lessons.render.terminal import render_lesson, render_questions

    output_lang = choose_language(lang)
    console = Console(highlight=False)
    if number is None:
        _print_contents(console, load_lessons(), output_lang)
        return
    lesson = load_lesson(number)
    if answer:
        _check_answers(console, lesson, answer, output_lang)
        return
    input_values = dict(_parse_assignment(pair) for pair in settings or [])
    console.print(render_lesson(lesson, lesson.blocks(input_values), output_lang), soft_wrap=False)
    if lesson.inputs:
        _print_inputs(console, lesson, output_lang)
    heading = translate_message("Questions", output_lang)
    console.print(f"\n[bold]{heading}[/bold]")
    console.print(render_questions(lesson, output_lang, with_answers=answers))
    _print_own_model_section(console, lesson, output_lang, model, text, pictures)


def _print_contents(console: Console, all_lessons: list[Lesson], lang: Lang) -> None:
    for lesson in all_lessons:
        console.print(f"[bold]{lesson.number:>2}  {lesson.title.localize(lang)}[/bold]")
        console.print(f"    {lesson.summary.localize(lang)}")
    usage = translate_message("Open a lesson, e.g.: attendo lessons 4", lang)
    console.print(f"\n{usage}", style="dim")


def _print_inputs(console: Console, lesson: Lesson, lang: Lang) -> None:
    names = ", ".join(f"{item.name} ({item.label.localize(lang)})" for item in lesson.inputs)
    example = f"--set {lesson.inputs[-1].name}=..."
    text = message("You can change: {names}; {example}", names=names, example=example)
    console.print(f"\n{translate_message(text, lang)}", style="dim", markup=False)


def _check_answers(console: Console, lesson: Lesson, answers: list[str], lang: Lang) -> None:
    for pair in answers:
        question_number, value = _parse_assignment(pair)
        if not question_number.isdigit():
            raise ConfigError(
                message("'{pair}' does not name a question", pair=pair),
                hint="use e.g. --answer 1=42",
            )
        question = lesson.question(int(question_number))
        is_correct = question.check(value)
        verdict = translate_message("right" if is_correct else "not yet", lang)
        why = f" {question.explanation.localize(lang)}" if is_correct else ""
        console.print(f"{question_number}) {verdict}.{why}", markup=False)


def _print_own_model_section(
    console: Console,
    lesson: Lesson,
    lang: Lang,
    model: Path | None,
    text: str | None,
    pictures: Path | None,
) -> None:
    from attendo.core.errors import InputError
    from attendo.lessons.own_model import build_section, find_model_dir, save_all_plots
    from attendo.lessons.render.terminal import render_block
    from attendo.translator import Translator

    console.print(f"\n[bold]{translate_message('On your own model', lang)}[/bold]")
    try:
        folder = find_model_dir(model)
    except InputError as error:
        console.print(translate_message(error.hint or "", lang), style="dim")
        return
    section = build_section(lesson, Translator.load(folder), text)
    for block in section.blocks:
        console.print(render_block(block, lang))
    if pictures is not None:
        for path in save_all_plots(section, pictures, lang):
            console.print(str(path), style="dim", soft_wrap=True, markup=False)


def _parse_assignment(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise ConfigError(
            message("'{pair}' is not of the form name=value", pair=pair),
            hint="use a name, =, and a value",
        )
    return name.strip(), value.strip()
