"""The table of contents: every lesson by its number, loaded on request."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.lessons.lesson import Lesson

CHAPTERS = (
    "ch01_rnn_to_attention",
    "ch02_embeddings",
    "ch03_positions",
    "ch04_attention_by_hand",
    "ch05_scaling",
    "ch06_heads",
    "ch07_masks",
    "ch08_add_and_norm",
    "ch09_residuals",
    "ch10_feed_forward",
    "ch11_architecture",
    "ch12_softmax",
    "ch13_training",
    "ch14_decoding",
    "ch15_complexity",
)
"""The packages of the chapters; each has a module `lesson` with a constant `LESSON`."""
NUMBERS = tuple(range(1, len(CHAPTERS) + 1))


def load_lesson(number: int) -> Lesson:
    """Return a lesson by its number."""
    if number not in NUMBERS:
        hint = message("there are lessons {numbers}", numbers=", ".join(map(str, NUMBERS)))
        raise InputError(message("no lesson {number}", number=number), hint=hint)
    chapter = f"attendo.lessons.chapters.{CHAPTERS[number - 1]}"
    lesson: Lesson = import_module(f"{chapter}.lesson").LESSON
    return lesson


def load_lessons() -> list[Lesson]:
    """Return all lessons in order."""
    return [load_lesson(number) for number in NUMBERS]
