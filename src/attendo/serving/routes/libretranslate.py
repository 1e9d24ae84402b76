"""LibreTranslate-compatible routes; its clients work unchanged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from attendo.core.errors import AttendoError, InputError
from attendo.core.message import message
from attendo.serving.forms import MAX_FIELDS
from attendo.serving.html_segments import SegmentedDocument, split_html
from attendo.serving.language_detection import DetectedLanguage, detect, language_name
from attendo.serving.limits import check_limits, check_texts
from attendo.serving.model_registry import ANY_LANGUAGE
from attendo.serving.routes.libretranslate_schemas import (
    FORM_MEDIA_TYPES,
    DetectRequest,
    TranslateFileRequest,
    TranslateRequest,
    openapi_schema,
    read_fields,
    validate_request,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics
    from attendo.serving.served_model import TextModelHandle
    from attendo.serving.service import Service

FILE_MEDIA_TYPES = {".txt": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8"}
FRONTEND_TIMEOUT_MS = 500
"""Delay between the last key press and the request of a web page."""
router = APIRouter(tags=["LibreTranslate"])


@router.post(
    "/translate",
    openapi_extra=openapi_schema(
        TranslateRequest,
        {"translatedText": "I am a student.", "alternatives": []},
        media_types=FORM_MEDIA_TYPES,
    ),
)
async def translate(request: Request) -> dict[str, Any]:
    """Translate a text, or a list of texts."""
    body = validate_request(TranslateRequest, await read_fields(request))
    config: ServeConfig = request.app.state.config
    texts = [body.q] if isinstance(body.q, str) else body.q
    check_texts(texts, config, num_texts=len(texts))
    check_limits({"alternatives": (body.alternatives, config.max_alternatives)})
    service: Service = request.app.state.service
    detected = [await _detect_source(service, text, body.source) for text in texts]
    documents = [
        await asyncio.to_thread(split_html, text) if body.format == "html" else None
        for text in texts
    ]
    jobs = zip(texts, documents, detected, strict=True)
    translations = await _translate_all(
        service, list(jobs), body.target, n_best=1 + body.alternatives, timeout=config.timeout
    )
    response: dict[str, Any] = {"translatedText": [ranked[0] for ranked in translations]}
    if body.source.lower() == ANY_LANGUAGE:
        response["detectedLanguage"] = [guess._asdict() for guess in detected]
    if body.alternatives:
        response["alternatives"] = [ranked[1:] for ranked in translations]
    if isinstance(body.q, str):
        response = {name: value[0] for name, value in response.items()}
    return response


@router.post(
    "/detect",
    openapi_extra=openapi_schema(
        DetectRequest, [{"confidence": 99.8, "language": "ko"}], media_types=FORM_MEDIA_TYPES
    ),
)
async def detect_language(request: Request) -> list[dict[str, Any]]:
    """Detect the language of a text, among those of the models."""
    body = validate_request(DetectRequest, await read_fields(request))
    check_texts([body.q], request.app.state.config)
    codes = _language_codes(request.app.state.service)
    return [guess._asdict() for guess in await asyncio.to_thread(detect, body.q, codes)]


@router.get("/languages")
async def list_languages(request: Request) -> list[dict[str, Any]]:
    """Return the languages, each with its target languages."""
    service: Service = request.app.state.service
    targets = service.registry.target_languages()
    return [
        {
            "code": code,
            "name": language_name(code),
            "targets": [*(one for one in targets.get(code, ()) if one != code), code],
        }
        for code in _language_codes(service)
    ]


@router.post(
    "/translate_file",
    openapi_extra=openapi_schema(
        TranslateFileRequest, {"translatedFileUrl": "http://127.0.0.1:8765/download_file/..."},
        media_types=("multipart/form-data",),
    ),
)  # fmt: skip
async def translate_file(request: Request) -> dict[str, str]:
    """Translate a text or HTML file; the result can be downloaded for some time."""
    config: ServeConfig = request.app.state.config
    if config.workers > 1:  # the download may reach another process
        raise InputError(
            "file translation needs a single worker process", hint="send the text to /translate"
        )
    async with request.form(max_files=1, max_fields=MAX_FIELDS) as form:
        fields = validate_request(
            TranslateFileRequest, {k: v for k, v in form.items() if isinstance(v, str)}
        )
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise InputError(
                "the file is missing", hint="send it as the field 'file' (multipart/form-data)"
            )
        content, name = await upload.read(), upload.filename or ""
    suffix = _file_suffix(name)
    text = _decode_file(content, config)
    service: Service = request.app.state.service
    document = await asyncio.to_thread(split_html if suffix == ".html" else split_lines, text)
    job = (
        text,
        document,
        await _detect_source(service, " ".join(document.texts[:100]), fields.source),
    )
    (translations,) = await _translate_all(
        service, [job], fields.target, n_best=1, timeout=config.file_timeout
    )
    key = request.app.state.file_store.add(
        translations[0].encode(), media_type=FILE_MEDIA_TYPES[suffix], name=f"translated{suffix}"
    )
    return {"translatedFileUrl": str(request.url_for("download_file", key=key))}


@router.get("/download_file/{key}", include_in_schema=False)
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


@router.post("/suggest", status_code=403)
async def suggest() -> dict[str, str]:
    """Reject suggestions: the server stores no texts."""
    return {"error": "suggestions are not accepted"}


@router.get("/frontend/settings")
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
        "supportedFilesFormat": list(FILE_MEDIA_TYPES) if supports_files else [],
    }


@router.get("/health")
async def health(request: Request) -> dict[str, str]:
    """Return whether the models are loaded and requests are accepted."""
    if request.app.state.service.closing.is_set():
        raise HTTPException(503, "the server is shutting down", headers={"Retry-After": "1"})
    return {"status": "ok"}


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Return the Prometheus metrics of this process."""
    collector: Metrics = request.app.state.metrics
    content = collector.render(request.app.state.service.count_waiting)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def warm_up(service: Service) -> None:
    """Load the tables of the language detector, which takes half a second."""
    detect("warm", _language_codes(service))


