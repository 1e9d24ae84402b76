"""The table of contents: every lesson by its number, loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from attendo.lessons.lesson import Lesson

MODULES = {
    4: "attention_by_hand",
}
"""Files of the lessons; each holds its `LESSON`."""


def find_lesson(number: int) -> Lesson:
    """Load a lesson."""
    if number not in MODULES:
        remedy = f"there are lessons {', '.join(map(str, sorted(MODULES)))}"
        raise InputError(f"no lesson {number}", remedy=remedy)
    lesson: Lesson = import_module(f"attendo.lessons.{MODULES[number]}").LESSON
    return lesson


def list_lessons() -> list[Lesson]:
    """Load all, in order."""
    return [find_lesson(number) for number in sorted(MODULES)]
