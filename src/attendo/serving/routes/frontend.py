"""Serves the web application from files that are read once, at startup.

The path of a request is looked up in a table; it never touches the disk.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from attendo.serving.openapi import render_schema

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
COMPRESSED_SUFFIXES = (".css", ".html", ".js", ".json", ".svg")
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
    compressed: bytes
    """The content in gzip; empty if it is compressed already."""


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


@router.get("/docs")
async def get_docs(request: Request) -> Response:
    """Return the page of the API."""
    name = "docs.html" if "docs.html" in request.app.state.assets else "index.html"
    return _asset_response(request, name, "no-cache")


@router.get("/openapi.json")
def get_openapi(request: Request) -> Response:
    """Return the schema, with examples for the models of this server."""
    return Response(render_schema(request.app), media_type="application/json")


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
    headers["Vary"] = "Accept-Encoding"
    if matches_etag(request.headers.get("if-none-match", ""), asset.etag):
        return Response(status_code=304, headers=headers)
    content = asset.content
    if asset.compressed and accepts_gzip(request.headers.get("accept-encoding", "")):
        content, headers["Content-Encoding"] = asset.compressed, "gzip"
        headers["ETag"] = f"W/{asset.etag}"
    return Response(content, media_type=asset.media_type, headers=headers)


def matches_etag(header: str, etag: str) -> bool:
    """Return whether If-None-Match names a tag; proxies that compress mark it as weak.

    >>> matches_etag('"a", W/"b"', '"b"'), matches_etag("*", '"b"'), matches_etag('"a"', '"b"')
    (True, True, False)
    """
    tags = [tag.strip().removeprefix("W/") for tag in header.split(",")]
    return "*" in tags or etag in tags


def accepts_gzip(header: str) -> bool:
    """Return whether Accept-Encoding allows gzip.

    >>> accepts_gzip("br, gzip"), accepts_gzip("gzip;q=0, br"), accepts_gzip("")
    (True, False, False)
    """
    found = re.search(r"\bgzip\b(?:\s*;\s*q=([\d.]+))?", header.lower())
    return found is not None and found[1] not in ("0", "0.0", "0.00", "0.000")


def _make_asset(content: bytes, suffix: str) -> Asset:
    digest = hashlib.sha256(content).hexdigest()[:20]
    compressed = gzip.compress(content, mtime=0) if suffix in COMPRESSED_SUFFIXES else b""
    return Asset(content, MEDIA_TYPES[suffix], f'"{digest}"', compressed)
