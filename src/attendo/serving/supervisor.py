"""Several server processes on one port: starts them, replaces those that die, and ends them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from multiprocessing.connection import wait
from time import monotonic
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError
from attendo.core.logs import get_logger
from attendo.serving.transport.listener import block_new_connections
from attendo.serving.transport.uvicorn_server import EXIT_SECONDS, HANDSHAKE_SECONDS

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.context import SpawnProcess

    from attendo.serving.config import ServeConfig

START_SECONDS = 120.0
POLL_SECONDS = 0.2
RESTART_SECONDS = 1.0
"""Pause before a process is replaced, so that one that cannot start does not do so all the time."""
_log = get_logger(__name__)


class Worker:
    """One server process, which reports when it is ready."""

    def __init__(self, config: ServeConfig, listener: socket.socket) -> None:
        multiprocessing.allow_connection_pickling()
        context = multiprocessing.get_context("spawn")
        self._pipe, child_pipe = context.Pipe()
        self.process: SpawnProcess = context.Process(
            target=run_worker, args=(config.model_dump_json(), listener, child_pipe)
        )
        self.process.start()
        child_pipe.close()

    def wait_until_ready(self, timeout: float) -> bool:
        """Return whether the process accepts requests before the timeout."""
        try:
            return self._pipe.poll(timeout) and self._pipe.recv() == "ready"
        except (EOFError, OSError):  # it has ended
            return False

    def send_signal(self, number: int) -> None:
        """Send a signal, if the process still runs."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)


class Supervisor:
    """Runs `config.workers` processes until SIGTERM or SIGINT."""

    def __init__(
        self, config: ServeConfig, listener: socket.socket, *, on_ready: Callable[[], None]
    ) -> None:
        self._config, self._listener, self._on_ready = config, listener, on_ready
        self._workers: list[Worker] = []
        self._signals: list[int] = []

    def run(self) -> None:
        """Serve; raise an error if a process cannot start."""
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda number, _: self._signals.append(number))
        self._workers = [self._start_worker() for _ in range(self._config.workers)]
        deadline = monotonic() + START_SECONDS
        for worker in self._workers:
            if not worker.wait_until_ready(max(0.0, deadline - monotonic())):
                self._kill_all()
                if self._signals:
                    return
                reason = "the worker processes did not start"
                raise AttendoError(reason, hint="run with --workers 1 to see the error")
        self._on_ready()
        while not self._must_end():
            self._replace_dead()
            wait([worker.process.sentinel for worker in self._workers], POLL_SECONDS)
        self._end()

    def _start_worker(self) -> Worker:
        return Worker(self._config, self._listener)

    def _must_end(self) -> bool:
        """Handle the signals that have arrived; return whether one ends the server."""
        while self._signals:
            number = self._signals.pop(0)
            if number in (signal.SIGTERM, signal.SIGINT):
                return True
            for worker in self._workers:
                worker.send_signal(number)
        return False

    def _replace_dead(self) -> None:
        for index, worker in enumerate(self._workers):
            if not worker.process.is_alive():
                _log.warning("a worker process has ended; another one is started")
                wait([], RESTART_SECONDS)
                self._workers[index] = self._start_worker()

    def _end(self) -> None:
        """Let the processes finish their requests; they own the listening socket now."""
        block_new_connections(self._listener)
        for worker in self._workers:
            worker.send_signal(signal.SIGTERM)
        self._listener.close()
        deadline = monotonic() + HANDSHAKE_SECONDS + self._config.grace + 2 * EXIT_SECONDS
        for worker in self._workers:
            worker.process.join(max(0.0, deadline - monotonic()))
        self._kill_all()

    def _kill_all(self) -> None:
        for worker in self._workers:
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()


def run_worker(config_json: str, listener: socket.socket, pipe: Connection) -> None:
    """Run one process; it ends when its parent does."""
    from attendo.serving.app import create_app
    from attendo.serving.config import ServeConfig
    from attendo.serving.transport.access_log import configure_json_logging
    from attendo.serving.transport.uvicorn_server import run_http_server

    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the models are loaded
    configure_json_logging()
    config = ServeConfig.model_validate_json(config_json)
    threading.Thread(target=_end_with_parent, args=(pipe,), daemon=True).start()
    run_http_server(create_app(config), config, listener, on_ready=lambda: pipe.send("ready"))


def _end_with_parent(pipe: Any) -> None:
    try:
        pipe.recv()
    except (EOFError, OSError):
        if sys.platform != "win32":
            os.kill(os.getpid(), signal.SIGTERM)
