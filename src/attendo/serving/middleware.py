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
from attendo.core.message import message
from attendo.serving.access_log import traceback_locations
from attendo.serving.errors import ErrorResponse
from attendo.serving.forms import read_form
from attendo.serving.rate_limit import RateLimiter, client_key

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics

CLIENT_CLOSED_REQUEST = 499
"""The status in the log of a client that went away."""
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
SECURITY_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
PUBLIC_PATHS = ("/", "/favicon.ico", "/health", "/languages", "/frontend/settings", "/openapi.json",
        "/v1/models")  # fmt: skip
"""What is read without a key: the page, and what it must know to ask for one."""
PUBLIC_PREFIXES = ("/app/", "/download_file/")
METHODS = ("GET", "POST", "HEAD", "OPTIONS")
_log = get_logger(__name__)


class RequestRejectedError(Exception):
    """A request that goes no further."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        header_values = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = ErrorResponse(status, reason, headers=header_values)


class GatewayMiddleware:
    """Wraps an ASGI application."""

    def __init__(self, app: ASGIApp, *, config: ServeConfig, metrics: Metrics) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self._rate_limit = RateLimiter(math.ceil(config.requests_per_minute / config.workers))
        self._api_keys = [key.encode() for key in config.api_keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        recorder = _ResponseRecorder(send, request_id=secrets.token_hex(8))
        scope.setdefault("state", {})["request_id"] = recorder.request_id
        start = perf_counter()
        try:
            await self._handle(scope, receive, recorder)
        finally:
            self._record_request(scope, recorder, perf_counter() - start)

    async def _handle(self, scope: Scope, receive: Receive, recorder: _ResponseRecorder) -> None:
        try:
            self._check_content_length(scope)
            body = await self._read_body(receive)
            key = await self._read_api_key(scope, body)
            self._check_rate(scope, key)
            self._check_api_key(scope, key)
            await self._run_app(scope, body, receive, recorder)
        except RequestRejectedError as refused:
            await refused.response(scope, receive, recorder)
        except _ClientDisconnectedError:
            recorder.status = CLIENT_CLOSED_REQUEST
        except asyncio.CancelledError:  # the server ends, and has waited as long as it may
            if recorder.status:
                raise
            shutdown_response = ErrorResponse(
                503,
                "the server is about to end; try again in a moment",
                headers={"Retry-After": "1"},
            )
            await shutdown_response(scope, receive, recorder)
        except Exception as error:  # noqa: BLE001 - nobody sees more than that it happened
            _log.error(
                "internal error", extra={"facts": _describe_error(recorder.request_id, error)}
            )
            if recorder.status:  # too late for another answer: the connection breaks off
                raise RuntimeError("the answer broke off") from None
            await ErrorResponse(500, "internal error")(scope, receive, recorder)

    def _check_content_length(self, scope: Scope) -> None:
        content_length = Headers(scope=scope).get("content-length", "0")
        if content_length.isdecimal() and int(content_length[:20]) > self.config.max_body_bytes:
            raise self._too_large()

    async def _read_body(self, receive: Receive) -> bytes:
        """Read the whole body, no more than may be, and not for ever."""
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self.config.timeout):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise _ClientDisconnectedError
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > self.config.max_body_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise RequestRejectedError(408, "the request did not arrive in time") from None

    def _too_large(self) -> RequestRejectedError:
        return RequestRejectedError(
            413, message("more than {count} bytes", count=self.config.max_body_bytes)
        )

    async def _read_api_key(self, scope: Scope, body: bytes) -> bytes:
        if not self._api_keys:
            return b""
        return _bearer_key(scope) or _query_key(scope) or await _body_key(scope, body)

    def _check_rate(self, scope: Scope, key: bytes) -> None:
        if scope["method"] != "POST":
            return
        address = (scope.get("client") or ("unknown", 0))[0]
        name = (
            f"key {self._api_keys.index(key)}" if self._is_valid_key(key) else client_key(address)
        )
        wait = self._rate_limit.acquire(name)
        if wait:
            raise RequestRejectedError(429, "too many requests", Retry_After=str(math.ceil(wait)))

    def _check_api_key(self, scope: Scope, key: bytes) -> None:
        path, is_get = scope["path"], scope["method"] in ("GET", "HEAD", "OPTIONS")
        if not self._api_keys or (
            is_get and (path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES))
        ):
            return
        if not self._is_valid_key(key):
            reason = "Invalid API key" if key else "an API key is needed"
            raise RequestRejectedError(403, reason, WWW_Authenticate="Bearer")

    def _is_valid_key(self, candidate: bytes) -> bool:
        matches = [
            hmac.compare_digest(candidate, key) for key in self._api_keys
        ]  # all: in equal time
        return any(matches)

    async def _run_app(
        self, scope: Scope, body: bytes, receive: Receive, recorder: _ResponseRecorder
    ) -> None:
        """Run the application until it has answered or the client has gone."""
        disconnected = asyncio.Event()
        app_task = asyncio.ensure_future(self.app(scope, _replay(body, disconnected), recorder))
        disconnect_task = asyncio.ensure_future(_wait_for_disconnect(receive))
        try:
            await asyncio.wait({app_task, disconnect_task}, return_when=asyncio.FIRST_COMPLETED)
            disconnected.set()
            if app_task.done() or recorder.is_complete:
                await app_task
                return
            raise _ClientDisconnectedError
        finally:
            for task in (disconnect_task, app_task):
                task.cancel()
            await asyncio.gather(disconnect_task, app_task, return_exceptions=True)

    def _record_request(self, scope: Scope, recorder: _ResponseRecorder, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        status = recorder.status or CLIENT_CLOSED_REQUEST
        self.metrics.count_request(route, method, status, seconds)
        if self.config.log_requests:
            fields = {
                "request": recorder.request_id,
                "method": method,
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
                "bytes": recorder.size,
            }
            _log.info("request", extra={"facts": fields})


class _ClientDisconnectedError(Exception):
    """The client has gone."""


class _ResponseRecorder:
    """Sends an answer with our headers, and remembers what was sent."""

    def __init__(self, send: Send, *, request_id: str) -> None:
        self._send, self.request_id = send, request_id
        self.status = self.size = 0
        self.is_complete = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers.setdefault(name, value)
            headers.setdefault("Cache-Control", "no-store")
            headers["X-Request-ID"] = self.request_id
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
        await self._send(message)


def _replay(body: bytes, disconnected: asyncio.Event) -> Receive:
    """Give the body once, and then the news that the client has gone."""
    is_first = True

    async def receive() -> Message:
        nonlocal is_first
        if is_first:
            is_first = False
            return {"type": "http.request", "body": body, "more_body": False}
        await disconnected.wait()
        return {"type": "http.disconnect"}

    return receive


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _bearer_key(scope: Scope) -> bytes:
    kind, _, key = Headers(scope=scope).get("authorization", "").partition(" ")
    # only spaces: other white space of Latin-1 is part of letters in UTF-8
    return key.strip(" ").encode("latin-1", "replace") if kind.lower() == "bearer" else b""


def _query_key(scope: Scope) -> bytes:
    query: bytes = scope.get("query_string", b"")
    return parse_qs(query.decode("latin-1")).get("api_key", [""])[0].encode("utf-8", "replace")


async def _body_key(scope: Scope, body: bytes) -> bytes:
    """Look where LibreTranslate's clients put the key: a field of the JSON or the form."""
    content_type = Headers(scope=scope).get("content-type", "")
    fields: Any = {}
    try:
        if content_type.startswith("application/json"):
            fields = json.loads(body)
        elif content_type.startswith("multipart/form-data"):
            async with Request(scope, _replay(body, asyncio.Event())).form() as form:
                fields = dict(form)
        else:
            fields = dict(read_form(body))
    except (ValueError, RecursionError, HTTPException):
        return b""
    key = fields.get("api_key") if isinstance(fields, dict) else None
    return str(key).encode("utf-8", "replace") if isinstance(key, str) else b""


def _describe_error(request_id: str, error: BaseException) -> dict[str, Any]:
    return {"request": request_id, "places": traceback_locations(error)}
