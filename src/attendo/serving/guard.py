"""What stands before every route: limits, keys, headers, and an eye on clients that go away.

The body is read here, bounded in bytes and in time, before a route sees the request. A client that
goes away has its work cancelled. Each request leaves a line in the log and a mark in the figures,
with the pattern of its route and never a word that the client wrote.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import math
import secrets
from time import perf_counter
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request

from attendo.core.logs import get_logger
from attendo.serving.answers import ErrorAnswer
from attendo.serving.forms import read_form
from attendo.serving.json_log import word_places
from attendo.serving.limits import RateLimit, name_address

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics

GONE = 499
"""The status in the log of a client that went away."""
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
OPEN = ("/", "/favicon.ico", "/health", "/languages", "/frontend/settings", "/openapi.json",
        "/v1/models")  # fmt: skip
"""What is read without a key: the page, and what it must know to ask for one."""
OPEN_BELOW = ("/app/", "/download_file/")
METHODS = ("GET", "POST", "HEAD", "OPTIONS")
_log = get_logger(__name__)


class RefusedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.answer = ErrorAnswer(status, reason, headers=named)


class Guard:
    """Wraps an ASGI application."""

    def __init__(self, app: ASGIApp, *, config: ServeConfig, metrics: Metrics) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self._limit = RateLimit(math.ceil(config.requests_per_minute / config.workers))
        self._keys = [key.encode() for key in config.api_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send, request_id=secrets.token_hex(8))
        scope.setdefault("state", {})["request_id"] = answer.request_id
        begin = perf_counter()
        try:
            await self._answer(scope, receive, answer)
        finally:
            self._record(scope, answer, perf_counter() - begin)

    async def _answer(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        try:
            self._check_length(scope)
            body = await self._read(receive)
            key = await self._find_key(scope, body)
            self._check_rate(scope, key)
            self._check_key(scope, key)
            await self._run(scope, body, receive, answer)
        except RefusedError as refused:
            await refused.answer(scope, receive, answer)
        except _GoneError:
            answer.status = GONE
        except asyncio.CancelledError:  # the server ends, and has waited as long as it may
            if answer.status:
                raise
            ending = ErrorAnswer(
                503,
                "the server is about to end; try again in a moment",
                headers={"Retry-After": "1"},
            )
            await ending(scope, receive, answer)
        except Exception as error:  # noqa: BLE001 - nobody sees more than that it happened
            _log.error("internal error", extra={"facts": _word_error(answer.request_id, error)})
            if answer.status:  # too late for another answer: the connection breaks off
                raise RuntimeError("the answer broke off") from None
            await ErrorAnswer(500, "internal error")(scope, receive, answer)

    def _check_length(self, scope: Scope) -> None:
        told = Headers(scope=scope).get("content-length", "0")
        if told.isdecimal() and int(told[:20]) > self.config.max_body_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive) -> bytes:
        """Read the whole body, no more than may be, and not for ever."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.config.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _GoneError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.config.max_body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise RefusedError(408, "the request did not arrive in time") from None

    def _too_large(self) -> RefusedError:
        return RefusedError(413, f"more than {self.config.max_body_bytes} bytes")

    async def _find_key(self, scope: Scope, body: bytes) -> bytes:
        if not self._keys:
            return b""
        return _find_bearer(scope) or _find_in_query(scope) or await _find_in_body(scope, body)

    def _check_rate(self, scope: Scope, key: bytes) -> None:
        if scope["method"] != "POST":
            return
        address = (scope.get("client") or ("unknown", 0))[0]
        name = f"key {self._keys.index(key)}" if self._is_key(key) else name_address(address)
        wait = self._limit.take(name)
        if wait:
            raise RefusedError(429, "too many requests", Retry_After=str(math.ceil(wait)))

    def _check_key(self, scope: Scope, key: bytes) -> None:
        path, is_get = scope["path"], scope["method"] in ("GET", "HEAD", "OPTIONS")
        if not self._keys or (is_get and (path in OPEN or path.startswith(OPEN_BELOW))):
            return
        if not self._is_key(key):
            reason = "Invalid API key" if key else "an API key is needed"
            raise RefusedError(403, reason, WWW_Authenticate="Bearer")

    def _is_key(self, given: bytes) -> bool:
        matches = [hmac.compare_digest(given, key) for key in self._keys]  # all: in equal time
        return any(matches)

    async def _run(self, scope: Scope, body: bytes, receive: Receive, answer: _Answer) -> None:
        """Run the application until it has answered or the client has gone."""
        gone = asyncio.Event()
        work = asyncio.ensure_future(self.app(scope, _replay(body, gone), answer))
        watch = asyncio.ensure_future(_wait_until_gone(receive))
        try:
            await asyncio.wait({work, watch}, return_when=asyncio.FIRST_COMPLETED)
            gone.set()
            if work.done() or answer.is_complete:
                await work
                return
            raise _GoneError
        finally:
            for task in (watch, work):
                task.cancel()
            await asyncio.gather(watch, work, return_exceptions=True)

    def _record(self, scope: Scope, answer: _Answer, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        status = answer.status or GONE
        self.metrics.count_request(route, method, status, seconds)
        if self.config.log_requests:
            facts = {
                "request": answer.request_id,
                "method": method,
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
                "bytes": answer.size,
            }
            _log.info("request", extra={"facts": facts})


class _GoneError(Exception):
    """The client has gone."""


class _Answer:
    """Sends an answer with our headers, and remembers what was sent."""

    def __init__(self, send: Send, *, request_id: str) -> None:
        self._send, self.request_id = send, request_id
        self.status = self.size = 0
        self.is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
            headers["X-Request-ID"] = self.request_id
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
        await self._send(message)


def _replay(body: bytes, gone: asyncio.Event) -> Receive:
    """Give the body once, and then the news that the client has gone."""
    is_new = True

    async def receive() -> Message:
        nonlocal is_new
        if is_new:
            is_new = False
            return {"type": "http.request", "body": body, "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    return receive


async def _wait_until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _find_bearer(scope: Scope) -> bytes:
    kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    # only spaces: other white space of Latin-1 is part of letters in UTF-8
    return key.strip(" ").encode("latin-1", "replace") if kind.lower() == "bearer" else b""


def _find_in_query(scope: Scope) -> bytes:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("api_key", [""])[0].encode("utf-8", "replace")


async def _find_in_body(scope: Scope, body: bytes) -> bytes:
    """Look where LibreTranslate's clients put the key: a field of the JSON or the form."""
    kind = Headers(scope=scope).get("content-type", "")
    fields: Any = {}
    try:
        if kind.startswith("application/json"):
            fields = json.loads(body)
        elif kind.startswith("multipart/form-data"):
            async with Request(scope, _replay(body, asyncio.Event())).form() as form:
                fields = dict(form)
        else:
            fields = dict(read_form(body))
    except (ValueError, RecursionError, HTTPException):
        return b""
    key = fields.get("api_key") if isinstance(fields, dict) else None
    return str(key).encode("utf-8", "replace") if isinstance(key, str) else b""


def _word_error(request_id: str, error: BaseException) -> dict[str, Any]:
    return {"request": request_id, "places": word_places(error)}
