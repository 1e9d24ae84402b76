"""The routes of LibreTranslate, in its shapes: its clients work unchanged."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from attendo.core.errors import AttendoError, InputError
from attendo.serving.forms import MOST_FIELDS
from attendo.serving.languages import Guess, detect, get_name
from attendo.serving.libre_bodies import (
    FORMS,
    DetectBody,
    FileFields,
    TranslateBody,
    describe,
    read_fields,
    validate,
)
from attendo.serving.markup import Page, split_page
from attendo.serving.registry import AUTO
from attendo.serving.service import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics
    from attendo.serving.served import Served
    from attendo.serving.service import Service

FILES = {".txt": "text/plain; charset=utf-8", ".html": "text/html; charset=utf-8"}
FRONTEND_MILLISECONDS = 500
"""How long a page should wait after a key before it asks."""
router = APIRouter(tags=["LibreTranslate"])


@router.post(
    "/translate",
    openapi_extra=describe(
        TranslateBody, {"translatedText": "I am a student.", "alternatives": []}, kinds=FORMS
    ),
)
async def translate(request: Request) -> dict[str, Any]:
    """Translate a text, or a list of texts."""
    body = validate(TranslateBody, await read_fields(request))
    config: ServeConfig = request.app.state.config
    texts: list[str] = clean([body.q] if isinstance(body.q, str) else body.q)
    check_texts(config, texts)
    if body.alternatives > config.max_alternatives:
        reason = f"{body.alternatives} alternatives"
        raise InputError(reason, remedy=f"ask for {config.max_alternatives} at most")
    service: Service = request.app.state.service
    guesses = [await _guess(service, text, body.source) for text in texts]
    pages = [
        await asyncio.to_thread(split_page, text) if body.format == "html" else None
        for text in texts
    ]
    jobs = zip(texts, pages, guesses, strict=True)
    made = await _translate_all(
        service, list(jobs), body.target, n_best=1 + body.alternatives, timeout=config.timeout
    )
    answer: dict[str, Any] = {"translatedText": [ranked[0] for ranked in made]}
    if body.source.lower() == AUTO:
        answer["detectedLanguage"] = [guess._asdict() for guess in guesses]
    if body.alternatives:
        answer["alternatives"] = [ranked[1:] for ranked in made]
    if isinstance(body.q, str):
        answer = {name: value[0] for name, value in answer.items()}
    return answer


@router.post(
    "/detect",
    openapi_extra=describe(DetectBody, [{"confidence": 99.8, "language": "ko"}], kinds=FORMS),
)
async def detect_language(request: Request) -> list[dict[str, Any]]:
    """Tell which language a text is in, among those of the models."""
    body = validate(DetectBody, await read_fields(request))
    check_texts(request.app.state.config, [body.q])
    codes = _list_codes(request.app.state.service)
    return [guess._asdict() for guess in await asyncio.to_thread(detect, body.q, codes)]


@router.get("/languages")
async def list_languages(request: Request) -> list[dict[str, Any]]:
    """Tell which languages there are, and which into which."""
    service: Service = request.app.state.service
    targets = service.registry.targets()
    return [
        {
            "code": code,
            "name": get_name(code),
            "targets": [*(one for one in targets.get(code, ()) if one != code), code],
        }
        for code in _list_codes(service)
    ]


@router.post(
    "/translate_file",
    openapi_extra=describe(
        FileFields, {"translatedFileUrl": "http://127.0.0.1:8765/download_file/..."},
        kinds=("multipart/form-data",),
    ),
)  # fmt: skip
async def translate_file(request: Request) -> dict[str, str]:
    """Translate a text or HTML file; it is kept in memory for a while, under the given address."""
    config: ServeConfig = request.app.state.config
    if config.workers > 1:  # another process may be asked for what this one keeps
        raise InputError("no files with several workers", remedy="send the text to /translate")
    async with request.form(max_files=1, max_fields=MOST_FIELDS) as form:
        fields = validate(FileFields, {k: v for k, v in form.items() if isinstance(v, str)})
        upload = form.get("file")
        if not isinstance(upload, UploadFile):
            raise InputError("no file", remedy="send it as the field 'file' (multipart/form-data)")
        content, name = await upload.read(), upload.filename or ""
    suffix = _find_suffix(name)
    text = _decode_file(content, config)
    service: Service = request.app.state.service
    page = await asyncio.to_thread(split_page if suffix == ".html" else split_lines, text)
    job = (text, page, await _guess(service, " ".join(page.texts[:100]), fields.source))
    (made,) = await _translate_all(
        service, [job], fields.target, n_best=1, timeout=config.file_timeout
    )
    key = request.app.state.shelf.put(
        made[0].encode(), media_type=FILES[suffix], name=f"translated{suffix}"
    )
    return {"translatedFileUrl": str(request.url_for("download_file", key=key))}


@router.get("/download_file/{key}", include_in_schema=False)
async def download_file(request: Request, key: str) -> Response:
    """Give a translated file."""
    kept = request.app.state.shelf.get(key)
    if kept is None:
        raise HTTPException(404, "no such file, or its time is over")
    headers = {
        "Content-Disposition": f'attachment; filename="{kept.name}"',
        "Content-Security-Policy": "default-src 'none'; sandbox",
    }
    return Response(kept.content, media_type=kept.media_type, headers=headers)


@router.post("/suggest", status_code=403)
async def suggest_better() -> dict[str, str]:
    """Take no suggestions: nothing that a client sends is kept."""
    return {"error": "suggestions are not taken here"}


@router.get("/frontend/settings")
async def tell_settings(request: Request) -> dict[str, Any]:
    """Tell what a page has to know."""
    config: ServeConfig = request.app.state.config
    translators = request.app.state.service.registry.list_texts("translation")
    src, tgt = (translators[0].src, translators[0].tgt) if translators else (AUTO, AUTO)
    takes_files = config.workers == 1 and bool(translators)
    return {
        "apiKeys": bool(config.api_keys),
        "charLimit": config.max_characters,
        "filesTranslation": takes_files,
        "frontendTimeout": FRONTEND_MILLISECONDS,
        "keyRequired": bool(config.api_keys),
        "language": {
            "source": {"code": src, "name": get_name(src)},
            "target": {"code": tgt, "name": get_name(tgt)},
        },
        "suggestions": False,
        "supportedFilesFormat": list(FILES) if takes_files else [],
    }


@router.get("/health")
async def tell_health(request: Request) -> dict[str, str]:
    """Tell that the models are there and requests are taken."""
    if request.app.state.service.closing.is_set():
        raise HTTPException(503, "the server is about to end", headers={"Retry-After": "1"})
    return {"status": "ok"}


@router.get("/metrics")
async def tell_metrics(request: Request) -> Response:
    """Give the figures of this process for Prometheus."""
    metrics: Metrics = request.app.state.metrics
    content = metrics.render(request.app.state.service.count_waiting)
    return Response(content, media_type="text/plain; version=0.0.4; charset=utf-8")


def warm_up(service: Service) -> None:
    """Read the detector's tables, which take half a second, before anybody waits for them."""
    detect("warm", _list_codes(service))


