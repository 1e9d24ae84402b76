"""A lesson: its topic, its inputs, its blocks and its questions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.lessons.inputs import parse_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attendo.lessons.blocks import Block, Lang, LocalizedText
    from attendo.lessons.inputs import Input
    from attendo.translator import Translator


class CodeReference(NamedTuple):
    """The code that a lesson explains, by module and qualified name."""

    module: str
    name: str

    def locate(self) -> tuple[str, int]:
        """Return its file below the repository and its line."""
        target: Any = import_module(self.module)
        for part in self.name.split("."):
            target = getattr(target, part)
        _, line = inspect.getsourcelines(target)
        return f"src/{self.module.replace('.', '/')}.py", line


@dataclass(frozen=True)
class Question:
    """A question to the learner, with a computed answer."""

    prompt: LocalizedText
    answer: Callable[[], float | str]
    explanation: LocalizedText
    tolerance: float = 0.0
    """How far a numeric answer may be off."""
    choices: tuple[tuple[str, LocalizedText | str], ...] = ()
    """Keys and labels of a multiple-choice question."""

    def check(self, response: str) -> bool:
        """Return whether an answer is right.

        A choice may be given by its key, its label in either language, or its number from 1.
        """
        correct = self.answer()
        if isinstance(correct, str):
            return self._match_choice(response.strip()) == correct
        number = parse_number(response)
        return number is not None and abs(number - correct) <= self.tolerance

    def _match_choice(self, response: str) -> str | None:
        for number, (key, label) in enumerate(self.choices, 1):
            names = (label,) if isinstance(label, str) else (label.en, label.ko)
            if response.casefold() in {
                key.casefold(),
                str(number),
                *(one.casefold() for one in names),
            }:
                return key
        return None


def parse_number(text: str) -> float | None:
    """Return a number as people write it: 1,000, 1/3, or with a typographic minus.

    >>> parse_number("1/4"), parse_number("−1.5"), parse_number("a third")
    (0.25, -1.5, None)
    """
    cleaned = text.strip().replace(",", "").replace("−", "-")
    numerator, slash, denominator = cleaned.partition("/")
    try:
        return float(numerator) / float(denominator) if slash else float(cleaned)
    except (ValueError, ZeroDivisionError):
        return None


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """A lesson.

    `build_blocks` takes the values of the inputs by name and computes every number with the code of
    the model. `own_model_blocks` takes a translator and a sentence of the learner.
    """

    number: int
    title: LocalizedText
    summary: LocalizedText
    """What the learner understands afterwards, in one sentence."""
    paper: str
    """The section of the paper, such as "3.2.1"."""
    code: tuple[CodeReference, ...]
    build_blocks: Callable[..., list[Block]]
    questions: tuple[Question, ...]
    own_model_blocks: Callable[[Translator, str], list[Block]]
    inputs: tuple[Input, ...] = ()

    def blocks(self, values: Mapping[str, Any] | None = None) -> list[Block]:
        """Return the blocks for the given inputs; the others keep their defaults."""
        checked = parse_values(self.inputs, values or {})
        with torch.random.fork_rng(devices=[]):  # keeps the random state of the caller
            return self.build_blocks(**checked)

    def question(self, number: int) -> Question:
        """Return a question, counted from 1."""
        if not 1 <= number <= len(self.questions):
            reason = message(
                "lesson {number} has no question {question}", number=self.number, question=number
            )
            raise InputError(
                reason, hint=message("it has questions 1 to {count}", count=len(self.questions))
            )
        return self.questions[number - 1]

    def to_dict(self, lang: Lang, values: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return the lesson as JSON in one language, without its own-model section."""
        return {
            "number": self.number,
            "title": self.title.localize(lang),
            "summary": self.summary.localize(lang),
            "paper": self.paper,
            "code": [dict(zip(("file", "line"), one.locate(), strict=True)) for one in self.code],
            "inputs": [one.to_dict(lang) for one in self.inputs],
            "blocks": [block.to_dict(lang) for block in self.blocks(values)],
            "questions": [
                {
                    "prompt": one.prompt.localize(lang),
                    "choices": [
                        [key, label if isinstance(label, str) else label.localize(lang)]
                        for key, label in one.choices
                    ],
                }
                for one in self.questions
            ],
        }
