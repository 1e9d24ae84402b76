"""`attendo lessons`: the worked examples, in Korean and English."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

from attendo.cli.speech import argument, choose_language, option, speaking
from attendo.core.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson


@speaking("강의 열다섯 편으로 트랜스포머를 숫자 하나하나, 여러분의 모델까지 배웁니다.")
def lessons(
    number: Annotated[
        int | None,
        argument("Which lesson; the list when not given.", "몇 번 강의인지. 주지 않으면 목록."),
    ] = None,
    lang: Annotated[
        str | None,
        option(
            "ko or en; as the system speaks when not given.",
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
        option("Check an answer: 1=42 is question 1.", "답을 확인합니다. 1=42는 1번 문제의 답."),
    ] = None,
    model: Annotated[
        Path | None,
        option(
            "Your own model; the quickstart's when not given.",
            "여러분의 모델. 주지 않으면 quickstart의 모델.",
        ),
    ] = None,
    text: Annotated[str | None, option("Your own sentence.", "여러분의 문장.")] = None,
    pictures: Annotated[
        Path | None,
        option(
            "Draw the pictures of your model into this folder.",
            "여러분의 모델을 그린 그림을 이 폴더에 둡니다.",
        ),
    ] = None,
) -> None:
    """Learn the Transformer in fifteen lessons, down to the numbers and your own model."""
    from rich.console import Console

    from attendo.lessons.contents import find_lesson, list_lessons
    from attendo.lessons.terminal import show_lesson, show_questions

    chosen = choose_language(lang)
    console = Console(highlight=False)
    if number is None:
        _list(console, list_lessons(), chosen)
        return
    lesson = find_lesson(number)
    if answer:
        _check(console, lesson, answer, chosen)
        return
    given = dict(_split(pair) for pair in settings or [])
    console.print(show_lesson(lesson, lesson.blocks(given), chosen), soft_wrap=False)
    if lesson.inputs:
        _tell_inputs(console, lesson, chosen)
    heading = {"en": "Questions", "ko": "문제"}[chosen]
    console.print(f"\n[bold]{heading}[/bold]")
    console.print(show_questions(lesson, chosen, with_answers=answers))
    _show_own(console, lesson, chosen, model, text, pictures)


def _list(console: Console, all_lessons: list[Lesson], lang: Lang) -> None:
    for lesson in all_lessons:
        console.print(f"[bold]{lesson.number:>2}  {lesson.title.say(lang)}[/bold]")
        console.print(f"    {lesson.summary.say(lang)}")
    end = {
        "en": "attendo lessons 4 shows one",
        "ko": "attendo lessons 4 --lang ko 처럼 하나를 엽니다",
    }
    console.print(f"\n{end[lang]}", style="dim")


def _tell_inputs(console: Console, lesson: Lesson, lang: Lang) -> None:
    head = {"en": "You can change: ", "ko": "바꿔 볼 수 있는 것: "}[lang]
    names = ", ".join(f"{one.name} ({one.label.say(lang)})" for one in lesson.inputs)
    example = f"--set {lesson.inputs[-1].name}=..."
    console.print(f"\n{head}{names}; {example}", style="dim", markup=False)


def _check(console: Console, lesson: Lesson, given: list[str], lang: Lang) -> None:
    words = {
        "en": ("right", "not yet"),
        "ko": ("맞습니다", "아직 아닙니다"),
    }[lang]
    for pair in given:
        place, value = _split(pair)
        if not place.isdigit():
            raise ConfigError(f"'{pair}' names no question", remedy="write --answer 1=42")
        question = lesson.question(int(place))
        is_right = question.check(value)
        verdict = words[0] if is_right else words[1]
        why = f" {question.why.say(lang)}" if is_right else ""
        console.print(f"{place}) {verdict}.{why}", markup=False)


def _show_own(
    console: Console,
    lesson: Lesson,
    lang: Lang,
    model: Path | None,
    text: str | None,
    pictures: Path | None,
) -> None:
    from attendo.core.errors import InputError
    from attendo.lessons.own_model import draw_all, find_model, look
    from attendo.lessons.terminal import show
    from attendo.translator import Translator

    heading = {"en": "On your own model", "ko": "여러분의 모델에서"}[lang]
    console.print(f"\n[bold]{heading}[/bold]")
    try:
        folder = find_model(model)
    except InputError:
        hint = {
            "en": "Run attendo quickstart (two minutes), or name a model with --model.",
            "ko": "attendo quickstart(2분)를 돌리거나 --model로 모델을 알려 주세요.",
        }[lang]
        console.print(hint, style="dim")
        return
    part = look(lesson, Translator.load(folder), text)
    for block in part.blocks:
        console.print(show(block, lang))
    if pictures is not None:
        for path in draw_all(part, pictures, lang):
            console.print(str(path), style="dim", soft_wrap=True, markup=False)


def _split(pair: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals:
        raise ConfigError(f"'{pair}' is no name=value", remedy="write a name, =, and a value")
    return name.strip(), value.strip()
