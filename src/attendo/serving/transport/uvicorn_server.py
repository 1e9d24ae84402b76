"""uvicorn with limits of connections, and an end that loses no request.

At the end the listener is closed without a reset of waiting connections, responses say `Connection:
close` (`GatewayMiddleware`), idle connections may send one more request, and the process ends
within the grace period even if a thread still computes.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import uvicorn

from attendo.core.logs import get_logger
from attendo.serving.transport.connection_table import ConnectionLimits, ConnectionTable
from attendo.serving.transport.listener import (
    accept_waiting,
    block_new_connections,
    raise_file_limit,
)
from attendo.serving.transport.protocol import HttpProtocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from fastapi import FastAPI

    from attendo.serving.config import ServeConfig

BACKLOG = 2048
HANDSHAKE_SECONDS = 0.2
"""How long connections that have begun are accepted at the end."""
IDLE_SECONDS = {signal.SIGTERM: 2.0, signal.SIGINT: 0.3}
"""How long an idle connection may send another request at the end."""
CANCEL_SECONDS = 1.0
"""How long canceled requests may take to respond."""
EXIT_SECONDS = 2.0
"""When the process ends after the grace period, whatever it still computes."""
POLL_SECONDS = 0.05
SWITCH_SECONDS = 0.001
"""How long the event loop waits for a thread that runs Python code; Python's default is 0.005."""
_log = get_logger(__name__)


def run_http_server(
    app: FastAPI, config: ServeConfig, listener: socket.socket, *, on_ready: Callable[[], None]
) -> None:
    """Serve an application on a bound socket until SIGTERM or SIGINT."""
    sys.setswitchinterval(min(SWITCH_SECONDS, sys.getswitchinterval()))
    # uvicorn raises the signal again after a graceful shutdown.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))

    def report_ready() -> None:
        freeze_objects()
        on_ready()

    app.state.service.on_reload = refreeze_objects_after(config.file_timeout)
    HttpServer(app, config, on_ready=report_ready).run(sockets=[listener])


def freeze_objects() -> None:
    """Exclude the models and libraries from garbage collection.

    Otherwise each full collection would stop the server for about 0.1 s, and a large JSON body
    causes several.
    """
    gc.collect()
    gc.freeze()


def refreeze_objects_after(seconds: float) -> Callable[[], None]:
    """Return a function for each reload: collects the old model when no request uses it."""

    def refreeze() -> None:
        gc.unfreeze()
        asyncio.get_running_loop().call_later(seconds, freeze_objects)

    return refreeze


class HttpServer(uvicorn.Server):
    """A server with the limits of a configuration."""

    def __init__(
        self, app: FastAPI, config: ServeConfig, *, on_ready: Callable[[], None] = lambda: None
    ) -> None:
        limits = ConnectionLimits.from_config(config, max_files=raise_file_limit())
        self.table = ConnectionTable(limits)
        self._app, self._grace, self._on_ready = app, config.grace, on_ready
        super().__init__(
            uvicorn.Config(
                app,
                http=partial(HttpProtocol, table=self.table),  # type: ignore[arg-type]
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=True,
                forwarded_allow_ips=config.proxies,
                backlog=BACKLOG,
                lifespan="on",
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(_log_loop_error)
        await super().startup(sockets=sockets)
        if hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread():
            loop.add_signal_handler(signal.SIGHUP, self._reload_models)
        if self.started:
            self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Finish the requests that were sent, within the grace period."""
        deadline = asyncio.get_running_loop().time() + self._grace
        self._app.state.service.closing.set()
        self._end_process_after(self._grace + EXIT_SECONDS)
        await self._close_listeners(sockets or [])
        await self._wait_for_connections(deadline)
        tasks = set(self.server_state.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_SECONDS)
        for connection in list(self.server_state.connections):
            connection.transport.close()
        await asyncio.sleep(0)
        if not self.force_exit:
            await self.lifespan.shutdown()
        gc.freeze()  # or the interpreter looks through all objects before it ends

    async def _close_listeners(self, listeners: list[socket.socket]) -> None:
        """Close the listening sockets after the last connection that was begun."""
        loop = asyncio.get_running_loop()
        for listener in listeners:
            block_new_connections(listener)
        await asyncio.sleep(HANDSHAKE_SECONDS)
        accepted = [one for listener in listeners for one in accept_waiting(listener)]
        for server in self.servers:
            server.close()
        for listener in listeners:
            listener.close()
        for connection in accepted:
            with suppress(OSError):
                await loop.connect_accepted_socket(self._make_protocol, connection)

    def _make_protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol

    async def _wait_for_connections(self, deadline: float) -> None:
        """Wait until every request has its response; close connections that stay idle."""
        loop = asyncio.get_running_loop()
        start = loop.time()
        last_signal = self._captured_signals[-1] if self._captured_signals else signal.SIGTERM
        idle_seconds = IDLE_SECONDS.get(signal.Signals(last_signal), 0.0)
        while loop.time() < deadline and not self.force_exit:
            for connection in list(self.server_state.connections):
                since = getattr(connection, "idle_since", None)
                if since is not None and loop.time() - max(since, start) > idle_seconds:
                    connection.transport.close()
            if not self.server_state.connections and not self.server_state.tasks:
                return
            await asyncio.sleep(POLL_SECONDS)

    def _reload_models(self) -> None:
        self._app.state.service.reload_models()

    def _end_process_after(self, seconds: float) -> None:
        """End the process even if a thread computes something that cannot be interrupted."""

        def end() -> None:
            _log.warning("the grace period is over: a computation was abandoned")
            logging.shutdown()
            os._exit(0)

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()


def _log_loop_error(_loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Log an error of the event loop, without the objects that it mentions."""
    error = context.get("exception")
    cause = type(error).__name__ if error else None
    _log.error("event loop: %s", context.get("message"), extra={"fields": {"cause": cause}})
