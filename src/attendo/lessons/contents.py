"""The table of contents: every lesson by its number, loaded when it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.lessons.lesson import Lesson

MODULES = {
    1: "from_rnn_to_attention",
    2: "words_to_vectors",
    3: "positions",
    4: "attention_by_hand",
    5: "why_scale",
    6: "many_heads",
    7: "masks",
    8: "add_and_norm",
    9: "residual_gradients",
    10: "feed_forward",
    11: "the_whole_machine",
    12: "from_vector_to_word",
    13: "learning",
    14: "speaking",
    15: "why_self_attention",
}
"""Files of the lessons; each holds its `LESSON`."""


def load_lesson(number: int) -> Lesson:
    """Load a lesson."""
    if number not in MODULES:
        hint = message("there are lessons {numbers}", numbers=", ".join(map(str, sorted(MODULES))))
        raise InputError(message("no lesson {number}", number=number), hint=hint)
    lesson: Lesson = import_module(f"attendo.lessons.{MODULES[number]}").LESSON
    return lesson


def load_lessons() -> list[Lesson]:
    """Load all, in order."""
    return [load_lesson(number) for number in sorted(MODULES)]
