"""HTTP/1.1 on one connection: deadlines, and clients that send too little or too much.

uvicorn waits for ever for the head of a request, and has no limits per address. `HttpProtocol` adds
both, refuses what proxies might read in another way, and ignores requests to upgrade to another
protocol.
"""

from __future__ import annotations

import json
import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from attendo.core.logs import get_logger
from attendo.serving.transport.connection_table import MAX_HEAD_BYTES
from attendo.serving.transport.request_body import DISCARD_SECONDS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from attendo.serving.transport.connection_table import ConnectionTable

MAX_HEADERS = 100
TOO_LARGE_HEAD = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
MAX_PIPELINED = 16
"""Requests on one connection that wait for the first one."""
CHUNK_OVERHEAD, MAX_OVERHEAD = 16, 16_384
"""Bytes that each chunk of a body may cost, and how much more all of them may."""
MAX_DISCARDED_BYTES = 1_000_000
WRITE_SECONDS = 60.0
"""How long a client may read nothing of its response."""
PROBE_SECONDS, NUM_PROBES = 0.25, 2
"""When a client that has stopped sending is asked whether it still reads."""
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_log = get_logger(__name__)


class RequestFormatError(Exception):
    """A request that is refused while it is parsed."""

    def __init__(self, reason: str, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(reason)
        self.status = status


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with deadlines and limits; `functools.partial` gives it the table."""

    def __init__(self, *args: Any, table: ConnectionTable, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._table, self._limits = table, table.limits
        self.address = ""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._num_bytes = self._overhead = 0
        self._is_admitted = self._is_refused = self._is_in_body = False
        self._error = b""
        self._answered: RequestResponseCycle | None = None
        """The request that is being answered; `cycle` is the last one that was received."""
        self.idle_since: float | None = None
        """When the connection began to wait for a request; None during a request."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Admit the connection, or refuse it."""
        super().connection_made(transport)
        self.address = self.client[0] if self.client else ""
        status = self._table.admit(self, self.address)
        if status is not None:
            _log.warning("a connection was refused: too many are open")
            self._refuse(status, "too many connections")
            return
        self._is_admitted = True
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self.idle_since = None
        for name in list(self._timers):
            self._stop_timer(name)
        if self._is_admitted:
            self._is_admitted = False
            self._table.remove(self, self.address)
        if self._answered is not None:
            _disconnect(self._answered)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse data, unless the request was refused or has sent too much."""
        self._num_bytes += len(data)
        if self._is_refused or self.transport.is_closing():
            if self._num_bytes > MAX_DISCARDED_BYTES:
                self.transport.abort()
            return
        limit = MAX_HEAD_BYTES if self.idle_since is not None else self._limits.max_request_bytes
        is_over = self._num_bytes > limit
        self._feed(data)
        if is_over and self._num_bytes > limit and not self._is_refused:
            if self.idle_since is not None:
                self._refuse(TOO_LARGE_HEAD, "the head of the request is too large")
            else:
                self.transport.abort()

    def _feed(self, data: bytes) -> None:
        """Parse data; a request to upgrade is parsed again without that wish, and with its body."""
        self._unset_keepalive_if_required()
        while data:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserError as error:
                cause = error.__context__  # what a callback has raised
                if not isinstance(cause, RequestFormatError):
                    cause = RequestFormatError("the request is not valid HTTP")
                _log.warning("a request was refused: %s", cause)
                self._refuse(cause.status, str(cause))
            except httptools.HttpParserUpgrade as upgrade:
                data = self._head_without_upgrade() + data[upgrade.args[0] :]
                continue
            return

    def _head_without_upgrade(self) -> bytes:
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def eof_received(self) -> bool:  # type: ignore[override]
        """Finish a request whose client has only stopped sending (`nc -N`).

        A client that is gone looks the same, so it is probed.
        """
        if self._is_refused or self.idle_since is not None or self.cycle is None:
            return False
        if self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        self._start_timer("probe", PROBE_SECONDS, lambda: self._probe(NUM_PROBES))
        return True

    def on_message_begin(self) -> None:
        """Begin the head of a request."""
        super().on_message_begin()
        self._is_in_body = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count the headers; trailers are ignored, since a proxy may not have checked them."""
        if self._is_in_body:
            return
        super().on_header(name, value)
        if len(self.headers) > MAX_HEADERS:
            raise RequestFormatError("too many headers", TOO_LARGE_HEAD)

    def on_headers_complete(self) -> None:
        """Begin a request."""
        if self._has_upgrade():
            return
        if len(self.pipeline) >= MAX_PIPELINED:
            raise RequestFormatError("too many pipelined requests")
        self._check_size()
        self._check_host()
        self._num_bytes = self._overhead = 0
        self._is_in_body = True
        self.idle_since = None
        self._stop_timer("head")
        super().on_headers_complete()

    def _has_upgrade(self) -> bool:
        """Return whether the client would prefer another protocol."""
        return bool(self.parser.should_upgrade()) and self.parser.get_method() != b"CONNECT"

    def _check_size(self) -> None:
        num_bytes = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
        if num_bytes > MAX_HEAD_BYTES:
            raise RequestFormatError("the head of the request is too large", TOO_LARGE_HEAD)

    def _check_host(self) -> None:
        """Refuse what RFC 9112 (3.2) forbids: proxies might read another host than we do."""
        num_hosts = sum(name == b"host" for name, _ in self.headers)
        if num_hosts > 1 or (not num_hosts and self.parser.get_http_version() == "1.1"):
            raise RequestFormatError("a request needs one Host header")

    def on_chunk_header(self) -> None:
        """Refuse a body of tiny chunks, each of which costs as much as a large one."""
        self._overhead += CHUNK_OVERHEAD
        if self._overhead > MAX_OVERHEAD:
            raise RequestFormatError("the chunks are too small")

    def on_body(self, body: bytes) -> None:
        """Receive a part of the body."""
        self._overhead = max(0, self._overhead - len(body))
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Receive the end of the body."""
        if self._has_upgrade():
            return
        self._table.mark_busy(self, self.address)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request, if the connection stays open."""
        self._answered = None
        super().on_response_complete()
        self._stop_timer("probe")
        if self._is_refused:
            self._send_error()
        elif self.cycle.response_complete and not self.transport.is_closing():
            self._wait_for_head()

    def pause_writing(self) -> None:
        """Limit the time that a client reads nothing."""
        super().pause_writing()
        self._start_timer("write", WRITE_SECONDS, lambda: self.transport.abort())

    def resume_writing(self) -> None:
        """Stop the deadline of the client."""
        super().resume_writing()
        self._stop_timer("write")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _wait_for_head(self) -> None:
        self.idle_since = self.loop.time()
        self._num_bytes = self._overhead = 0
        self._table.mark_waiting(self, self.address)
        self._start_timer("head", self._limits.head_seconds, self._end_waiting)

    def _end_waiting(self) -> None:
        if self._num_bytes:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "the request head did not arrive in time")
        else:
            self.transport.close()

    def _probe(self, remaining: int) -> None:
        """Send an interim response: a client that is gone rejects it, and the connection ends."""
        can_probe = self.scope["http_version"] == "1.1" and not self.cycle.response_started
        if not can_probe or self.transport.is_closing():
            return
        self.transport.write(CONTINUE)
        if remaining > 1:
            self._start_timer("probe", PROBE_SECONDS, lambda: self._probe(remaining - 1))

    def _refuse(self, status: HTTPStatus, reason: str) -> None:
        """Send an error and end the connection; what the client still sends is not read.

        A response that has begun, or that an earlier request waits for, goes first.
        """
        if self._is_refused or self.transport.is_closing():
            return
        self._is_refused, self._num_bytes, self.idle_since = True, 0, None
        self._stop_timer("head")
        self._error = raw_error(status, reason)
        self.pipeline.clear()
        if self._answered is None:
            self._send_error()
        elif self._answered is self.cycle and self.cycle.more_body:  # it is the refused one
            if self.cycle.response_started:
                self.cycle.keep_alive = False
            else:
                _disconnect(self.cycle)
                self._send_error()

    def _send_error(self) -> None:
        """Send the error of a refused request.

        If the connection were closed at once, the system would reset it, and the client might never
        see the error. What a client sends that is refused again and again stays with the system.
        """
        if self.transport.is_closing():
            return
        self.transport.write(self._error)
        if self.transport.can_write_eof():
            self.transport.write_eof()
        if self._table.count_refusal(self.address):
            self.transport.pause_reading()
        self._start_timer("refused", DISCARD_SECONDS, self.transport.close)

    def _start_timer(self, name: str, seconds: float, callback: Callable[[], None]) -> None:
        self._stop_timer(name)
        self._timers[name] = self.loop.call_later(seconds, callback)

    def _stop_timer(self, name: str) -> None:
        timer = self._timers.pop(name, None)
        if timer is not None:
            timer.cancel()


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Let a request end without a response."""
    cycle.disconnected = True
    cycle.message_event.set()


def raw_error(status: HTTPStatus, reason: str) -> bytes:
    """Return an error response for a request that never reaches the application.

    >>> raw_error(HTTPStatus.BAD_REQUEST, "no").splitlines()[0]
    b'HTTP/1.1 400 Bad Request'
    """
    body = json.dumps({"error": reason}).encode()
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-Content-Type-Options": "nosniff",
        "X-Request-ID": secrets.token_hex(8),
        "Connection": "close",
        **({"Retry-After": "1"} if status in (429, 503) else {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status.value} {status.phrase}\r\n{head}\r\n".encode() + body