def split_lines(text: str) -> SegmentedDocument:
    """Split a plain text at its line breaks, which are kept.

    >>> split_lines("one" + chr(10) + chr(10) + "two").texts
    ['one', 'two']
    """
    segments = text.splitlines(keepends=True)
    text_indices = [index for index, segment in enumerate(segments) if segment.strip()]
    return _PlainTextDocument(tuple(segments), tuple(text_indices))


class _PlainTextDocument(SegmentedDocument):
    """A plain text, without escapes."""

    @property
    def texts(self) -> list[str]:
        return [self.segments[index].strip() for index in self.text_indices]

    def replace_texts(self, texts: Sequence[str]) -> str:
        segments = list(self.segments)
        for index, text in zip(self.text_indices, texts, strict=True):
            segments[index] = segments[index].replace(segments[index].strip(), text, 1)
        return "".join(segments)


async def _translate_all(
    service: Service,
    jobs: Sequence[tuple[str, SegmentedDocument | None, DetectedLanguage]],
    target: str,
    *,
    n_best: int,
    timeout: float,
) -> list[list[str]]:
    """Translate texts and documents, each with the model for its language; return n-best lists."""
    job_texts = [document.texts if document is not None else [text] for text, document, _ in jobs]
    models = [_model_for(service, guess.language, target) for _, _, guess in jobs]
    translations: list[list[list[str]]] = [[[text] for text in texts] for texts in job_texts]
    options = {"n_best": n_best, "beam_size": max(n_best, service.config.beam_size)}
    for served in {id(model): model for model in models if model is not None}.values():
        indices = [index for index, model in enumerate(models) if model is served]
        flat = [text for index in indices for text in job_texts[index]]
        results = iter(await service.translate(served, flat, options, timeout=timeout))
        for index in indices:
            translations[index] = [
                [str(best), *map(str, best.alternatives)]
                for best in (next(results) for _ in job_texts[index])
            ]
    return [
        _assemble_n_best(document, segments)
        for (_, document, _), segments in zip(jobs, translations, strict=True)
    ]


def _assemble_n_best(document: SegmentedDocument | None, segments: list[list[str]]) -> list[str]:
    """Join the segments of a document: all the best ones, then all the second best."""
    if document is None:
        return segments[0]
    depth = max(map(len, segments), default=1)
    return [document.replace_texts([ranked[min(rank, len(ranked) - 1)] for ranked in segments])
            for rank in range(depth)]  # fmt: skip


def _model_for(service: Service, source: str, target: str) -> TextModelHandle | None:
    """Return the model, or None if the text is in the target language already."""
    try:
        return service.registry.find_for_languages(source, target)
    except AttendoError:
        if source.lower() == target.lower() and target in _language_codes(service):
            return None
        raise


async def _detect_source(service: Service, text: str, source: str) -> DetectedLanguage:
    """Return the given source language, or detect it."""
    if source.lower() != ANY_LANGUAGE:
        return DetectedLanguage(100.0, source)
    return (await asyncio.to_thread(detect, text, _language_codes(service)))[0]


def _language_codes(service: Service) -> list[str]:
    targets = service.registry.target_languages()
    return list(dict.fromkeys([*targets, *(code for codes in targets.values() for code in codes)]))


def _file_suffix(name: str) -> str:
    extension = name.lower().rpartition(".")[2]
    suffix = ".html" if extension in ("htm", "html") else f".{extension}"
    if suffix not in FILE_MEDIA_TYPES:
        raise InputError(
            "unsupported file type",
            hint=message("supported: {suffixes}", suffixes=", ".join(FILE_MEDIA_TYPES)),
        )
    return suffix


def _decode_file(content: bytes, config: ServeConfig) -> str:
    check_limits({"bytes": (len(content), config.max_file_bytes)})
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is not valid UTF-8", hint="convert it to UTF-8") from None
