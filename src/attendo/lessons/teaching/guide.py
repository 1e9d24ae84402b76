"""The page for teachers, written from the lessons: their questions and answers are computed."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attendo.lessons.contents import NUMBERS, estimate_minutes, load_lesson
from attendo.lessons.prose import Prose
from attendo.lessons.render.markdown import render_markup, write_questions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.lessons.blocks import Lang
    from attendo.lessons.lesson import Lesson

prose = Prose(__package__)

SESSIONS = (
    (0, 1),
    (2, 3),
    (4, 5),
    (6, 7),
    (8, 9),
    (10, 11),
    (12, 13),
    (14, 15),
    (16, 17),
    (18, 19),
    (20, 21),
    (22,),
)
"""The lessons of each session; numbers without a lesson are left out."""
SCHEDULE = {"recall": 10, "why": 10, "together": 25, "pairs": 25, "own": 10, "questions": 10}
"""The parts of a session of 90 minutes, and their minutes."""
SETTINGS = {
    1: "keep=0.95",
    2: "d_model=256",
    3: "kind=learned",
    4: "scale=false",
    5: "d_k=1024",
    6: "sharpness=40",
    7: "look_ahead=true",
    8: "residual=false",
    9: "num_blocks=5",
    10: "order=231",
    11: "num_layers=12",
    12: "temperature=0.5",
    13: "steps=40",
    14: "beam_size=1",
    15: "n=1000",
    16: "new_word=newer",
    17: "rate=0.6",
    18: "hypothesis=the prince rescued the princess from an old tower",
    19: "number=7",
    20: "warmer=-2",
    22: "context=32768",
}
"""The input of each lesson that its exercise changes."""


def write_teaching_page(lang: Lang) -> str:
    """Return the page for teachers in one language."""
    parts = [
        f"# {prose('title').localize(lang)}",
        *(render_markup(prose(name).localize(lang)) for name in ("introduction", "plan")),
        f"## {prose('before').localize(lang)}",
        *(render_markup(prose(name).localize(lang)) for name in ("one-server", "every-machine")),
        f"## {prose('schedule').localize(lang)}",
        _write_schedule(lang),
        render_markup(prose("after").localize(lang)),
    ]
    for number, lessons in enumerate(_sessions(), 1):
        parts.append(f"## {prose('session', number=number).localize(lang)}")
        for lesson in lessons:
            parts += _write_lesson(lesson, lang)
    return "\n\n".join([*parts, f"## {prose('project').localize(lang)}", *_write_project(lang)])


def exercise_command(number: int, lang: Lang) -> str:
    """Return the command of the exercise of a lesson."""
    setting = f" --set {shlex.quote(SETTINGS[number])}" if number in SETTINGS else ""
    return f"attendo lessons {number}{setting}{' --lang ko' if lang == 'ko' else ''}"


def _sessions() -> Iterator[list[Lesson]]:
    for numbers in SESSIONS:
        lessons = [load_lesson(number) for number in numbers if number in NUMBERS]
        if lessons:
            yield lessons


def _write_schedule(lang: Lang) -> str:
    header = (prose("minutes").localize(lang), prose("activity").localize(lang))
    rows = [(str(minutes), prose(name).localize(lang)) for name, minutes in SCHEDULE.items()]
    lines = [header, ("--:", ":--"), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _write_lesson(lesson: Lesson, lang: Lang) -> list[str]:
    number = lesson.number
    title = f"[{number}. {lesson.title.localize(lang)}](lesson-{number:02d}.md)"
    reading = prose("reading", minutes=estimate_minutes(lesson)).localize(lang)
    exercises = [
        f"- <strong>{prose(kind).localize(lang)}</strong>: "
        f"{render_markup(prose(f'{kind}-{number}').localize(lang))}"
        for kind in ("pencil", "predict")
    ]
    if number in SETTINGS:
        exercises[-1] += f" <code>{exercise_command(number, lang)}</code>"
    return [f"### {title}", reading, "\n".join(exercises), *write_questions(lesson, lang)]


def _write_project(lang: Lang) -> tuple[str, str]:
    text = render_markup(prose("project-task").localize(lang))
    return text, render_markup(prose("project-criteria").localize(lang)) + "\n"
