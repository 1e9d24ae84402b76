"""Reads the body of a request before the application runs, and watches for disconnects."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from attendo.core.message import message
from attendo.serving.errors import ErrorResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RequestRejectedError(Exception):
    """A request that is answered with an error before it reaches a route."""

    def __init__(self, status: int, reason: str, **headers: str) -> None:
        super().__init__(reason)
        header_values = {name.replace("_", "-"): value for name, value in headers.items()}
        self.response = ErrorResponse(status, reason, headers=header_values)


class ClientDisconnectedError(Exception):
    """The client has closed the connection."""


async def read_body(scope: Scope, receive: Receive, *, max_bytes: int, timeout: float) -> bytes:
    """Return the whole body, limited in size and in time."""
    content_length = Headers(scope=scope).get("content-length", "0")
    if content_length.isdecimal() and int(content_length[:20]) > max_bytes:
        raise _too_large(max_bytes)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(timeout):
            while True:
                event = await receive()
                if event["type"] == "http.disconnect":
                    raise ClientDisconnectedError
                parts.append(event.get("body", b""))
                size += len(parts[-1])
                if size > max_bytes:
                    raise _too_large(max_bytes)
                if not event.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise RequestRejectedError(408, "the request body did not arrive in time") from None


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
    disconnect_task = asyncio.ensure_future(_wait_for_disconnect(receive))
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


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