def check_texts(config: ServeConfig, texts: Sequence[str]) -> None:
    """Refuse too many, or too long ones."""
    if len(texts) > config.max_texts:
        reason = f"{len(texts)} texts in one request"
        raise InputError(reason, remedy=f"send {config.max_texts} at most")
    longest = max(map(len, texts), default=0)
    if longest > config.max_characters:
        reason = f"a text of {longest} characters"
        raise InputError(reason, remedy=f"send {config.max_characters} at most")


def split_lines(text: str) -> Page:
    """Cut a plain text at its line breaks, which stay as they are.

    >>> split_lines("one" + chr(10) + chr(10) + "two").texts
    ['one', 'two']
    """
    pieces = text.splitlines(keepends=True)
    places = [place for place, piece in enumerate(pieces) if piece.strip()]
    return _Lines(tuple(pieces), tuple(places))


class _Lines(Page):
    """A plain text: nothing in it is escaped."""

    @property
    def texts(self) -> list[str]:
        return [self.pieces[place].strip() for place in self.places]

    def put(self, texts: Sequence[str]) -> str:
        pieces = list(self.pieces)
        for place, text in zip(self.places, texts, strict=True):
            pieces[place] = pieces[place].replace(pieces[place].strip(), text, 1)
        return "".join(pieces)


async def _translate_all(
    service: Service,
    jobs: Sequence[tuple[str, Page | None, Guess]],
    target: str,
    *,
    n_best: int,
    timeout: float,
) -> list[list[str]]:
    """Translate texts and pages, each by the model of its language; give them ranked."""
    parts = [page.texts if page is not None else [text] for text, page, _ in jobs]
    models = [_choose_model(service, guess.language, target) for _, _, guess in jobs]
    made: list[list[list[str]]] = [[[text] for text in texts] for texts in parts]
    options = {"n_best": n_best, "beam_size": max(n_best, service.config.beam_size)}
    for served in {id(model): model for model in models if model is not None}.values():
        places = [place for place, model in enumerate(models) if model is served]
        flat = [text for place in places for text in parts[place]]
        results = iter(await service.translate(served, flat, options, timeout=timeout))
        for place in places:
            made[place] = [
                [str(best), *map(str, best.alternatives)]
                for best in (next(results) for _ in parts[place])
            ]
    return [_rank(page, pieces) for (_, page, _), pieces in zip(jobs, made, strict=True)]


def _rank(page: Page | None, pieces: list[list[str]]) -> list[str]:
    """Put the pieces of a page together: all the best, then all the second best."""
    if page is None:
        return pieces[0]
    depth = max(map(len, pieces), default=1)
    return [page.put([ranked[min(rank, len(ranked) - 1)] for ranked in pieces])
            for rank in range(depth)]  # fmt: skip


def _choose_model(service: Service, source: str, target: str) -> Served | None:
    """Find a model; a text that is in the target language already needs none."""
    try:
        return service.registry.find(source, target)
    except AttendoError:
        if source.lower() == target.lower() and target in _list_codes(service):
            return None
        raise


async def _guess(service: Service, text: str, source: str) -> Guess:
    """Take the language that is told, or find it out."""
    if source.lower() != AUTO:
        return Guess(100.0, source)
    return (await asyncio.to_thread(detect, text, _list_codes(service)))[0]


def _list_codes(service: Service) -> list[str]:
    targets = service.registry.targets()
    return list(dict.fromkeys([*targets, *(code for codes in targets.values() for code in codes)]))


def _find_suffix(name: str) -> str:
    ending = name.lower().rpartition(".")[2]
    suffix = ".html" if ending in ("htm", "html") else f".{ending}"
    if suffix not in FILES:
        raise InputError("a file of another kind", remedy=f"send one of: {', '.join(FILES)}")
    return suffix


def _decode_file(content: bytes, config: ServeConfig) -> str:
    if len(content) > config.max_file_bytes:
        reason = f"a file of {len(content)} bytes"
        raise InputError(reason, remedy=f"send {config.max_file_bytes} at most")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("the file is no UTF-8 text", remedy="convert it first") from None
