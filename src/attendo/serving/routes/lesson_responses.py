"""Responses of the lessons."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class LessonTitle(BaseModel):
    """What a lesson is about."""

    number: int
    title: str
    summary: str


class LessonSummary(LessonTitle):
    """A lesson in the list."""

    minutes: int
    """About how long it takes."""
    prerequisites: list[int]
    """The lessons that it assumes, without those that they assume in turn."""


class TermResponse(BaseModel):
    """A term of the glossary, with the lesson that explains it."""

    name: str
    other: str
    """The term in the other language."""
    lesson: int
    meaning: str


class LessonsResponse(BaseModel):
    """The lessons, in order, the glossary, and the map of all of them."""

    lessons: list[LessonSummary]
    terms: list[TermResponse]
    map: dict[str, Any]
    """A block of the kind `machine`."""


class CodeResponse(BaseModel):
    """Where the code of a lesson is."""

    file: str
    line: int


class InputResponse(BaseModel):
    """A value that the learner may change; the other fields depend on the kind."""

    model_config = ConfigDict(extra="allow")

    kind: str
    name: str
    label: str
    default: Any


class BlockResponse(BaseModel):
    """A paragraph, formula, matrix, table, chart or view; the other fields depend on the kind."""

    model_config = ConfigDict(extra="allow")

    kind: str


class QuestionResponse(BaseModel):
    """A question; choices are pairs of a key and a label."""

    prompt: str
    choices: list[tuple[str, str]]


class LessonResponse(LessonTitle):
    """A lesson, computed for the given inputs."""

    paper: str
    """The section of the paper."""
    code: list[CodeResponse]
    inputs: list[InputResponse]
    blocks: list[BlockResponse]
    questions: list[QuestionResponse]


class AnswerResponse(BaseModel):
    """Whether an answer is right; a right one, or a request to reveal it, gets an explanation."""

    is_right: bool
    why: str | None
    hint: Literal["higher", "lower", "notNumber"] | None
    """Where the right number is from a wrong one; null for a choice."""
    hints: list[str]
    """Hints after a wrong answer, from the vaguest to the clearest."""
    answer: str | None
    """The solution, where it is explained."""


class OwnModelResponse(BaseModel):
    """The section on the learner's own model; `figure` of a block has the numbers to draw."""

    model: str
    blocks: list[BlockResponse]
    record: dict[str, Any] | None
    """The record of the sentence, if a figure shows a part of it."""


class MachineResponse(BaseModel):
    """The tensors of one forward pass: see `attendo.inspection.stage_values`."""

    model_config = ConfigDict(extra="allow")

    model: str | None
    """The served model, or null for the built-in example."""
    text: str
    src: list[str]
    tgt: list[str]
    start: str
    layer: int
    num_layers: int
    num_decoder_layers: int
    d_model: int
    stages: dict[str, Any]
    attention: dict[str, Any]
    steps: list[Any]
