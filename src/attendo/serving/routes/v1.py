"""Routes of /v1, which offer more than the LibreTranslate-compatible ones.

Each route finds its model, checks the limits of the server, and runs the model in its thread
(`attendo.serving.service`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.message import join_messages, message
from attendo.decoding.options import DecodingOptions
from attendo.serving import presenters
from attendo.serving.errors import conceal, format_error, preferred_language
from attendo.serving.language_detection import MAX_DETECT_CHARACTERS
from attendo.serving.limits import check_limits, check_texts
from attendo.serving.memory import exact_target, find_matches, repair_best, translate_unknown
from attendo.serving.model_registry import ANY_LANGUAGE, match_language
from attendo.serving.pivot import (
    NUM_STEPS,
    PivotRoute,
    find_pivot,
    pivot_targets,
)
from attendo.serving.request_budget import check_budget
from attendo.serving.routes import v1_schemas
from attendo.serving.routes.record_responses import RecordResponse
from attendo.serving.served_model import TEXT_OUTPUT_TASKS
from attendo.serving.source_language import detect_source
from attendo.serving.strict_json import StrictRoute

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence

    from pydantic import BaseModel

    from attendo.memory.store import Match
    from attendo.serving.config import ServeConfig
    from attendo.serving.language_detection import DetectedLanguage
    from attendo.serving.model_registry import ModelRegistry
    from attendo.serving.served_model import Task, TextModelHandle
    from attendo.serving.service import Service
    from attendo.translator import Translation, Translator
    from attendo.translator.word_suggestions import NextWord

ResultT = TypeVar("ResultT")
EVENT_STREAM = "text/event-stream"
EVENT_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Headers that keep proxies from buffering events."""
DECODING_FIELDS = ("n_best", "alpha", "do_sample", "temperature", "top_k", "top_p", "seed")
TRANSLATION_FIELDS = (
    "glossary",
    "required",
    "forbidden",
    "prefix",
    "confidence",
    "split",
    "copy_spans",
    "retry",
    "label",
)
INSPECT_WINDOW, ATTRIBUTION_WINDOW = 128, 64
"""Maximum tokens per side of an inspection; fewer if it takes many passes."""
MAX_WORDS_ON_LOOP = 500
"""Larger responses are built in a thread."""

router = APIRouter(
    prefix="/v1",
    route_class=StrictRoute,
    tags=["v1"],
    responses={"4XX": {"model": v1_schemas.ErrorBody}, "5XX": {"model": v1_schemas.ErrorBody}},
)


@router.get("/models", summary="List the models")
async def list_models(request: Request) -> v1_schemas.ModelsResponse:
    """Return the models; requests without a model use the default one of their task."""
    service: Service = request.app.state.service
    models = service.registry.models
    model_responses = await asyncio.to_thread(presenters.present_models, models, service.config)
    pivots = pivot_targets(service.registry) if service.config.pivot else {}
    return v1_schemas.ModelsResponse(
        models=model_responses,
        pivots=[
            v1_schemas.PivotResponse(source=source, target=target, via=via)
            for source, targets in pivots.items()
            for target, via in targets.items()
        ],
        has_memory=service.memory is not None,
    )


@router.post(
    "/translate",
    summary="Translate with n-best, confidence, constraints and alignment",
    response_model=v1_schemas.TranslateResponse,
)
async def translate(body: v1_schemas.TranslateRequest, request: Request) -> Response:
    """Translate one or several texts."""
    start = perf_counter()
    (service, served, detected), via = await find_route(request, body)
    check_label(served, body.label)
    texts, options = _read_texts(body, service.config), _read_options(body, service.config)
    check_budget(texts, service.config, options, num_steps=NUM_STEPS if via else 1)
    if body.min_confidence is not None:
        check_calibrated(served, *((via,) if via else ()))
    route = PivotRoute(via, served) if via else served
    matches = await _find_matches(service, body, served, via, options)
    translated = await translate_unknown(service, route, texts, matches, options)
    translations = [one for one in translated if one is not None]
    repaired: list[str | None] = [None] * len(texts)
    if body.repair and via is None:
        repaired = await repair_best(service, served, matches, translated)
    is_aligned = body.alignment and via is None and bool(translations)
    present = partial(
        presenters.present_translations,
        translations=translations,
        alignment=is_aligned,
        min_confidence=body.min_confidence,
    )
    if is_aligned:  # runs the model again
        responses = await service.call(served, served.call_richest, present)
    else:
        responses = await run_in_turn(
            service, served, present, served.translator, size=_count_words(translations)
        )
    if body.alignment and via is not None:
        for one in responses:
            one.notes.append(presenters.NO_PIVOT_ALIGNMENT_NOTE)
    response = v1_schemas.TranslateResponse(
        model=served.name,
        source=(via or served).src,
        target=served.tgt,
        via=v1_schemas.ViaResponse(language=via.tgt, model=via.name) if via else None,
        detected=present_detected(detected),
        seconds=round(perf_counter() - start, 4),
        translations=presenters.add_matches(
            texts,
            matches,
            responses,
            min_confidence=body.min_confidence,
            repaired=repaired,
        ),
    )
    return await to_json(response, size=_count_words(translations))


