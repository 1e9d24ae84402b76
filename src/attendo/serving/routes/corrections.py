"""Routes of the translation memory: save, search, delete, export and import corrections.

They need `attendo serve --memory FILE`. A file is imported as the body of a request with its own
media type, never as a form: another web page cannot send such a request without being asked first
(CORS), so that it cannot fill the memory of a server on the same machine.
"""

from __future__ import annotations

import asyncio
import io
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.exceptions import HTTPException
from starlette.responses import StreamingResponse

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.memory.jsonl import format_jsonl, read_jsonl
from attendo.memory.tmx import format_tmx, read_tmx
from attendo.memory.unit import MAX_NAME_CHARACTERS, Unit, format_time
from attendo.serving.limits import check_limits
from attendo.serving.memory import get_memory
from attendo.serving.routes import corrections_schemas as schemas
from attendo.serving.routes.v1_schemas import ErrorBody
from attendo.serving.served_model import TEXT_OUTPUT_TASKS
from attendo.serving.strict_json import StrictRoute
from attendo.text.languages import normalize_code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.memory.store import AddedUnits, TranslationMemory
    from attendo.serving.service import Service

MAX_ID = 2**63 - 1
MAX_PAGE = 200
TMX_MEDIA_TYPES = ("application/x-tmx+xml", "application/xml", "text/xml")
JSONL_MEDIA_TYPES = ("application/jsonl", "application/x-ndjson")
MEDIA_TYPES = {
    "tmx": "application/x-tmx+xml; charset=utf-8",
    "jsonl": "application/jsonl; charset=utf-8",
}
EXPORT_PARTS = 500
"""Units that are sent at a time."""

router = APIRouter(
    prefix="/v1/corrections",
    route_class=StrictRoute,
    tags=["translation memory"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)
UnitId = Annotated[int, Path(ge=1, le=MAX_ID)]
LanguageFilter = Annotated[str | None, Query(min_length=1, max_length=100)]


@router.post("", summary="Save a correction")
async def save_correction(
    body: schemas.CorrectionRequest, request: Request
) -> schemas.CorrectionResponse:
    """Store a translation; it replaces an earlier one of the same text, and is used from now on."""
    service: Service = request.app.state.service
    memory = get_memory(service)
    unit = _make_unit(body, service)
    return await asyncio.to_thread(_save, memory, unit)


@router.get("", summary="List and search corrections")
async def list_corrections(
    request: Request,
    q: Annotated[str, Query(max_length=1000)] = "",
    source: LanguageFilter = None,
    target: LanguageFilter = None,
    before: Annotated[int | None, Query(ge=1, le=MAX_ID)] = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50,
) -> schemas.CorrectionsResponse:
    """Return the units whose source or target has a text, newest first."""
    memory = get_memory(request.app.state.service)
    languages = [None if one is None else normalize_code(one) for one in (source, target)]

    def search() -> schemas.CorrectionsResponse:
        units = memory.search(
            q, src_lang=languages[0], tgt_lang=languages[1], before=before, limit=limit + 1
        )
        shown = units[:limit]
        return schemas.CorrectionsResponse(
            corrections=[present_unit(one) for one in shown],
            num_units=memory.count(),
            next_before=shown[-1].id if len(units) > limit else None,
        )

    return await asyncio.to_thread(search)


@router.delete("/{unit_id}", summary="Delete a correction")
async def delete_correction(unit_id: UnitId, request: Request) -> schemas.DeletedResponse:
    """Delete a unit by its number."""
    memory = get_memory(request.app.state.service)
    if not await asyncio.to_thread(memory.delete, unit_id):
        raise HTTPException(404, "no such correction")
    return schemas.DeletedResponse(deleted=unit_id)


@router.get(
    "/export",
    summary="Download all corrections",
    response_class=StreamingResponse,
    responses={
        200: {
            "description": "A file: TMX 1.4, or JSON Lines.",
            "content": {
                kind.split(";")[0]: {"schema": {"type": "string"}} for kind in MEDIA_TYPES.values()
            },
        }
    },
)
async def export_corrections(
    request: Request,
    format: schemas.ExportFormat = "tmx",  # noqa: A002 - the name in the API
) -> StreamingResponse:
    """Return all units in one file."""
    memory = get_memory(request.app.state.service)
    parts = format_tmx(memory) if format == "tmx" else format_jsonl(memory)
    headers = {"Content-Disposition": f'attachment; filename="corrections.{format}"'}
    return StreamingResponse(_join_parts(parts), media_type=MEDIA_TYPES[format], headers=headers)


@router.post(
    "/import",
    summary="Import a file of translations",
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {
                kind: {"schema": {"type": "string"}}
                for kind in (*TMX_MEDIA_TYPES, *JSONL_MEDIA_TYPES)
            },
        }
    },
)
async def import_corrections(request: Request) -> schemas.ImportedResponse:
    """Add the units of a TMX or JSON Lines file, which is the body of the request: all or none."""
    service: Service = request.app.state.service
    memory = get_memory(service)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type not in (*TMX_MEDIA_TYPES, *JSONL_MEDIA_TYPES):
        raise HTTPException(
            415, "send a TMX file as application/xml, or JSON Lines as application/jsonl"
        )
    content = await request.body()
    check_limits({"bytes": (len(content), service.config.max_body_bytes)})
    skipped: list[int] = []

    def add() -> AddedUnits:
        stream = io.BytesIO(content)
        if media_type in TMX_MEDIA_TYPES:
            units = read_tmx(stream, skipped.append)
        else:
            units = read_jsonl(stream)
        first = next(units, None)
        if first is None:
            raise InputError("the file has no translations", hint="each unit needs two languages")
        return memory.add([first, *units])

    added = await asyncio.to_thread(add)
    return schemas.ImportedResponse(**added._asdict(), skipped=sum(skipped))


