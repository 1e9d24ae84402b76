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
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import Response, StreamingResponse

from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.message import join_messages, message
from attendo.decoding.options import DecodingOptions
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.serving import presenters
from attendo.serving.errors import format_error, preferred_language
from attendo.serving.limits import check_limits, check_texts
from attendo.serving.model_registry import match_language
from attendo.serving.routes import v1_schemas
from attendo.serving.served_model import TEXT_OUTPUT_TASKS
from attendo.serving.strict_json import StrictRoute
from attendo.translator.prefixes import PrefixedDocument, translate_with_prefix
from attendo.translator.word_suggestions import next_words

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from attendo.i18n.messages import Lang
    from attendo.serving.config import ServeConfig
    from attendo.serving.served_model import Task, TextModelHandle
    from attendo.serving.service import Service
    from attendo.translator import Translation, Translator

EVENT_STREAM = "text/event-stream"
EVENT_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
"""Headers that keep proxies from buffering events."""
DECODING_FIELDS = ("n_best", "alpha", "do_sample", "temperature", "top_k", "top_p", "seed")
TRANSLATION_FIELDS = ("glossary", "required", "forbidden", "prefix", "confidence", "split")
INSPECT_WINDOW, ATTRIBUTION_WINDOW = 128, 64
"""Maximum tokens per side of an inspection; fewer if it takes many passes."""

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
    return v1_schemas.ModelsResponse(models=model_responses)


@router.post("/translate", summary="Translate with n-best, confidence, constraints and alignment")
async def translate(
    body: v1_schemas.TranslateRequest, request: Request
) -> v1_schemas.TranslateResponse:
    """Translate one or several texts."""
    start = perf_counter()
    service, served = find_model(request, body)
    texts, options = _read_texts(body, service.config), _read_options(body, service.config)
    if body.prefix:
        jobs = (_translate_with_prefix(service, served, text, options) for text in texts)
        translations = list(await asyncio.gather(*jobs))
    else:
        translations = await service.translate(served, texts, options)
    if body.alignment:  # runs the model again
        describe = partial(
            presenters.present_translations, translations=translations, alignment=True
        )
        responses = await service.call(served, served.call_native, describe)
    else:
        responses = presenters.present_translations(
            served.translator, translations, alignment=False
        )
    return v1_schemas.TranslateResponse(
        model=served.name,
        source=served.src,
        target=served.tgt,
        seconds=round(perf_counter() - start, 4),
        translations=responses,
    )


async def _translate_with_prefix(
    service: Service, served: TextModelHandle, text: str, options: dict[str, Any]
) -> Translation:
    """Translate one text with a forced prefix, which may span several sentences."""
    document = PrefixedDocument.from_text(
        served.translator, text, options["prefix"], split=options.get("split", "auto")
    )
    if len(document.prefixes) > 1:
        translator = served.translator_for(options)
        return await service.call(served, translate_with_prefix, translator, text, **options)
    (translation,) = await service.translate(served, [text], options)
    return translation


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
    service, served = find_model(request, body)
    (text,) = _read_texts(body, service.config)
    options = {**_read_options(body, service.config), "beam_size": 1}
    make_events = partial(
        served.call_native, presenters.stream_events, text, options, alignment=body.alignment
    )
    updates = service.stream(served, make_events)
    first = await anext(updates)  # errors before the first event get a status code
    events = _format_events(first, updates, lang=preferred_language(request.headers))
    return StreamingResponse(events, media_type=EVENT_STREAM, headers=EVENT_HEADERS)


@router.post("/alternatives", summary="Candidates for the next word")
async def list_alternatives(
    body: v1_schemas.AlternativesRequest, request: Request
) -> v1_schemas.AlternativesResponse:
    """Return the most probable next words after the prefix of a translation."""
    service, served = find_model(request, body)
    check_texts([body.text, body.prefix], service.config)
    words = await service.call(
        served, served.call_native, next_words, body.text, body.prefix, top=body.top
    )
    return v1_schemas.AlternativesResponse(
        words=[
            v1_schemas.NextWordResponse(
                text=word.text,
                probability=v1_schemas.round_finite(word.probability) or 0.0,
                prefix=word.prefix,
            )
            for word in words
        ]
    )


@router.post(
    "/inspect",
    summary="Inspect a translation",
    responses={
        200: {
            "description": "The record; see `attendo.inspection.record`.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def inspect(body: v1_schemas.InspectRequest, request: Request) -> Response:
    """Return the record: tokens, every attention head, decoding step and beam."""
    service, served = find_model(request, body, tasks=(*TEXT_OUTPUT_TASKS, "language"))
    check_texts([body.text, body.target_text or ""], service.config)
    beam_size = body.beam_size or service.config.beam_size
    check_limits({"beam_size": (beam_size, service.config.max_beam_size)})
    record_json = await service.call(served, served.call_native, _capture_record, body, beam_size)
    return Response(record_json, media_type="application/json")


def _capture_record(translator: Translator, body: v1_schemas.InspectRequest, beam_size: int) -> str:
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


@router.post("/score", summary="Score translations")
async def score(body: v1_schemas.ScoreRequest, request: Request) -> v1_schemas.ScoresResponse:
    """Return log-probabilities, per token and in total, and perplexities."""
    service, served = find_model(request, body)
    pairs = [(pair.source_text, pair.target_text) for pair in body.pairs]
    check_texts([text for pair in pairs for text in pair], service.config, num_texts=len(pairs))
    scores = await service.call(served, served.call_native, presenters.score_pairs, pairs)
    return v1_schemas.ScoresResponse(model=served.name, scores=scores)


def find_model(
    request: Request, body: v1_schemas.ModelSelector, *, tasks: Sequence[Task] = TEXT_OUTPUT_TASKS
) -> tuple[Service, TextModelHandle]:
    """Return the service and the requested text model, which has one of these tasks."""
    service: Service = request.app.state.service
    if body.model is None:
        return service, service.registry.find_for_languages(body.source, body.target, tasks=tasks)
    served = service.registry.get_text_model(body.model, *tasks)
    for requested, available in ((body.source, served.src), (body.target, served.tgt)):
        if match_language(requested, available) is None:
            reason = message(
                "the model '{name}' translates {src} to {tgt}",
                name=served.name,
                src=served.src,
                tgt=served.tgt,
            )
            raise InputError(reason, hint="omit model, or omit source and target")
    return service, served


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
    *,
    lang: Lang,
) -> AsyncIterator[str]:
    """Format events; the model stops when the client disconnects."""
    yield format_event(*first)
    async with aclosing(rest):  # type: ignore[type-var] # it is an async generator
        try:
            async for kind, payload in rest:
                yield format_event(kind, payload)
        except AttendoError as error:
            yield format_event("error", {"error": format_error(error.reason, error.hint, lang)})
        except Exception:
            yield format_event("error", {"error": format_error("internal error", None, lang)})
            raise


def format_event(kind: str, payload: dict[str, Any], *, event_id: int | None = None) -> str:
    r"""Format one server-sent event; JSON contains no line breaks.

    >>> format_event("token", {"text": "I am"})
    'event: token\ndata: {"text": "I am"}\n\n'
    """
    data = json.dumps(payload, ensure_ascii=False, allow_nan=False)
    id_line = "" if event_id is None else f"id: {event_id}\n"
    return f"event: {kind}\n{id_line}data: {data}\n\n"
