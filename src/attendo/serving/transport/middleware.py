"""ASGI middleware: host names, size and rate limits, API keys, HEAD, disconnects, access log.

The body is read before a route runs, limited in bytes and in time. The work of a client that
disconnects is cancelled. Each request is logged and counted by the pattern of its route, never by
text of the client.
"""

from __future__ import annotations

import asyncio
import secrets
from contextlib import suppress
from http import HTTPStatus
from time import perf_counter
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders

from attendo.core.logs import get_logger
from attendo.serving.errors import ErrorResponse
from attendo.serving.forms import close_form
from attendo.serving.scheduling.clients import one_time_limit
from attendo.serving.transport.access_log import traceback_locations
from attendo.serving.transport.authorization import Authorization, client_address
from attendo.serving.transport.body_budget import BodyBudget
from attendo.serving.transport.host_check import allowed_hosts, host_name
from attendo.serving.transport.request_body import (
    ClientDisconnectedError,
    RequestRejectedError,
    discard_body,
    read_body,
    run_until_disconnect,
    wait_for_disconnect,
)

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics
    from attendo.serving.transport.body_budget import HeldBody

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
METHODS = ("GET", "POST", "DELETE", "HEAD", "OPTIONS")
_log = get_logger(__name__)


class GatewayMiddleware:
    """Checks every request, runs the application, and records the response."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        config: ServeConfig,
        metrics: Metrics,
        closing: asyncio.Event | None = None,
    ) -> None:
        self.app, self.config, self.metrics = app, config, metrics
        self._authorization = Authorization(config)
        self._bodies = BodyBudget(max(config.max_bodies_bytes, config.max_body_bytes))
        self._hosts = allowed_hosts(config)
        self._closing = closing or asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        recorder = _ResponseRecorder(
            send,
            request_id=secrets.token_hex(8),
            closing=self._closing,
            is_head=scope["method"] == "HEAD",
        )
        scope.setdefault("state", {})["request_id"] = recorder.request_id
        if recorder.is_head:  # every GET route answers it; the recorder drops the body
            scope = {**scope, "method": "GET"}
        start = perf_counter()
        try:
            await self._handle(scope, receive, recorder)
        finally:
            await close_form(scope)
            self._record_request(scope, recorder, perf_counter() - start)

    async def _handle(self, scope: Scope, receive: Receive, recorder: _ResponseRecorder) -> None:
        held = self._bodies.receive(client_address(scope))
        try:
            body = await self._read_body(scope, receive, recorder, held)
            if body is None:
                return
            with one_time_limit():
                await self._authorization.check(scope, body)
                await run_until_disconnect(
                    self.app,
                    scope,
                    body,
                    receive,
                    recorder,
                    is_complete=lambda: recorder.is_complete,
                )
        except RequestRejectedError as rejected:
            held.release()
            await self._reject(rejected, scope, receive, recorder)
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
        finally:
            held.release()

    async def _reject(
        self,
        rejected: RequestRejectedError,
        scope: Scope,
        receive: Receive,
        recorder: _ResponseRecorder,
    ) -> None:
        """Send the error; later to a client that does not stop, which then must connect again."""
        if rejected.delay:
            recorder.must_close = True
            with suppress(TimeoutError):
                async with asyncio.timeout(rejected.delay):
                    await wait_for_disconnect(receive)
                    recorder.status = CLIENT_CLOSED_REQUEST
                    return
        await rejected.response(scope, receive, recorder)

    async def _read_body(
        self, scope: Scope, receive: Receive, recorder: _ResponseRecorder, held: HeldBody
    ) -> bytes | None:
        """Return the body, or reject the request, close its connection and return None."""
        max_bytes = self.config.max_body_bytes
        try:
            self._check_head(scope)
            return await read_body(
                scope, receive, held, max_bytes=max_bytes, timeout=self.config.timeout
            )
        except RequestRejectedError as rejected:
            held.release()
            recorder.must_close, recorder.holds_end = True, not recorder.is_head
            delay = 0.0
            if rejected.response.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                delay = self._authorization.count_rejection(client_address(scope))
            await asyncio.sleep(delay)  # the rest of the body is not read
            await rejected.response(scope, receive, recorder)
            if recorder.holds_end:
                if not delay:
                    await discard_body(receive, max_bytes=max_bytes)
                await recorder.end()
            return None

    def _check_head(self, scope: Scope) -> None:
        """Check the headers that decide whether the body is read at all."""
        headers = Headers(scope=scope)
        host = host_name(headers.get("host", ""))
        is_checked = self._hosts is not None and host and scope["path"] != "/health"
        if is_checked and host not in (self._hosts or ()):
            raise RequestRejectedError(
                421,
                "the Host header names another server",
                "if a proxy sends it, start the server with --set 'hosts=[\"NAME\"]'",
            )
        if headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise RequestRejectedError(
                415,
                "compressed requests are not accepted",
                "send the body without Content-Encoding",
                Accept_Encoding="identity",
            )

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

    def __init__(
        self, send: Send, *, request_id: str, closing: asyncio.Event, is_head: bool
    ) -> None:
        self._send, self.request_id, self.is_head = send, request_id, is_head
        self._closing = closing
        self.status = self.size = 0
        self.is_complete = False
        self.must_close = False
        """Whether the connection ends with this response."""
        self.holds_end = False
        """Whether `end` ends the response: the client may still be sending."""

    async def __call__(self, message: Message) -> None:
        if self.is_complete:  # a stream after HEAD
            return
        if message["type"] == "http.response.start":
            self._add_headers(message)
        elif message["type"] == "http.response.body":
            self.size += len(message.get("body", b""))
            self.is_complete = not message.get("more_body", False)
            if self.holds_end:
                message = {**message, "more_body": True}
        if self.is_head:
            await self._send_head(message)
        else:
            await self._send(message)

    async def end(self) -> None:
        """End a response that was held."""
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def _add_headers(self, message: Message) -> None:
        self.status = message["status"]
        headers = MutableHeaders(scope=message)
        for name, value in SECURITY_HEADERS.items():
            headers.setdefault(name, value)
        headers.setdefault("Cache-Control", "no-store")
        headers["X-Request-ID"] = self.request_id
        if self.must_close or self._closing.is_set():
            headers["Connection"] = "close"

    async def _send_head(self, message: Message) -> None:
        """Send the head alone, and end the response."""
        if message["type"] != "http.response.start":
            return
        await self._send(message)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        self.is_complete = True
