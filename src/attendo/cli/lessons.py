"""`attendo lessons`: the lessons in the terminal, in English and Korean."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from attendo.cli.localization import argument, choose_language, localized_command, option
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson


@localized_command("강의 열다섯 편으로 트랜스포머를 숫자 하나하나, 여러분의 모델까지 배웁니다.")
def lessons(
    number: Annotated[
        int | None,
        argument(
            "Number of the lesson; without it, all are listed.", "몇 번 강의인지. 주지 않으면 목록."
        ),
    ] = None,
    lang: Annotated[
        str | None,
        option(
            "Language, ko or en; by default that of the system.",
            "언어(ko, en). 없으면 ATTENDO_LANG, LANG 순.",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        option(
            "name=value: change an input of the lesson.",
            "이름=값: 강의의 입력을 바꿉니다.",
            "--set",
        ),
    ] = None,
    answers: Annotated[
        bool,
        option("Show the answers to the questions.", "문제의 답을 보여 줍니다."),
    ] = False,
    answer: Annotated[
        list[str] | None,
        option(
            "Check an answer: 1=42 answers question 1.", "답을 확인합니다. 1=42는 1번 문제의 답."
        ),
    ] = None,
    model: Annotated[
        Path | None,
        option(
            "Your own model; by default that of the quickstart.",
            "여러분의 모델. 주지 않으면 quickstart의 모델.",
        ),
    ] = None,
    text: Annotated[str | None, option("Your own sentence.", "여러분의 문장.")] = None,
    pictures: Annotated[
        Path | None,
        option(
            "Save the figures of your model to this folder.",
            "여러분의 모델을 그린 그림을 이 폴더에 둡니다.",
        ),
    ] = None,
) -> None:
    """Learn the Transformer in fifteen lessons, down to the numbers and your own model."""
    from rich.console import Console

    from attendo.lessons.contents import load_lesson, load_lessons
    from attendo.lessons.prose import Prose
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
    heading = Prose("attendo.lessons")("questions").localize(output_lang)
    console.print(f"\n[bold]{heading}[/bold]")
    console.print(render_questions(lesson, output_lang, with_answers=answers))
    _print_own_model_section(console, lesson, output_lang, model, text, pictures)


def _print_contents(console: Console, all_lessons: list[Lesson], lang: Lang) -> None:
    for lesson in all_lessons:
        console.print(f"[bold]{lesson.number:>2}  {lesson.title.localize(lang)}[/bold]")
        console.print(f"    {lesson.summary.localize(lang)}")
    end = {
        "en": "attendo lessons 4 shows one",
        "ko": "attendo lessons 4 --lang ko 처럼 하나를 엽니다",
    }
    console.print(f"\n{end[lang]}", style="dim")


def _print_inputs(console: Console, lesson: Lesson, lang: Lang) -> None:
    heading = {"en": "You can change: ", "ko": "바꿔 볼 수 있는 것: "}[lang]
    names = ", ".join(f"{item.name} ({item.label.localize(lang)})" for item in lesson.inputs)
    example = f"--set {lesson.inputs[-1].name}=..."
    console.print(f"\n{heading}{names}; {example}", style="dim", markup=False)


def _check_answers(console: Console, lesson: Lesson, answers: list[str], lang: Lang) -> None:
    verdicts = {
        "en": ("right", "not yet"),
        "ko": ("맞습니다", "아직 아닙니다"),
    }[lang]
    for pair in answers:
        question_number, value = _parse_assignment(pair)
        if not question_number.isdigit():
            raise ConfigError(
                message("'{pair}' does not name a question", pair=pair), hint="write --answer 1=42"
            )
        question = lesson.question(int(question_number))
        is_correct = question.check(value)
        verdict = verdicts[0] if is_correct else verdicts[1]
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
    from attendo.lessons.prose import Prose
    from attendo.lessons.render.terminal import render_block
    from attendo.translator import Translator

    heading = Prose("attendo.lessons")("own-model").localize(lang)
    console.print(f"\n[bold]{heading}[/bold]")
    try:
        folder = find_model_dir(model)
    except InputError:
        hint = {
            "en": "Run attendo quickstart (two minutes), or name a model with --model.",
            "ko": "attendo quickstart(2분)를 돌리거나 --model로 모델을 알려 주세요.",
        }[lang]
        console.print(hint, style="dim")
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
            message("'{pair}' is not name=value", pair=pair), hint="write a name, =, and a value"
        )
    return name.strip(), value.strip()
