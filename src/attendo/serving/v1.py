"""The routes of our own, below /v1: what the LibreTranslate ones leave out.

Every route finds its model, checks the limits of the server, and has the model's own thread do the
work (`attendo.serving.service`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.decoding.options import DecodingOptions
from attendo.inspection.look import look_inside
from attendo.serving import schemas, wording
from attendo.serving.answers import join, read_language
from attendo.serving.served import SAYING
from attendo.serving.strict import StrictRoute
from attendo.translator.beginnings import Begun, translate_from
from attendo.translator.next_words import next_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from attendo.core.speech import Lang
    from attendo.serving.config import ServeConfig
    from attendo.serving.served import Served, Task
    from attendo.serving.service import Service
    from attendo.translator import Translation, Translator

EVENTS = "text/event-stream"
EVENT_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""A proxy must hand on each event as it comes."""
SEARCH = ("n_best", "alpha", "sample", "temperature", "top_k", "top_p", "seed")
WISHES = ("glossary", "must", "must_not", "prefix", "confidence", "split")
WINDOW, STUDY_WINDOW = 128, 64
"""Tokens of each side that are looked into; fewer where it takes many passes."""

router = APIRouter(
    prefix="/v1",
    route_class=StrictRoute,
    tags=["v1"],
    responses={"4XX": {"model": schemas.Problem}, "5XX": {"model": schemas.Problem}},
)


@router.get("/models", summary="The models that are served")
async def list_models(request: Request) -> schemas.ModelsAnswer:
    """Tell which models there are; a request that names none asks the default one of its task."""
    service: Service = request.app.state.service
    models = service.registry.models
    told = await asyncio.to_thread(wording.describe_models, models, service.config)
    return schemas.ModelsAnswer(models=told)


@router.post("/translate", summary="Translate, and tell all that is known of the translation")
async def translate(body: schemas.TranslateBody, request: Request) -> schemas.TranslateAnswer:
    """Translate one text or several: n-best, confidence by word, constraints, alignment."""
    begin = perf_counter()
    service, served = find_served(request, body)
    texts, options = _read_texts(body, service.config), _read_options(body, service.config)
    if body.prefix:
        jobs = (_go_on(service, served, text, options) for text in texts)
        made = list(await asyncio.gather(*jobs))
    else:
        made = await service.translate(served, texts, options)
    if body.alignment:  # asks the model again
        describe = partial(wording.describe_all, made=made, alignment=True)
        told = await service.call(served, served.call_own, describe)
    else:
        told = wording.describe_all(served.translator, made, alignment=False)
    return schemas.TranslateAnswer(
        model=served.name,
        source=served.src,
        target=served.tgt,
        seconds=round(perf_counter() - begin, 4),
        translations=told,
    )


async def _go_on(
    service: Service, served: Served, text: str, options: dict[str, Any]
) -> Translation:
    """Translate one text from a beginning, which may reach over several of its sentences."""
    cut = Begun.cut(served.translator, text, options["prefix"], split=options.get("split", "auto"))
    if len(cut.prefixes) > 1:
        able = served.choose(options)
        return await service.call(served, translate_from, able, text, **options)
    (made,) = await service.translate(served, [text], options)
    return made


@router.post(
    "/stream",
    summary="Translate, and tell each token as it comes",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Events: token (text so far, token, probability), then done (as one of "
            "the translations of /v1/translate), or error.",
            "content": {EVENTS: {}},
        }
    },
)
async def stream(body: schemas.StreamBody, request: Request) -> StreamingResponse:
    """Translate greedily; with phrases, sampling or a long text nothing comes before `done`."""
    service, served = find_served(request, body)
    (text,) = _read_texts(body, service.config)
    options = {**_read_options(body, service.config), "beam_size": 1}
    tell = partial(served.call_own, wording.tell_stepwise, text, options, alignment=body.alignment)
    told = service.stream(served, tell)
    first = await anext(told)  # what cannot be begun is an error with a status
    events = _word_events(first, told, lang=read_language(request.headers))
    return StreamingResponse(events, media_type=EVENTS, headers=EVENT_HEADERS)


@router.post("/alternatives", summary="What could stand next")
async def list_alternatives(
    body: schemas.AlternativesBody, request: Request
) -> schemas.AlternativesAnswer:
    """Give the words that could follow the beginning of a translation, best first."""
    service, served = find_served(request, body)
    check_texts([body.text, body.prefix], service.config)
    words = await service.call(
        served, served.call_own, next_words, body.text, body.prefix, top=body.top
    )
    return schemas.AlternativesAnswer(
        words=[
            schemas.NextWordAnswer(
                text=word.text,
                probability=schemas.finite(word.probability) or 0.0,
                prefix=word.prefix,
            )
            for word in words
        ]
    )


