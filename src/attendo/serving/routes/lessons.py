"""Routes of the lessons, computed for the inputs of the learner.

Lessons run in a thread of their own, with a short queue that is shared by the clients.
The section on the learner's own model runs in the thread of that model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import Field

from attendo.lessons import own_model
from attendo.lessons.blocks import ModelPlot
from attendo.lessons.contents import PREREQUISITES, estimate_minutes, load_lesson, load_lessons
from attendo.lessons.diagrams.machine import draw_machine
from attendo.lessons.glossary import other_language, sorted_terms
from attendo.lessons.machine_values import model_values, tiny_values
from attendo.serving.limits import check_texts
from attendo.serving.routes import lesson_responses as responses
from attendo.serving.routes.v1 import find_model
from attendo.serving.routes.v1_schemas import ErrorBody, ModelSelector, Text, config_with_example
from attendo.serving.strict_json import StrictRoute
from attendo.tasks.language_model.generator import TextGenerator
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.lessons.blocks import Lang
    from attendo.serving.model_registry import ModelRegistry
    from attendo.serving.served_model import ModelHandle
    from attendo.serving.service import Service
    from attendo.tasks.forecasting.forecaster import Forecaster

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

    model_config = config_with_example(lang="en", inputs={"scale": False})

    lang: Language = "en"
    inputs: Annotated[dict[str, Any], Field(max_length=MAX_INPUTS, default_factory=dict)]


class AnswerRequest(ModelSelector):
    """An answer to a question, counted from 1."""

    model_config = config_with_example(lang="en", question=1, answer="4")

    lang: Language = "en"
    question: Annotated[int, Field(ge=1, le=100)]
    answer: Annotated[str, Field(max_length=200)]
    reveal: bool = False
    """Return the right answer and its explanation, also after a wrong answer."""


class OwnModelRequest(ModelSelector):
    """A sentence for the learner's own model; by default a short one."""

    model_config = config_with_example(lang="ko", text="나는 학생이다.")

    lang: Language = "en"
    text: Text | None = None


class MachineRequest(ModelSelector):
    """A sentence for the drawing of the whole machine; by default a short one."""

    model_config = config_with_example(text="나는 학생이다.", layer=1)

    text: Text | None = None
    layer: Annotated[int | None, Field(ge=1, le=1000)] = None
    """The layer of encoder and decoder whose numbers are returned, from 1; by default the last."""
    example: bool = False
    """Return the numbers of a tiny built-in model instead of those of a served one."""


@router.get("", summary="The lessons", responses={200: {"model": responses.LessonsResponse}})
async def list_lesson_summaries(request: Request, lang: Language = "en") -> dict[str, Any]:
    """Return what the list of lessons shows, the glossary and the map."""

    def summarize() -> dict[str, Any]:
        lessons = [
            {
                "number": lesson.number,
                "title": lesson.title.localize(lang),
                "summary": lesson.summary.localize(lang),
                "minutes": estimate_minutes(lesson),
                "prerequisites": list(PREREQUISITES.get(lesson.number, ())),
            }
            for lesson in load_lessons()
        ]
        drawing = draw_machine().to_dict(lang)
        return {"lessons": lessons, "terms": _terms(lang), "map": drawing}

    return await run_lesson(request, summarize)


