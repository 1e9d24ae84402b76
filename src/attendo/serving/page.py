"""The web application: files that were read once, when the server began.

A request names a file by a path, and the path is looked up in a table: it never touches the disk.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

STATIC = Path(__file__).parent / "static"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/vnd.microsoft.icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".woff2": "font/woff2",
}
NOTICE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Attendo</title>"
    "<p>The web application is not built; the API is here. <code>make web</code> builds it."
    '<p lang="ko">웹 화면이 아직 빌드되지 않았습니다. API는 동작합니다.'
)
router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """One file of the page."""

    content: bytes
    media_type: str
    tag: str


def read_page(folder: Path = STATIC) -> dict[str, Asset]:
    """Read every file of the page, by its path below the folder."""
    found = {"index.html": _make_asset(NOTICE.encode(), ".html")}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix in TYPES:
            name = path.relative_to(folder).as_posix()
            found[name] = _make_asset(path.read_bytes(), path.suffix)
    return found


@router.get("/")
async def show_page(request: Request) -> Response:
    """Give the page itself."""
    return _answer(request, "index.html", "no-cache")


@router.get("/favicon.ico")
async def show_icon(request: Request) -> Response:
    """Give the page's sign, where it has one."""
    return _answer(request, "favicon.ico", "max-age=86400")


@router.get("/app/{path:path}")
async def show_asset(request: Request, path: str) -> Response:
    """Give a file of the page."""
    name = path if path in request.app.state.page else f"app/{path}"
    is_named_by_content = "/assets/" in f"/{path}"
    caching = "public, max-age=31536000, immutable" if is_named_by_content else "no-cache"
    return _answer(request, name, caching)


def _answer(request: Request, name: str, caching: str) -> Response:
    asset: Asset | None = request.app.state.page.get(name)
    if asset is None:
        raise HTTPException(404, "not found")
    headers = {"ETag": asset.tag, "Cache-Control": caching}
    if request.headers.get("if-none-match") == asset.tag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def _make_asset(content: bytes, suffix: str) -> Asset:
    tag = hashlib.sha256(content).hexdigest()[:20]
    return Asset(content, TYPES[suffix], f'"{tag}"')
