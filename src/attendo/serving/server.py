"""Runs the application in this process or in several worker processes."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

from attendo.core.errors import MissingExtraError
from attendo.core.logs import get_logger
from attendo.serving.transport.access_log import configure_json_logging
from attendo.serving.transport.listener import format_address, open_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from attendo.serving.config import ServeConfig

    AddressCallback = Callable[[str], None]

_log = get_logger(__name__)


def run(config: ServeConfig, *, on_ready: AddressCallback, warnings: Sequence[str] = ()) -> None:
    """Serve until SIGTERM or Ctrl-C; `on_ready` gets the address when requests are accepted.

    `warnings` are written to the log, which has nothing but lines of JSON.
    """
    try:
        import httptools  # noqa: F401
        import uvicorn  # noqa: F401
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "serve") from None
    # Before the models are loaded: an address that is in use is reported at once.
    with open_socket(config) as listener, ignore_hangup():
        port = listener.getsockname()[1]
        configure_json_logging()
        for warning in warnings:
            _log.warning("%s", warning)

        def report_ready() -> None:
            on_ready(format_address(config.host, port))

        if config.workers == 1:
            from attendo.serving.app import create_app
            from attendo.serving.service import Service
            from attendo.serving.transport.uvicorn_server import run_http_server

            service = Service(config)
            service.load()  # here, where the command line reports errors
            app = create_app(config, service)
            run_http_server(app, config, listener, on_ready=report_ready)
        else:
            from attendo.serving.supervisor import Supervisor

            Supervisor(config, listener, on_ready=report_ready).run()


@contextmanager
def ignore_hangup() -> Iterator[None]:
    """Ignore SIGHUP, which reloads the models, where there are none to reload."""
    if not hasattr(signal, "SIGHUP"):  # Windows
        yield
        return
    previous = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, previous)
