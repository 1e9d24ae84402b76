"""The lessons over HTTP: computed anew for what the learner changes, answers checked by computing.

A lesson takes no model: it is computed in one thread of its own, with few requests waiting, so that
learners do not slow down translations. The last part, on the learner's own model, runs in that
model's thread.
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
from attendo.lessons.blocks import Drawing
from attendo.lessons.contents import find_lesson, list_lessons
from attendo.serving.answers import join
from attendo.serving.batcher import BusyError
from attendo.serving.schemas import Choice, Problem, Text, examples
from attendo.serving.strict import StrictRoute
from attendo.serving.v1 import check_texts, find_served

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.lessons.blocks import Lang
    from attendo.translator import Translator

MOST_WAITING = 32
MOST_INPUTS = 16
LANGUAGE = Literal["en", "ko"]

router = APIRouter(
    prefix="/v1/lessons",
    route_class=StrictRoute,
    tags=["lessons"],
    responses={"4XX": {"model": Problem}, "5XX": {"model": Problem}},
)


class LessonBody(Choice):
    """Which language, and what the learner has changed."""

    model_config = examples(lang="ko", inputs={"scale": False})

    lang: LANGUAGE = "en"
    inputs: Annotated[dict[str, Any], Field(max_length=MOST_INPUTS, default_factory=dict)]


class AnswerBody(Choice):
    """An answer to a question, counted from 1."""

    model_config = examples(lang="en", question=1, answer="4")

    lang: LANGUAGE = "en"
    question: Annotated[int, Field(ge=1, le=100)]
    answer: Annotated[str, Field(max_length=200)]


class OwnBody(Choice):
    """The learner's own sentence and model; the first model, and a short sentence, if none."""

    model_config = examples(lang="ko", text="나는 학생이다.")

    lang: LANGUAGE = "en"
    text: Text | None = None


class Desk:
    """One thread that computes lessons, and a bounded number of learners who wait for it."""

    def __init__(self) -> None:
        self.num_waiting = 0
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="lessons")

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run some work after what came before it; refuse when too many wait."""
        if self.num_waiting >= MOST_WAITING:
            raise BusyError("too many lessons are being computed")
        self.num_waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        finally:
            self.num_waiting -= 1


desk = Desk()


@router.get("", summary="The lessons")
async def list_all(lang: LANGUAGE = "en") -> dict[str, Any]:
    """Give number, title and summary of each."""

    def tell() -> list[dict[str, Any]]:
        return [
            {
                "number": lesson.number,
                "title": lesson.title.say(lang),
                "summary": lesson.summary.say(lang),
            }
            for lesson in list_lessons()
        ]

    return {"lessons": await desk.run(tell)}


@router.post("/{number}", summary="A lesson, computed for what was changed")
async def tell_lesson(number: int, body: LessonBody) -> dict[str, Any]:
    """Give its blocks: words, matrices, tables, charts, things to step through."""
    told: dict[str, Any] = await desk.run(
        lambda: find_lesson(number).to_dict(body.lang, body.inputs)
    )
    return told


@router.post("/{number}/answer", summary="Check an answer")
async def check_answer(number: int, body: AnswerBody) -> dict[str, Any]:
    """Tell whether an answer is right; the reason comes with the right one."""

    def check() -> dict[str, Any]:
        question = find_lesson(number).question(body.question)
        is_right = question.check(body.answer)
        return {"is_right": is_right, "why": question.why.say(body.lang) if is_right else None}

    checked: dict[str, Any] = await desk.run(check)
    return checked


@router.post("/{number}/own", summary="The same picture of your own model")
async def show_own(number: int, body: OwnBody, request: Request) -> dict[str, Any]:
    """Give the blocks of the lesson's last part; pictures come as data addresses."""
    service, served = find_served(request, body, tasks=("translation",))
    if body.text:
        check_texts([body.text], service.config)
    blocks: list[dict[str, Any]] = await service.call(
        served, served.call_own, tell_own, number, body.text, body.lang
    )
    return {"model": served.name, "blocks": blocks}


def tell_own(
    translator: Translator, number: int, text: str | None, lang: Lang
) -> list[dict[str, Any]]:
    """Compute the last part, its pictures drawn."""
    part = own_model.look(find_lesson(number), translator, text)
    told = []
    for block in part.blocks:
        shown = block.to_dict(lang)
        if isinstance(block, Drawing):
            try:
                shown["image"] = _as_address(own_model.render(part, block, lang))
            except MissingExtraError as error:
                shown["missing"] = join([error.reason, error.remedy or ""], lang)
        told.append(shown)
    return told


def _as_address(picture: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