async def _find_matches(
    service: Service,
    body: v1_schemas.TranslateRequest,
    served: TextModelHandle,
    via: TextModelHandle | None,
    options: dict[str, Any],
) -> list[list[Match]]:
    """Return what the translation memory has for the texts of a request."""
    if not body.memory:
        return [[] for _ in body.texts]
    return await find_matches(service, body.texts, ((via or served).src, served.tgt), options)


def check_label(served: TextModelHandle, label: str | None) -> None:
    """Raise an error for a label that a model was not trained on."""
    try:
        served.translator.check_label(label)
    except ConfigError as error:
        raise InputError(error.reason, hint=error.hint) from None


def check_calibrated(*models: TextModelHandle) -> None:
    """Raise an error if what a score is worth was not measured for a model."""
    for served in models:
        if served.translator.quality is None:
            raise InputError(
                message("the confidence of '{name}' is not calibrated", name=served.name),
                hint="omit min_confidence, or calibrate the model: attendo calibrate",
            )


def _count_words(translations: Sequence[Translation]) -> int:
    """Return about how many words a response describes."""
    return sum(len(one.tokens) * (1 + len(one.alternatives)) for one in translations)


async def run_in_turn(
    service: Service,
    served: TextModelHandle,
    function: Callable[..., ResultT],
    *args: Any,
    size: int,
) -> ResultT:
    """Call a function; if its result is large, when it is the turn of its client."""
    if size > MAX_WORDS_ON_LOOP:
        return await service.call(served, function, *args)
    return function(*args)


async def run_off_loop(function: Callable[..., ResultT], *args: Any, size: int) -> ResultT:
    """Call a function, in a thread if its result is large, so as not to block the event loop."""
    if size > MAX_WORDS_ON_LOOP:
        return await asyncio.to_thread(function, *args)
    return function(*args)


async def to_json(response: BaseModel, *, size: int) -> Response:
    """Return a response as JSON; FastAPI would build it on the event loop."""
    content = await run_off_loop(response.model_dump_json, size=size)
    return Response(content, media_type="application/json")


@router.post(
    "/stream",
    summary="Translate and stream the tokens",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "Server-sent events: token (text so far, token, probability), then done "
            "(a translation as in /v1/translate), or error.",
            "content": {EVENT_STREAM: {}},
        }
    },
)
async def stream(body: v1_schemas.StreamRequest, request: Request) -> StreamingResponse:
    """Translate greedily; constraints, sampling and long texts send only the event `done`."""
    service, served, detected = await find_model(request, body, [body.text])
    check_label(served, body.label)
    (text,) = _read_texts(body, service.config)
    options = {**_read_options(body, service.config), "beam_size": 1}
    options.pop("retry", None)  # what was sent cannot be taken back
    make_events: Callable[[], Iterator[tuple[str, dict[str, Any]]]] = partial(
        served.call_richest, presenters.stream_events, text, options, alignment=body.alignment
    )
    matches = await _find_matches(service, body, served, None, options)
    if exact_target(matches[0]) is not None:
        make_events = partial(presenters.stream_known, text, matches[0])
    updates = service.stream(served, make_events)
    first = await anext(updates)  # errors before the first event get a status code
    events = _format_events(first, updates, request, detected=present_detected(detected))
    return StreamingResponse(events, media_type=EVENT_STREAM, headers=EVENT_HEADERS)