@router.post(
    "/inspect",
    summary="Everything that one sentence through the model shows",
    responses={
        200: {
            "description": "The record: `attendo.inspection.record` documents it.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def inspect(body: schemas.InspectBody, request: Request) -> Response:
    """Give the record: tokens, every head, every step, every beam."""
    service, served = find_served(request, body, tasks=(*SAYING, "language"))
    check_texts([body.text, body.target_text or ""], service.config)
    beam_size = body.beam_size or service.config.beam_size
    schemas.check_limits({"beam_size": (beam_size, service.config.max_beam_size)})
    told = await service.call(served, served.call_own, _look, body, beam_size)
    return Response(told, media_type="application/json")


def _look(translator: Translator, body: schemas.InspectBody, beam_size: int) -> str:
    is_study = body.ablation or body.attribution
    return look_inside(
        translator,
        body.text,
        body.target_text,
        ablation=body.ablation,
        attribution=body.attribution,
        window=STUDY_WINDOW if is_study else WINDOW,
        beam_size=beam_size,
    ).to_json()


@router.post("/score", summary="How likely given translations are")
async def score(body: schemas.ScoreBody, request: Request) -> schemas.ScoresAnswer:
    """Give log-probabilities, by token and as a whole, and perplexities."""
    service, served = find_served(request, body)
    pairs = [(pair.source_text, pair.target_text) for pair in body.pairs]
    check_texts([text for pair in pairs for text in pair], service.config, num_texts=len(pairs))
    scores = await service.call(served, served.call_own, wording.score_pairs, pairs)
    return schemas.ScoresAnswer(model=served.name, scores=scores)


def find_served(
    request: Request, body: schemas.Choice, *, tasks: Sequence[Task] = SAYING
) -> tuple[Service, Served]:
    """Give the service and the model of text, with one of these tasks, that is asked for."""
    service: Service = request.app.state.service
    if body.model is None:
        return service, service.registry.find(body.source, body.target, tasks=tasks)
    served = service.registry.get_text(body.model, *tasks)
    for asked, had in ((body.source, served.src), (body.target, served.tgt)):
        if not _is_same(asked, had):
            reason = f"the model '{served.name}' translates {served.src} to {served.tgt}"
            raise InputError(reason, remedy="leave model out, or source and target")
    return service, served


def _is_same(asked: str | None, had: str) -> bool:
    """Tell whether two languages are the same in their main part; "auto" is any."""
    one, other = ((code or "auto").casefold().replace("_", "-") for code in (asked, had))
    return "auto" in (one, other) or one.split("-")[0] == other.split("-")[0]


def _read_texts(body: schemas.TranslateBody, config: ServeConfig) -> list[str]:
    texts = body.texts
    check_texts([*texts, body.prefix], config, num_texts=len(texts))
    return texts


def check_texts(texts: list[str], config: ServeConfig, *, num_texts: int = 1) -> None:
    """Refuse texts that are too long for this server, or more than it takes at once."""
    schemas.check_limits(
        {
            "texts": (num_texts, config.max_texts),
            "characters": (max(map(len, texts)), config.max_characters),
        }
    )


def _read_options(body: schemas.TranslateBody, config: ServeConfig) -> dict[str, Any]:
    """Give what differs from the defaults: requests that ask for the same share batches."""
    beam_size = body.beam_size or max(config.beam_size, 1 if body.sample else body.n_best)
    schemas.check_limits(
        {
            "beam_size": (beam_size, config.max_beam_size),
            "n_best": (body.n_best, 1 + config.max_alternatives),
        }
    )
    fields = schemas.TranslateBody.model_fields
    told = {
        name: getattr(body, name)
        for name in (*SEARCH, *WISHES)
        if getattr(body, name) != fields[name].default
    }
    told |= {"beam_size": beam_size, "n_best": body.n_best}
    try:
        DecodingOptions(**{name: told[name] for name in ("beam_size", *SEARCH) if name in told})
    except ConfigError as error:
        raise InputError("; ".join(error.reasons)) from None
    return told


async def _word_events(
    first: tuple[str, dict[str, Any]],
    rest: AsyncIterator[tuple[str, dict[str, Any]]],
    *,
    lang: Lang,
) -> AsyncIterator[str]:
    """Word events; the work ends with the listener."""
    yield word_event(*first)
    async with aclosing(rest):  # type: ignore[type-var] # it is a generator
        try:
            async for kind, facts in rest:
                yield word_event(kind, facts)
        except AttendoError as error:
            told = [part for part in (error.reason, error.remedy) if part]
            yield word_event("error", {"error": join(told, lang)})
        except Exception:
            yield word_event("error", {"error": join(["internal error"], lang)})
            raise


def word_event(kind: str, facts: dict[str, Any], *, number: int | None = None) -> str:
    r"""Word one server-sent event; JSON has no line breaks.

    >>> word_event("token", {"text": "I am"})
    'event: token\ndata: {"text": "I am"}\n\n'
    """
    told = json.dumps(facts, ensure_ascii=False, allow_nan=False)
    place = "" if number is None else f"id: {number}\n"
    return f"event: {kind}\n{place}data: {told}\n\n"
