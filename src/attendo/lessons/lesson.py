"""A lesson: its topic, its inputs, its blocks and its questions."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.lessons.answers import Choice, match_choice, parse_number
from attendo.lessons.diagrams.by_lesson import insert_diagram
from attendo.lessons.excerpts.by_lesson import build_code
from attendo.lessons.inputs import parse_values

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from attendo.core.run_folder import RunFolder
    from attendo.lessons.blocks import Block, Lang, LocalizedText
    from attendo.lessons.inputs import Input


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
    hints: tuple[LocalizedText, ...] = ()
    """Hints to show one after the other, from the vaguest to the clearest."""
    is_ratio: bool = False
    """Whether the reciprocal of the answer is right, too: "2 times" and "a half"."""

    def check(self, response: str) -> bool:
        """Return whether an answer is right.

        A choice may be given by its letter, its number from 1, or its label in either language.
        """
        correct = self.answer()
        if isinstance(correct, str):
            return self._match_choice(response) == correct
        number = parse_number(response)
        if number is None:
            return False
        answers = (number, 1 / number) if self.is_ratio and number else (number,)
        return any(abs(one - correct) <= self.tolerance for one in answers)

    def hint(self, response: str) -> Literal["higher", "lower", "notNumber"] | None:
        """Return where the right answer is from a wrong one; None for a choice."""
        correct = self.answer()
        if isinstance(correct, str):
            return None
        number = parse_number(response)
        if number is None:
            return "notNumber"
        return "higher" if number < correct else "lower"

    def solution(self) -> str:
        """Return the right answer as a learner would write it, or the key of the right choice."""
        correct = self.answer()
        return correct if isinstance(correct, str) else f"{correct:.6g}"

    def _match_choice(self, response: str) -> str | None:
        choices = [
            Choice(key, (label,) if isinstance(label, str) else (label.en, label.ko))
            for key, label in self.choices
        ]
        return match_choice(response, choices)


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
    own_model_blocks: Callable[..., list[Block]]
    inputs: tuple[Input, ...] = ()
    takes_reference: bool = False
    """Whether the learner's sentence may end in a reference, which `own_model_blocks` gets, too."""
    task_blocks: Mapping[str, Callable[[Any, str | None], list[Block]]] = field(
        default_factory=dict
    )
    """The section on the learner's own model for models that do not translate, by their task. The
    functions take a `MaskFiller` ("mask"), `TextGenerator` ("language") or `Forecaster` ("series"),
    and a text."""
    run_blocks: Callable[[RunFolder, str | None], list[Block]] | None = None
    """Blocks on the run that made the learner's model; they take the run and a sentence."""

    def blocks(self, values: Mapping[str, Any] | None = None) -> list[Block]:
        """Return the blocks for the given inputs; the others keep their defaults."""
        checked = parse_values(self.inputs, values or {})
        with torch.random.fork_rng(devices=[]):  # keeps the random state of the caller
            blocks = self.build_blocks(**checked)
            blocks = insert_diagram(self.number, blocks, checked)
        return [*blocks, *build_code(self.number)]

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
