"""Reads the body of a request before the application runs, and watches for disconnects."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from attendo.core.message import message
from attendo.serving.errors import RETRY_SECONDS, ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from attendo.serving.transport.body_budget import HeldBody

DISCARD_SECONDS = 2.0


class RequestRejectedError(Exception):
    """A request that is answered with an error before it reaches a route."""

    def __init__(self, status: int, reason: str, hint: str | None = None, **headers: str) -> None:
        super().__init__(reason)
        header_values = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = ErrorResponse(status, reason, hint, headers=header_values)
        self.delay = 0.0
        """Seconds until it is answered."""


class ClientDisconnectedError(Exception):
    """The client has closed the connection."""


async def read_body(
    scope: Scope, receive: Receive, held: HeldBody, *, max_bytes: int, timeout: float
) -> bytes:
    """Return the whole body, limited in size, in time, and in the memory of all bodies."""
    content_length = Headers(scope=scope).get("content-length", "0")
    if content_length.isdecimal() and int(content_length[:20]) > max_bytes:
        raise _too_large(max_bytes)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(timeout) as deadline:
            held.on_drop = lambda: deadline.reschedule(loop.time())
            while True:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise ClientDisconnectedError
                held.add(event.get("body", b""))
                if held.is_dropped:
                    break
                if len(held) > max_bytes:
                    raise _too_large(max_bytes)
                if not event.get("more_body", False):
                    return held.finish()
    except TimeoutError:
        pass
    finally:
        held.on_drop = lambda: None
    if held.is_dropped:
        raise RequestRejectedError(
            503,
            "the requests that are being received take too much memory",
            "try again in a moment",
            Retry_After=str(RETRY_SECONDS),
        )
    raise RequestRejectedError(408, "the request body did not arrive in time")


async def discard_body(receive: Receive, *, max_bytes: int) -> None:
    """Read what a client still sends after its request was rejected, for a short time.

    If the connection were closed at once, the system would reset it, and the client might never
    see the response.
    """
    size = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while size <= max_bytes:
                event = await receive()
                size += len(event.get("body", b""))
                if event["type"] == "http.disconnect" or not event.get("more_body", False):
                    return


def _too_large(max_bytes: int) -> RequestRejectedError:
    return RequestRejectedError(
        413, message("the request is larger than {count} bytes", count=max_bytes)
    )


async def run_until_disconnect(
    app: ASGIApp,
    scope: Scope,
    body: bytes,
    receive: Receive,
    send: Send,
    *,
    is_complete: Callable[[], bool],
) -> None:
    """Run an application with a body that was read.

    If the client disconnects before the response is complete, the application is cancelled.
    """
    disconnected = asyncio.Event()
    app_task = asyncio.ensure_future(app(scope, _replay(body, disconnected), send))
    disconnect_task = asyncio.ensure_future(wait_for_disconnect(receive))
    try:
        await asyncio.wait({app_task, disconnect_task}, return_when=asyncio.FIRST_COMPLETED)
        disconnected.set()
        if app_task.done() or is_complete():
            await app_task
            return
        raise ClientDisconnectedError
    finally:
        for task in (disconnect_task, app_task):
            task.cancel()
        await asyncio.gather(disconnect_task, app_task, return_exceptions=True)


def _replay(body: bytes, disconnected: asyncio.Event) -> Receive:
    """Return a `receive` that yields the body once, and then the disconnect."""
    is_first = True

    async def receive() -> Message:
        nonlocal is_first
        if is_first:
            is_first = False
            return {"type": "http.request", "body": body, "more_body": False}
        await disconnected.wait()
        return {"type": "http.disconnect"}

    return receive


async def wait_for_disconnect(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
