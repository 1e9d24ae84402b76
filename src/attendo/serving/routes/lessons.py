"""Routes of the lessons, computed for the inputs of the learner.

Lessons run in a thread of their own with a short queue, so that they do not slow down translations.
The section on the learner's own model runs in the thread of that model.
"""

from __future__ import annotations

import asyncio
import base64
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from attendo.core.errors import MissingExtraError
from attendo.lessons import own_model
from attendo.lessons.blocks import ModelPlot
from attendo.lessons.contents import load_lesson, load_lessons
from attendo.serving.batcher import QueueFullError
from attendo.serving.errors import format_error
from attendo.serving.limits import check_texts
from attendo.serving.routes.v1 import find_model
from attendo.serving.routes.v1_schemas import ErrorBody, ModelSelector, Text, config_with_example
from attendo.serving.strict_json import StrictRoute

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.lessons.blocks import Lang
    from attendo.translator import Translator

MAX_WAITING = 32
MAX_INPUTS = 16
Language = Literal["en", "ko"]

router = APIRouter(
    prefix="/v1/lessons",
    route_class=StrictRoute,
    tags=["lessons"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


class LessonRequest(ModelSelector):
    """The language, and the inputs that the learner has changed."""

    model_config = config_with_example(lang="ko", inputs={"scale": False})

    lang: Language = "en"
    inputs: Annotated[dict[str, Any], Field(max_length=MAX_INPUTS, default_factory=dict)]


class AnswerRequest(ModelSelector):
    """An answer to a question, counted from 1."""

    model_config = config_with_example(lang="en", question=1, answer="4")

    lang: Language = "en"
    question: Annotated[int, Field(ge=1, le=100)]
    answer: Annotated[str, Field(max_length=200)]


class OwnModelRequest(ModelSelector):
    """A sentence for the learner's own model; by default a short one."""

    model_config = config_with_example(lang="ko", text="나는 학생이다.")

    lang: Language = "en"
    text: Text | None = None


class LessonExecutor:
    """One thread that computes lessons, with a bounded queue."""

    def __init__(self) -> None:
        self.num_waiting = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lessons")

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run a function in queue order; raise `QueueFullError` if the queue is full."""
        if self.num_waiting >= MAX_WAITING:
            raise QueueFullError("too many lessons in the queue")
        self.num_waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self.num_waiting -= 1


executor = LessonExecutor()


@router.get("", summary="The lessons")
async def list_lesson_summaries(lang: Language = "en") -> dict[str, Any]:
    """Return number, title and summary of each lesson."""

    def summarize() -> list[dict[str, Any]]:
        return [
            {
                "number": lesson.number,
                "title": lesson.title.localize(lang),
                "summary": lesson.summary.localize(lang),
            }
            for lesson in load_lessons()
        ]

    return {"lessons": await executor.run(summarize)}


@router.post("/{number}", summary="A lesson, computed for the given inputs")
async def get_lesson(number: int, body: LessonRequest) -> dict[str, Any]:
    """Return its blocks: paragraphs, matrices, tables, charts, step-by-step views."""
    lesson: dict[str, Any] = await executor.run(
        lambda: load_lesson(number).to_dict(body.lang, body.inputs)
    )
    return lesson


@router.post("/{number}/answer", summary="Check an answer")
async def check_answer(number: int, body: AnswerRequest) -> dict[str, Any]:
    """Return whether an answer is right; a right one comes with its explanation."""

    def check() -> dict[str, Any]:
        question = load_lesson(number).question(body.question)
        is_correct = question.check(body.answer)
        return {
            "is_right": is_correct,
            "why": question.explanation.localize(body.lang) if is_correct else None,
        }

    result: dict[str, Any] = await executor.run(check)
    return result


@router.post("/{number}/own", summary="The lesson's section on your own model")
async def get_own_model_section(
    number: int, body: OwnModelRequest, request: Request
) -> dict[str, Any]:
    """Return the blocks of the section on your own model, with pictures as data URLs."""
    service, served = find_model(request, body, tasks=("translation",))
    if body.text:
        check_texts([body.text], service.config)
    blocks: list[dict[str, Any]] = await service.call(
        served, served.call_native, own_model_section, number, body.text, body.lang
    )
    return {"model": served.name, "blocks": blocks}


def own_model_section(
    translator: Translator, number: int, text: str | None, lang: Lang
) -> list[dict[str, Any]]:
    """Compute the section on a model, with its pictures."""
    section = own_model.build_section(load_lesson(number), translator, text)
    blocks = []
    for block in section.blocks:
        block_json = block.to_dict(lang)
        if isinstance(block, ModelPlot):
            try:
                block_json["image"] = _to_data_url(own_model.render_plot(section, block, lang))
            except MissingExtraError as error:
                block_json["missing"] = format_error(error.reason, error.hint, lang)
        blocks.append(block_json)
    return blocks


def _to_data_url(image: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(image).decode('ascii')}"