@router.post("/alternatives", summary="Candidates for the next word")
async def list_alternatives(
    body: v1_schemas.AlternativesRequest, request: Request
) -> v1_schemas.AlternativesResponse:
    """Return the most probable next words after the prefix of a translation."""
    check_texts([body.text, body.prefix], request.app.state.service.config)
    service, served, detected = await find_model(request, body, [body.text])
    words = await service.call(
        served, served.call_native, _suggest_words, body.text, body.prefix, top=body.top
    )
    return v1_schemas.AlternativesResponse(
        detected=present_detected(detected),
        words=[
            v1_schemas.NextWordResponse(
                text=word.text,
                probability=v1_schemas.round_finite(word.probability) or 0.0,
                prefix=word.prefix,
            )
            for word in words
        ],
    )


@router.post(
    "/inspect",
    summary="Inspect a translation",
    responses={
        200: {
            "description": "The record; see `attendo.inspection.record`.",
            "model": RecordResponse,
        }
    },
)
async def inspect(body: v1_schemas.InspectRequest, request: Request) -> Response:
    """Return the record: tokens, every attention head, decoding step and beam."""
    service, served, detected = await find_model(
        request, body, [body.text], tasks=(*TEXT_OUTPUT_TASKS, "language")
    )
    check_texts([body.text, body.target_text or ""], service.config)
    beam_size = body.beam_size or service.config.beam_size
    check_limits({"beam_size": (beam_size, service.config.max_beam_size)})
    record_json = await service.call(served, served.call_native, _capture_record, body, beam_size)
    headers = {"X-Detected-Language": detected.language} if detected is not None else None
    return Response(record_json, media_type="application/json", headers=headers)


def _suggest_words(translator: Translator, text: str, prefix: str, *, top: int) -> list[NextWord]:
    from attendo.translator.word_suggestions import next_words

    return next_words(translator, text, prefix, top=top)


def _capture_record(translator: Translator, body: v1_schemas.InspectRequest, beam_size: int) -> str:
    from attendo.inspection.inspect_sentence import inspect_sentence

    is_study = body.ablation or body.attribution
    return inspect_sentence(
        translator,
        body.text,
        body.target_text,
        ablation=body.ablation,
        attribution=body.attribution,
        window=ATTRIBUTION_WINDOW if is_study else INSPECT_WINDOW,
        beam_size=beam_size,
    ).to_json()


@router.post("/score", summary="Score translations", response_model=v1_schemas.ScoresResponse)
async def score(body: v1_schemas.ScoreRequest, request: Request) -> Response:
    """Return log-probabilities, per token and in total, and perplexities."""
    sources = [pair.source_text for pair in body.pairs]
    service, served, detected = await find_model(request, body, sources)
    pairs = [(pair.source_text, pair.target_text) for pair in body.pairs]
    texts = [text for pair in pairs for text in pair]
    check_texts(texts, service.config, num_texts=len(pairs))
    check_budget(texts, service.config)
    scores = await service.call(served, served.call_native, presenters.score_pairs, pairs)
    response = v1_schemas.ScoresResponse(
        model=served.name, detected=present_detected(detected), scores=scores
    )
    return await to_json(response, size=sum(one.num_tokens for one in scores))


class SelectedModel(NamedTuple):
    """The model of a request, and the language that was detected to find it."""

    service: Service
    served: TextModelHandle
    detected: DetectedLanguage | None


async def find_model(
    request: Request,
    body: v1_schemas.ModelSelector,
    texts: Sequence[str] = (),
    *,
    tasks: Sequence[Task] = TEXT_OUTPUT_TASKS,
) -> SelectedModel:
    """Return the requested text model, which has one of these tasks.

    With `"source": "auto"` and no name it is the model for the language of the texts.
    """
    service: Service = request.app.state.service
    registry = service.registry
    if body.model is None:
        source, detected = await _find_source(registry, body, texts)
        served = registry.find_for_languages(source, body.target, tasks=tasks)
        return SelectedModel(service, served, detected)
    served = registry.get_text_model(body.model, *tasks)
    for requested, available in ((body.source, served.src), (body.target, served.tgt)):
        if match_language(requested, available) is None:
            reason = message(
                "the model '{name}' translates {src} to {tgt}",
                name=served.name,
                src=served.src,
                tgt=served.tgt,
            )
            raise InputError(reason, hint="omit model, or omit source and target")
    return SelectedModel(service, served, None)