def present_unit(unit: Unit) -> schemas.CorrectionResponse:
    """Describe a unit."""
    return schemas.CorrectionResponse(
        id=unit.id,
        source=unit.src_lang,
        target=unit.tgt_lang,
        source_text=unit.source,
        target_text=unit.target,
        model=unit.model,
        output=unit.output,
        author=unit.author,
        time=format_time(unit.time),
        origin=unit.origin,
    )


def _make_unit(body: schemas.CorrectionRequest, service: Service) -> Unit:
    languages: dict[str, Any] = {"source": body.source, "target": body.target}
    if body.model is not None:
        served = service.registry.get_text_model(body.model, *TEXT_OUTPUT_TASKS)
        languages = {"source": body.source or served.src, "target": body.target or served.tgt}
    missing = [name for name, lang in languages.items() if lang in (None, "auto")]
    if missing:
        raise InputError(
            message("{name}: a correction needs its language", name=missing[0]),
            hint="give source and target, or a model that records them",
        )
    return Unit(
        body.source_text,
        body.target_text,
        languages["source"],
        languages["target"],
        model=body.model,
        output=body.output,
        author=(body.author or "").strip()[:MAX_NAME_CHARACTERS] or None,
    )


def _save(memory: TranslationMemory, unit: Unit) -> schemas.CorrectionResponse:
    memory.add([unit])
    stored = memory.find_exact(unit.source, unit.src_lang, unit.tgt_lang)
    if stored is None:  # deleted by another request
        raise HTTPException(404, "no such correction")
    return present_unit(stored)


def _join_parts(parts: Iterator[str]) -> Iterator[bytes]:
    """Yield many parts at a time: each costs a switch of threads."""
    joined: list[str] = []
    for part in parts:
        joined.append(part)
        if len(joined) == EXPORT_PARTS:
            yield "".join(joined).encode()
            joined.clear()
    yield "".join(joined).encode()