async def run_lesson(request: Request, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run a function in the thread of the lessons, in turns of the clients."""
    service: Service = request.app.state.service
    return await service.call_aside("lessons", work)


def _terms(lang: Lang) -> list[dict[str, Any]]:
    other = other_language(lang)
    return [
        {
            "name": term.name.localize(lang),
            "other": term.name.localize(other),
            "lesson": term.lesson,
            "meaning": term.meaning.localize(lang),
        }
        for term in sorted_terms(lang)
    ]


@router.post(
    "/machine",
    summary="The numbers of the drawing of the whole machine",
    responses={200: {"model": responses.MachineResponse}},
)
async def get_machine_values(body: MachineRequest, request: Request) -> dict[str, Any]:
    """Return every tensor of one forward pass: of a served Transformer, or of a tiny example."""
    if body.example:
        sentence = body.text or ""
        example = await run_lesson(request, lambda: tiny_values(sentence))
        return {"model": None, **example}
    texts = [body.text] if body.text else []
    service, served, _ = await find_model(request, body, texts, tasks=("translation",))
    if body.text:
        check_texts([body.text], service.config)

    def compute(translator: Translator, text: str | None) -> dict[str, Any]:
        return model_values(translator, text, layer=body.layer)

    values: dict[str, Any] = await service.call(served, served.call_native, compute, body.text)
    return {"model": served.name, **values}


@router.post(
    "/{number}",
    summary="A lesson, computed for the given inputs",
    responses={200: {"model": responses.LessonResponse}},
)
async def get_lesson(number: int, body: LessonRequest, request: Request) -> dict[str, Any]:
    """Return its blocks: paragraphs, matrices, tables, charts, step-by-step views."""
    return await run_lesson(request, lambda: load_lesson(number).to_dict(body.lang, body.inputs))


@router.post(
    "/{number}/answer",
    summary="Check an answer",
    responses={200: {"model": responses.AnswerResponse}},
)
async def check_answer(number: int, body: AnswerRequest, request: Request) -> dict[str, Any]:
    """Return whether an answer is right: with its explanation, or with hints if it is wrong."""

    def check() -> dict[str, Any]:
        question = load_lesson(number).question(body.question)
        is_correct = question.check(body.answer)
        is_explained = is_correct or body.reveal
        return {
            "is_right": is_correct,
            "why": question.explanation.localize(body.lang) if is_explained else None,
            "hint": None if is_correct else question.hint(body.answer),
            "hints": [] if is_correct else [one.localize(body.lang) for one in question.hints],
            "answer": question.solution() if is_explained else None,
        }

    return await run_lesson(request, check)


@router.post(
    "/{number}/own",
    summary="The lesson's section on your own model",
    responses={200: {"model": responses.OwnModelResponse}},
)
async def get_own_model_section(
    number: int, body: OwnModelRequest, request: Request
) -> dict[str, Any]:
    """Return the blocks of the section on your own model, and the record that figures show."""
    texts = [body.text] if body.text else []
    service: Service = request.app.state.service
    check_texts(texts, service.config)
    other = find_task_model(service.registry, number, body.model)
    own_blocks: list[dict[str, Any]] = []
    if other is not None:
        is_chosen = other.name == body.model or not service.registry.list_text_models("translation")
        own_blocks = await service.call(
            other,
            other.call_native,
            task_section,
            number,
            other.task,
            body.text if is_chosen else None,
            body.lang,
        )
        if is_chosen:
            return {"model": other.name, "blocks": own_blocks, "record": None}
    _, served, _ = await find_model(request, body, texts, tasks=("translation",))
    section: dict[str, Any] = await service.call(
        served, served.call_native, own_model_section, number, body.text, body.lang
    )
    return {"model": served.name, **section, "blocks": [*section["blocks"], *own_blocks]}


def find_task_model(registry: ModelRegistry, number: int, name: str | None) -> ModelHandle | None:
    """Return a served model that does not translate and that a lesson shows something of.

    It is the named one, or the first one.
    """
    tasks = load_lesson(number).task_blocks
    models = [one for one in registry.models if one.task in tasks]
    return next((one for one in models if one.name == name), next(iter(models), None))


def task_section(
    model: Translator | Forecaster, number: int, task: str, text: str | None, lang: Lang
) -> list[dict[str, Any]]:
    """Compute the section of a lesson on a model that does not translate."""
    loaded = (
        TextGenerator(model.model, model.tokenizer, about=model.about)
        if isinstance(model, Translator)
        else model
    )
    return [block.to_dict(lang) for block in load_lesson(number).task_blocks[task](loaded, text)]


def own_model_section(
    translator: Translator, number: int, text: str | None, lang: Lang
) -> dict[str, Any]:
    """Compute the section on a model; the record is left out if no figure shows it."""
    section = own_model.build_section(load_lesson(number), translator, text)
    blocks = []
    needs_record = False
    for block in section.blocks:
        block_json = block.to_dict(lang)
        if isinstance(block, ModelPlot):
            block_json["figure"] = own_model.describe_plot(section, block, lang)
            panels = [panel for row in block_json["figure"]["rows"] for panel in row]
            needs_record |= any(panel["kind"] == "record" for panel in panels)
        blocks.append(block_json)
    return {"blocks": blocks, "record": section.record.to_dict() if needs_record else None}