async def find_route(
    request: Request, body: v1_schemas.TranslateRequest
) -> tuple[SelectedModel, TextModelHandle | None]:
    """Return the model of a translation, and the one before it if no model is direct."""
    try:
        return await find_model(request, body, body.texts), None
    except InputError:
        service: Service = request.app.state.service
        if body.model is not None or not service.config.pivot:
            raise
        source, detected = await _find_source(service.registry, body, body.texts)
        route = find_pivot(service.registry, source, body.target)
        if route is None:
            raise
        return SelectedModel(service, route.second, detected), route.first


async def _find_source(
    registry: ModelRegistry, body: v1_schemas.ModelSelector, texts: Sequence[str]
) -> tuple[str | None, DetectedLanguage | None]:
    """Return the source language, and what was detected for "auto"."""
    source = body.source
    if source is None or source.lower() != ANY_LANGUAGE or not any(texts):
        return source, None
    sample = " ".join(texts)[:MAX_DETECT_CHARACTERS]
    detected = await asyncio.to_thread(detect_source, registry, sample, body.target)
    return (detected.language if detected.confidence else None), detected


def present_detected(detected: DetectedLanguage | None) -> v1_schemas.DetectedResponse | None:
    """Describe the detected language, if any was detected."""
    if detected is None:
        return None
    return v1_schemas.DetectedResponse(language=detected.language, confidence=detected.confidence)


def _read_texts(body: v1_schemas.TranslateRequest, config: ServeConfig) -> list[str]:
    texts = body.texts
    check_texts([*texts, body.prefix], config, num_texts=len(texts))
    return texts


def _read_options(body: v1_schemas.TranslateRequest, config: ServeConfig) -> dict[str, Any]:
    """Return the options that differ from the defaults, so that equal requests share batches."""
    beam_size = body.beam_size or max(config.beam_size, 1 if body.do_sample else body.n_best)
    check_limits(
        {
            "beam_size": (beam_size, config.max_beam_size),
            "n_best": (body.n_best, 1 + config.max_alternatives),
        }
    )
    fields = v1_schemas.TranslateRequest.model_fields
    options = {
        name: getattr(body, name)
        for name in (*DECODING_FIELDS, *TRANSLATION_FIELDS)
        if getattr(body, name) != fields[name].default
    }
    options |= {"beam_size": beam_size, "n_best": body.n_best}
    if body.min_confidence is not None:
        options["confidence"] = True
    try:
        DecodingOptions(
            **{name: options[name] for name in ("beam_size", *DECODING_FIELDS) if name in options}
        )
    except ConfigError as error:
        raise InputError(join_messages("; ", error.reasons)) from None
    return options


async def _format_events(
    first: tuple[str, dict[str, Any]],
    rest: AsyncIterator[tuple[str, dict[str, Any]]],
    request: Request,
    *,
    detected: v1_schemas.DetectedResponse | None,
) -> AsyncIterator[str]:
    """Format events; the model stops when the client disconnects."""
    lang = preferred_language(request.headers)
    extra = {"detected": detected.model_dump()} if detected is not None else {}
    yield _format_done(*first, extra)
    async with aclosing(rest):  # type: ignore[type-var] # it is an async generator
        try:
            async for kind, payload in rest:
                yield _format_done(kind, payload, extra)
        except AttendoError as caught:
            request_id = request.scope.get("state", {}).get("request_id", "")
            registry = request.app.state.service.registry
            error = conceal(caught, registry, request_id=request_id)
            yield format_event("error", {"error": format_error(error.reason, error.hint, lang)})
        except Exception:
            yield format_event("error", {"error": format_error("internal error", None, lang)})
            raise


def _format_done(kind: str, payload: dict[str, Any], extra: dict[str, Any]) -> str:
    """Format an event; the last one also has the extra fields."""
    return format_event(kind, {**payload, **extra} if kind == "done" else payload)


def format_event(kind: str, payload: dict[str, Any], *, event_id: int | None = None) -> str:
    r"""Format one server-sent event; JSON contains no line breaks.

    >>> format_event("token", {"text": "I am"})
    'event: token\ndata: {"text": "I am"}\n\n'
    """
    data = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    id_line = "" if event_id is None else f"id: {event_id}\n"
    return f"event: {kind}\n{id_line}data: {data}\n\n"
