"""Runs the application under uvicorn: in this process, or in several behind one port."""

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
"""Open connections that one process bears; further ones are sent away by uvicorn itself."""
START_TIMEOUT_SECONDS = 120.0
APP_FACTORY = "attendo.serving.app:from_environment"


def run(config: ServeConfig, *, on_ready: AddressCallback) -> None:
    """Serve until SIGTERM or Ctrl-C; `tell` gets the address as soon as requests are answered."""
    try:
        import uvicorn  # noqa: F401
    except ModuleNotFoundError:
        raise MissingExtraError("uvicorn", "serve") from None
    with open_socket(config) as listener:  # a port that is taken shows before models are read
        if config.workers == 1:
            _run_single_process(config, listener, on_ready)
        else:
            _run_workers(config, listener, on_ready)


def open_socket(config: ServeConfig) -> socket.socket:
    """Take the address, or say why it cannot be had."""
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
        raise InputError(reason, hint="choose another --port (0 is any) or --host") from None
    listener.set_inheritable(True)
    return listener


def format_address(config: ServeConfig, listener: socket.socket) -> str:
    """Give the address as a browser takes it."""
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
    service.load()  # here, where an error is said in plain words

    class Server(uvicorn.Server):
        """Tells its address once it answers."""

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            if self.started:
                on_ready(format_address(config, listener))

    app = create_app(config, service)
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # what uvicorn ends with, when all is done
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
        """Tells the address once every process answers."""

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
                reason = "the processes did not start"
                raise AttendoError(reason, hint="try --workers 1, which says why")

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
