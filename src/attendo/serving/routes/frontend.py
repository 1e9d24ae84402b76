"""Serves the web application from files that are read once, at startup.

The path of a request is looked up in a table; it never touches the disk.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

STATIC_DIR = Path(__file__).parents[1] / "static"
MEDIA_TYPES = {
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
NOT_BUILT_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Attendo</title>"
    "<p>The web application is not built; the API works. Build it with <code>make web</code>."
    '<p lang="ko">웹 화면이 아직 빌드되지 않았습니다. API는 동작합니다. '
    "<code>make web</code>으로 빌드하세요."
)
router = APIRouter(include_in_schema=False)


class Asset(NamedTuple):
    """One file of the web application."""

    content: bytes
    media_type: str
    etag: str


def load_assets(folder: Path = STATIC_DIR) -> dict[str, Asset]:
    """Return every file, by its path relative to the folder."""
    assets = {"index.html": _make_asset(NOT_BUILT_PAGE.encode(), ".html")}
    for path in sorted(folder.rglob("*")) if folder.is_dir() else ():
        if path.is_file() and path.suffix in MEDIA_TYPES:
            name = path.relative_to(folder).as_posix()
            assets[name] = _make_asset(path.read_bytes(), path.suffix)
    return assets


@router.get("/")
async def get_index(request: Request) -> Response:
    """Return the page."""
    return _asset_response(request, "index.html", "no-cache")


@router.get("/favicon.ico")
async def get_favicon(request: Request) -> Response:
    """Return the icon."""
    return _asset_response(request, "favicon.ico", "max-age=86400")


@router.get("/app/{path:path}")
async def get_asset(request: Request, path: str) -> Response:
    """Return a file."""
    name = path if path in request.app.state.assets else f"app/{path}"
    is_content_hashed = "/assets/" in f"/{path}"
    cache_control = "public, max-age=31536000, immutable" if is_content_hashed else "no-cache"
    return _asset_response(request, name, cache_control)


def _asset_response(request: Request, name: str, cache_control: str) -> Response:
    asset: Asset | None = request.app.state.assets.get(name)
    if asset is None:
        raise HTTPException(404, "not found")
    headers = {"ETag": asset.etag, "Cache-Control": cache_control}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.media_type, headers=headers)


def _make_asset(content: bytes, suffix: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:20]
    return Asset(content, MEDIA_TYPES[suffix], f'"{digest}"')
