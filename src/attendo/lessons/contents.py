"""The table of contents: every lesson by its number, loaded on request."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.lessons.lesson import Lesson

CHAPTERS = {
    0: "ch00_overview",
    1: "ch01_rnn_to_attention",
    2: "ch02_embeddings",
    3: "ch03_positions",
    4: "ch04_attention_by_hand",
    5: "ch05_scaling",
    6: "ch06_heads",
    7: "ch07_masks",
    8: "ch08_add_and_norm",
    9: "ch09_residuals",
    10: "ch10_feed_forward",
    11: "ch11_architecture",
    12: "ch12_softmax",
    13: "ch13_training",
    14: "ch14_decoding",
    15: "ch15_complexity",
    16: "ch16_subwords",
    17: "ch17_learning",
    18: "ch18_judging",
    19: "ch19_relatives",
    20: "ch20_numbers_to_labels",
    21: "ch21_break_it",
    22: "ch22_since_2017",
}
"""The packages of the chapters by number; each has a module `lesson` with a constant `LESSON`."""
PREREQUISITES: dict[int, tuple[int, ...]] = {
    3: (2,),
    4: (2,),
    5: (4,),
    6: (4,),
    7: (4,),
    8: (4,),
    9: (8,),
    10: (4,),
    11: (3, 6, 7, 8, 10),
    12: (11,),
    13: (12,),
    14: (12,),
    15: (1, 4),
    16: (2,),
    17: (13,),
    18: (14,),
    19: (13, 14),
    20: (13,),
    21: (13,),
    22: (9, 14),
}
"""The lessons that a lesson assumes, without those that they assume in turn."""
WORDS_PER_MINUTE = 100
"""Of a text with formulas and figures, which is read more slowly than prose."""
MINUTES_PER_QUESTION = 2
NUMBERS = tuple(CHAPTERS)


class UnknownLessonError(InputError):
    """There is no lesson of this number."""


def load_lesson(number: int) -> Lesson:
    """Return a lesson by its number."""
    if number not in NUMBERS:
        hint = message("there are lessons {numbers}", numbers=", ".join(map(str, NUMBERS)))
        raise UnknownLessonError(message("no lesson {number}", number=number), hint=hint)
    chapter = f"attendo.lessons.chapters.{CHAPTERS[number]}"
    lesson: Lesson = import_module(f"{chapter}.lesson").LESSON
    return lesson


def estimate_minutes(lesson: Lesson) -> int:
    """Return about how long a lesson takes: its text, its inputs and its questions."""
    text = Path(__file__).with_name("chapters") / CHAPTERS[lesson.number] / "text.en.md"
    num_words = len(text.read_text(encoding="utf-8").split())
    minutes = num_words / WORDS_PER_MINUTE + MINUTES_PER_QUESTION * len(lesson.questions)
    return round(minutes + len(lesson.inputs))


def load_lessons() -> list[Lesson]:
    """Return all lessons in order."""
    return [load_lesson(number) for number in NUMBERS]
