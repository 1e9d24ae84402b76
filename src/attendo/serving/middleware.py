"""ASGI middleware: size and rate limits, API keys, security headers, disconnects, access log.

The body is read before a route runs, limited in bytes and in time. The work of a client that
disconnects is cancelled. Each request is logged and counted by the pattern of its route, never by
text of the client.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from time import perf_counter
from typing import TYPE_CHECKING, Any

from starlette.datastructures import MutableHeaders

from attendo.core.logs import get_logger
from attendo.serving.access_log import traceback_locations
from attendo.serving.api_keys import ApiKeys
from attendo.serving.errors import ErrorResponse
from attendo.serving.rate_limit import RateLimiter, client_key
from attendo.serving.request_body import (
    ClientDisconnectedError,
    RequestRejectedError,
    read_body,
    run_until_disconnect,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics

CLIENT_CLOSED_REQUEST = 499
"""Status in the log if the client disconnected."""
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
METHODS = ("GET", "POST", "HEAD", "OPTIONS")
_log = get_logger(__name__)


class GatewayMiddleware:
    """Checks every request, runs the application, and records the response."""

    def __init__(self, app: ASGIApp, *, config: ServeConfig, metrics: Metrics) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self._rate_limit = RateLimiter(math.ceil(config.requests_per_minute / config.workers))
        self._api_keys = ApiKeys(config.api_keys)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
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
            body = await read_body(
                scope, receive, max_bytes=self.config.max_body_bytes, timeout=self.config.timeout
            )
            key = await self._api_keys.read(scope, body)
            self._check_rate(scope, key)
            self._check_api_key(scope, key)
            await run_until_disconnect(
                self.app, scope, body, receive, recorder, is_complete=lambda: recorder.is_complete
            )
        except RequestRejectedError as rejected:
            await rejected.response(scope, receive, recorder)
        except ClientDisconnectedError:
            recorder.status = CLIENT_CLOSED_REQUEST
        except asyncio.CancelledError:  # the grace period of the shutdown is over
            if recorder.status:
                raise
            await ErrorResponse(
                503,
                "the server is shutting down",
                "try again in a moment",
                headers={"Retry-After": "1"},
            )(scope, receive, recorder)
        except Exception as error:  # noqa: BLE001 - clients see no details of internal errors
            fields = {"request": recorder.request_id, "traceback": traceback_locations(error)}
            _log.error("internal error", extra={"fields": fields})
            if recorder.status:  # the response has started: break the connection
                raise RuntimeError("the response was cut off") from None
            await ErrorResponse(500, "internal error")(scope, receive, recorder)

    def _check_rate(self, scope: Scope, key: bytes) -> None:
        if scope["method"] != "POST":
            return
        address = (scope.get("client") or ("unknown", 0))[0]
        index = self._api_keys.index(key)
        wait = self._rate_limit.acquire(client_key(address) if index is None else f"key {index}")
        if wait:
            raise RequestRejectedError(429, "too many requests", Retry_After=str(math.ceil(wait)))

    def _check_api_key(self, scope: Scope, key: bytes) -> None:
        if not self._api_keys.allows(scope, key):
            reason = "Invalid API key" if key else "an API key is required"
            raise RequestRejectedError(403, reason, WWW_Authenticate="Bearer")

    def _record_request(self, scope: Scope, recorder: _ResponseRecorder, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) or "other"
        method = scope["method"] if scope["method"] in METHODS else "OTHER"
        status = recorder.status or CLIENT_CLOSED_REQUEST
        self.metrics.count_request(route, method, status, seconds)
        if self.config.log_requests:
            fields: dict[str, Any] = {
                "request": recorder.request_id,
                "method": method,
                "route": route,
                "status": status,
                "milliseconds": round(1000 * seconds, 1),
                "bytes": recorder.size,
            }
            _log.info("request", extra={"fields": fields})


class _ResponseRecorder:
    """Sends a response with the security headers, and records its status and size."""

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
