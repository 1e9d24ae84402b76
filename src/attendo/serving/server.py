"""Runs the application under uvicorn, in this process or in several worker processes."""

from __future__ import annotations

import os
import signal
import socket
import sys
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.serving.config import ServeConfig

    AddressCallback = Callable[[str], None]

BACKLOG = 2048
MAX_CONNECTIONS = 4096
"""Maximum open connections per process; uvicorn rejects further ones."""
START_TIMEOUT_SECONDS = 120.0
APP_FACTORY = "attendo.serving.app:create_app_from_environment"


def run(config: ServeConfig, *, on_ready: AddressCallback) -> None:
    """Serve until SIGTERM or Ctrl-C; `on_ready` gets the address when requests are accepted."""
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("uvicorn", "serve") from None
    with open_socket(config) as listener:  # before the models are loaded: fail early
        if config.workers == 1:
            _run_single_process(config, listener, on_ready)
        else:
            _run_workers(config, listener, on_ready)


def open_socket(config: ServeConfig) -> socket.socket:
    """Bind the address, or raise an `InputError`."""
    family = socket.AF_INET6 if ":" in config.host else socket.AF_INET
    listener = socket.socket(family=family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((config.host, config.port))
    except OSError as error:
        listener.close()
        reason = message(
            "cannot listen on {host} port {port}: {detail}",
            host=config.host,
            port=config.port,
            detail=error.strerror or error,
        )
        raise InputError(
            reason, hint="choose another --port (0 picks a free one) or --host"
        ) from None
    listener.set_inheritable(True)
    return listener


def format_address(config: ServeConfig, listener: socket.socket) -> str:
    """Return the URL of the server."""
    host = f"[{config.host}]" if ":" in config.host else config.host
    return f"http://{host}:{listener.getsockname()[1]}"


def _run_single_process(
    config: ServeConfig, listener: socket.socket, on_ready: AddressCallback
) -> None:
    import uvicorn

    from attendo.serving.access_log import configure_json_logging
    from attendo.serving.app import create_app
    from attendo.serving.service import Service

    configure_json_logging()
    service = Service(config)
    service.load()  # here, where the command line reports errors

    class Server(uvicorn.Server):
        """Calls `on_ready` after startup."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                on_ready(format_address(config, listener))

    app = create_app(config, service)
    # uvicorn raises SIGTERM again after a graceful shutdown.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Server(uvicorn.Config(app, **_uvicorn_options(config))).run(sockets=[listener])


def _run_workers(config: ServeConfig, listener: socket.socket, on_ready: AddressCallback) -> None:
    import uvicorn
    from uvicorn.supervisors import Multiprocess

    from attendo.serving.config import CONFIG_ENV_VAR

    os.environ[CONFIG_ENV_VAR] = config.model_dump_json()
    options = uvicorn.Config(
        APP_FACTORY, factory=True, workers=config.workers, **_uvicorn_options(config)
    )

    class Parent(Multiprocess):
        """Calls `on_ready` when every worker process is ready."""

        def init_processes(self) -> None:
            super().init_processes()
            if all(
                one.wait_until_ready(START_TIMEOUT_SECONDS, self.should_exit)
                for one in self.processes
            ):
                on_ready(format_address(config, listener))
            elif not self.should_exit.is_set():
                for one in self.processes:
                    one.kill()
                reason = "the worker processes did not start"
                raise AttendoError(reason, hint="run with --workers 1 to see the error")

    Parent(options, sockets=[listener]).run()


def _uvicorn_options(config: ServeConfig) -> dict[str, Any]:
    return {
        "host": config.host,
        "port": config.port,
        "log_config": None,
        "access_log": False,
        "server_header": False,
        "proxy_headers": True,
        "forwarded_allow_ips": config.proxies,
        "timeout_graceful_shutdown": max(1, round(config.grace)),
        "limit_concurrency": MAX_CONNECTIONS,
        "backlog": BACKLOG,
        "lifespan": "on",
    }
