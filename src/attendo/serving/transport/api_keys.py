"""API keys: where a request carries its key, and which requests need one."""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from attendo.serving.forms import MULTIPART, read_form, read_multipart
from attendo.serving.strict_json import parse_json, parse_off_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import Scope

PUBLIC_PATHS = ("/", "/docs", "/favicon.ico", "/health", "/languages", "/frontend/settings",
        "/openapi.json", "/v1/models")  # fmt: skip
"""Paths that need no key: the web page, and what it reads before it asks for one."""
PUBLIC_PREFIXES = ("/app/", "/download_file/")


class ApiKeys:
    """The valid keys; without any, no request needs one."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = [key.encode() for key in keys]

    async def read(self, scope: Scope, body: bytes) -> bytes:
        """Return the key of a request, valid or not; b"" if there is none."""
        if not self._keys:
            return b""
        return _bearer_key(scope) or _query_key(scope) or await _body_key(scope, body)

    def index(self, candidate: bytes) -> int | None:
        """Return the index of a valid key, else None."""
        # Every key is compared, so that the time does not depend on which one matches.
        matches = [hmac.compare_digest(candidate, key) for key in self._keys]
        return matches.index(True) if any(matches) else None

    def allows(self, scope: Scope, key: bytes) -> bool:
        """Return whether a request may proceed with this key."""
        path, is_read = scope["path"], scope["method"] in ("GET", "HEAD", "OPTIONS")
        is_public = is_read and (path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES))
        return not self._keys or is_public or self.index(key) is not None


def _bearer_key(scope: Scope) -> bytes:
    kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    # Strip spaces only: other Latin-1 white space may be part of a UTF-8 character.
    return key.strip(" ").encode("latin-1", "replace") if kind.lower() == "bearer" else b""


def _query_key(scope: Scope) -> bytes:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("api_key", [""])[0].encode("utf-8", "replace")


async def _body_key(scope: Scope, body: bytes) -> bytes:
    """Return the field `api_key` of the JSON or the form, as LibreTranslate clients send it."""
    content_type = Headers(scope=scope).get("content-type", "")
    fields: Any = {}
    try:
        if content_type.startswith("application/json"):
            fields = await parse_off_loop(parse_json, body)
        elif content_type.startswith(MULTIPART):
            fields = dict(await read_multipart(scope, body))
        else:
            fields = dict(await parse_off_loop(read_form, body))
    except (ValueError, RecursionError, HTTPException):
        return b""
    key = fields.get("api_key") if isinstance(fields, dict) else None
    return key.encode("utf-8", "replace") if isinstance(key, str) else b""
