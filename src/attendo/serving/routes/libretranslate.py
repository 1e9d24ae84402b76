"""LibreTranslate-compatible routes; its clients work unchanged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NoReturn

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from attendo.core.errors import AttendoError, InputError
from attendo.documents import DocumentPlan, ReadOptions, find_format, read_document
from attendo.documents.formats import FORMATS, list_available
from attendo.documents.html import read_html
from attendo.i18n.messages import translate_message
from attendo.serving.document_jobs import Job, translate_file_job, translate_jobs
from attendo.serving.errors import preferred_language
from attendo.serving.forms import read_upload
from attendo.serving.language_detection import DetectedLanguage, detect, language_name
from attendo.serving.limits import check_limits, check_texts
from attendo.serving.model_registry import ANY_LANGUAGE
from attendo.serving.pivot import (
    NUM_STEPS,
    PivotRoute,
    find_route,
    pivot_targets,
)
from attendo.serving.request_budget import check_budget
from attendo.serving.routes import libretranslate_responses as responses
from attendo.serving.routes.file_events import FileProgress
from attendo.serving.routes.libretranslate_schemas import (
    FORM_MEDIA_TYPES,
    DetectRequest,
    TranslateFileRequest,
    TranslateRequest,
    openapi_schema,
    read_fields,
    validate_request,
)
from attendo.serving.routes.v1 import EVENT_HEADERS, EVENT_STREAM
from attendo.serving.routes.v1_schemas import ErrorBody
from attendo.serving.source_language import detect_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.serving.config import ServeConfig
    from attendo.serving.document_jobs import Progress
    from attendo.serving.metrics import Metrics
    from attendo.serving.served_model import TextModelHandle
    from attendo.serving.service import Service

FRONTEND_TIMEOUT_MS = 500
"""Delay between the last key press and the request of a web page."""
router = APIRouter(
    tags=["LibreTranslate"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.post(
    "/translate",
    openapi_extra=openapi_schema(
        TranslateRequest,
        media_types=FORM_MEDIA_TYPES,
    ),
    responses={200: {"model": responses.TranslatedResponse}},
)
async def translate(request: Request) -> dict[str, Any]:
    """Translate a text, or a list of texts."""
    body = validate_request(TranslateRequest, await read_fields(request))
    config: ServeConfig = request.app.state.config
    texts = [body.q] if isinstance(body.q, str) else body.q
    check_texts(texts, config, num_texts=len(texts))
    check_limits({"alternatives": (body.alternatives, config.max_alternatives)})
    n_best = 1 + body.alternatives
    check_budget(texts, config, {"beam_size": max(n_best, config.beam_size)})
    service: Service = request.app.state.service
    plans = [
        DocumentPlan(await asyncio.to_thread(read_html, text)) if body.format == "html" else None
        for text in texts
    ]
    samples = [
        text if plan is None else " ".join(plan.texts)
        for text, plan in zip(texts, plans, strict=True)
    ]
    detected = await _detect_sources(service, samples, body.source, body.target)
    routes = [_route_for(service, guess.language, body.target) for guess in detected]
    via = [_via(route) for route in routes]
    if any(via):
        beam = {"beam_size": max(n_best, config.beam_size)}
        check_budget(texts, config, beam, num_steps=NUM_STEPS)
    jobs = list(map(Job, texts, plans, routes))
    translations = await translate_jobs(service, jobs, n_best=n_best, timeout=config.timeout)
    response: dict[str, Any] = {"translatedText": [ranked[0] for ranked in translations]}
    if body.source.lower() == ANY_LANGUAGE:
        response["detectedLanguage"] = [guess._asdict() for guess in detected]
    if body.alternatives:
        response["alternatives"] = [ranked[1:] for ranked in translations]
    if any(via):
        response["via"] = via
    if isinstance(body.q, str):
        response = {name: value[0] for name, value in response.items()}
    return response


@router.post(
    "/detect",
    openapi_extra=openapi_schema(DetectRequest, media_types=FORM_MEDIA_TYPES),
    responses={200: {"model": list[responses.DetectedLanguageResponse]}},
)
async def detect_language(request: Request) -> list[dict[str, Any]]:
    """Detect the language of a text, among those of the models."""
    body = validate_request(DetectRequest, await read_fields(request))
    check_texts([body.q], request.app.state.config)
    codes = request.app.state.service.registry.language_codes()
    return [guess._asdict() for guess in await asyncio.to_thread(detect, body.q, codes)]


@router.get("/languages", responses={200: {"model": list[responses.LanguageResponse]}})
async def list_languages(request: Request) -> list[dict[str, Any]]:
    """Return the languages, each with its target languages."""
    service: Service = request.app.state.service
    targets = service.registry.target_languages()
    pivots = pivot_targets(service.registry) if service.config.pivot else {}
    languages = []
    for code in service.registry.language_codes():
        via = pivots.get(code, {})
        others = [one for one in (*targets.get(code, ()), *via) if one != code]
        language = {"code": code, "name": language_name(code), "targets": [*others, code]}
        languages.append({**language, "via": via} if via else language)
    return languages


@router.post(
    "/translate_file",
    openapi_extra=openapi_schema(TranslateFileRequest, media_types=("multipart/form-data",)),
    responses={200: {"model": responses.TranslatedFileResponse}},
)
async def translate_file(request: Request) -> Any:
    """Translate a document; the result can be downloaded for some time.

    A client that accepts `text/event-stream` gets an event `progress` after each part, then `done`
    with the response, or `error`.
    """
    config: ServeConfig = request.app.state.config
    if config.workers > 1:  # the download may reach another process
        raise InputError(
            "file translation needs a single worker process", hint="send the text to /translate"
        )
    form = await read_upload(request)
    fields = validate_request(
        TranslateFileRequest, {k: v for k, v in form.items() if isinstance(v, str)}
    )
    upload = form.get("file")
    if not isinstance(upload, UploadFile):
        raise InputError(
            "the file is missing", hint="send it as the field 'file' (multipart/form-data)"
        )
    content, name = await upload.read(), upload.filename or ""
    chosen = find_format(name)
    check_limits({"bytes": (len(content), config.max_file_bytes)})
    service: Service = request.app.state.service
    options = ReadOptions(target=fields.target, max_unpacked_bytes=config.max_unpacked_bytes)
    plan = await asyncio.to_thread(lambda: DocumentPlan(read_document(content, name, options)))
    (guess,) = await _detect_sources(
        service, [" ".join(plan.texts[:100])], fields.source, fields.target
    )
    route = _route_for(service, guess.language, fields.target)

    lang = preferred_language(request.headers)

    async def run(progress: Progress | None = None) -> dict[str, Any]:
        made = await translate_file_job(
            service, Job("", plan, route), timeout=config.file_timeout, progress=progress
        )
        suffix = f".{name.rpartition('.')[2].lower()}"
        key = request.app.state.file_store.add(
            made.content, media_type=chosen.media_type, name=f"translated{suffix}"
        )
        via = _via(route)
        url = {"translatedFileUrl": str(request.url_for("download_file", key=key))}
        notes = [translate_message(note, lang) for note in made.notes]
        extra = {name: value for name, value in (("via", via), ("notes", notes)) if value}
        return {**url, **extra}

    if EVENT_STREAM in request.headers.get("accept", ""):
        job = FileProgress(run)
        events = job.events(await job.start(), request)
        return StreamingResponse(events, media_type=EVENT_STREAM, headers=EVENT_HEADERS)
    return await run()


@router.get(
    "/download_file/{key}",
    response_class=Response,
    responses={
        200: {
            "description": "The file.",
            "content": {
                one.media_type.split(";")[0]: {"schema": {"type": "string"}} for one in FORMATS
            },
        }
    },
)
async def download_file(request: Request, key: str) -> Response:
    """Return a translated file."""
    stored_file = request.app.state.file_store.get(key)
    if stored_file is None:
        raise HTTPException(404, "no such file, or it has expired")
    headers = {
        "Content-Disposition": f'attachment; filename="{stored_file.name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(stored_file.content, media_type=stored_file.media_type, headers=headers)


@router.post("/suggest", status_code=403, response_model=ErrorBody)
async def suggest() -> NoReturn:
    """Reject suggestions: the server stores no texts."""
    raise HTTPException(403, "suggestions are not accepted")


@router.get("/frontend/settings", responses={200: {"model": responses.SettingsResponse}})
async def frontend_settings(request: Request) -> dict[str, Any]:
    """Return the settings that a web page needs."""
    config: ServeConfig = request.app.state.config
    translators = request.app.state.service.registry.list_text_models("translation")
    src, tgt = (
        (translators[0].src, translators[0].tgt) if translators else (ANY_LANGUAGE, ANY_LANGUAGE)
    )
    supports_files = config.workers == 1 and bool(translators)
    return {
        "apiKeys": bool(config.api_keys),
        "charLimit": config.max_characters,
        "filesTranslation": supports_files,
        "frontendTimeout": FRONTEND_TIMEOUT_MS,
        "keyRequired": bool(config.api_keys),
        "language": {
            "source": {"code": src, "name": language_name(src)},
            "target": {"code": tgt, "name": language_name(tgt)},
        },
        "suggestions": False,
        "supportedFilesFormat": list_available() if supports_files else [],
    }


@router.get("/health", responses={200: {"model": responses.HealthResponse}})
async def health(request: Request) -> dict[str, str]:
    """Return whether the models are loaded and requests are accepted."""
    if request.app.state.service.closing.is_set():
        raise HTTPException(503, "the server is shutting down", headers={"Retry-After": "1"})
    return {"status": "ok"}


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Return the Prometheus metrics of this process."""
    collector: Metrics = request.app.state.metrics
    service = request.app.state.service
    content = collector.render(service.count_waiting, service.describe_slots, service.list_loaded)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def warm_up(service: Service) -> None:
    """Load the tables of the language detector, which takes half a second."""
    detect("warm", service.registry.language_codes())


def _route_for(service: Service, source: str, target: str) -> TextModelHandle | PivotRoute | None:
    """Return the model or the two models, or None if the text is in the target language already."""
    try:
        return find_route(service.registry, source, target, pivot=service.config.pivot)
    except AttendoError:
        if source.lower() == target.lower() and target in service.registry.language_codes():
            return None
        raise


def _via(route: TextModelHandle | PivotRoute | None) -> str | None:
    return route.via if isinstance(route, PivotRoute) else None


async def _detect_sources(
    service: Service, texts: Sequence[str], source: str, target: str
) -> list[DetectedLanguage]:
    """Return the given source language, or detect it for each text."""
    if source.lower() != ANY_LANGUAGE:
        return [DetectedLanguage(100.0, source)] * len(texts)
    return await asyncio.to_thread(
        lambda: [detect_source(service.registry, text, target) for text in texts]
    )
