"""The FastAPI application: routes, middleware and error handlers over one service."""

from __future__ import annotations

import asyncio
import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

from attendo.core.errors import AttendoError
from attendo.core.version import __version__
from attendo.serving.access_log import configure_json_logging
from attendo.serving.config import CONFIG_ENV_VAR, ServeConfig
from attendo.serving.errors import ErrorResponse, to_error_response, to_input_error
from attendo.serving.file_store import FileStore
from attendo.serving.metrics import Metrics
from attendo.serving.middleware import GatewayMiddleware
from attendo.serving.routes import forecast, frontend, generate, lessons, libretranslate, runs, v1
from attendo.serving.service import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

DESCRIPTION = (
    "Translation with your own models. The LibreTranslate-compatible routes work with existing "
    "clients; `/v1` adds n-best lists, confidence, glossaries, attention, streaming, text "
    "generation and time series forecasts."
)


def create_app(config: ServeConfig, service: Service | None = None) -> FastAPI:
    """Create the application; the models are loaded at startup unless `service` has them."""
    metrics = Metrics()
    app = FastAPI(
        title="Attendo",
        description=DESCRIPTION,
        version=__version__,
        docs_url=None,  # it loads scripts from other hosts
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.config, app.state.metrics = config, metrics
    app.state.service = service or Service(config)
    if app.state.service.metrics is None:
        app.state.service.metrics = metrics
    app.state.file_store = FileStore(
        max_files=config.max_files,
        max_bytes=config.max_files * config.max_file_bytes,
        seconds=config.file_seconds,
    )
    _include_routers(app)
    _add_error_handlers(app)
    app.add_middleware(GatewayMiddleware, config=config, metrics=metrics)
    if config.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


def create_app_from_environment() -> FastAPI:
    """Create the application of one worker process (`attendo serve --workers`)."""
    configure_json_logging()
    return create_app(ServeConfig.model_validate_json(os.environ[CONFIG_ENV_VAR]))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    await service.start()
    warm_up_task = asyncio.ensure_future(asyncio.to_thread(libretranslate.warm_up, service))
    try:
        yield
    finally:
        await asyncio.gather(warm_up_task, return_exceptions=True)
        await service.stop()


def _include_routers(app: FastAPI) -> None:
    for module in (libretranslate, v1, forecast, generate, runs, lessons, frontend):
        app.include_router(module.router)
    app.state.assets = frontend.load_assets()


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(AttendoError)
    async def handle_attendo_error(_request: Request, error: AttendoError) -> ErrorResponse:
        return to_error_response(error)

    @app.exception_handler(RequestValidationError)
    async def handle_validation_error(
        _request: Request, error: RequestValidationError
    ) -> ErrorResponse:
        return to_error_response(to_input_error(error.errors()))

    @app.exception_handler(HTTPException)
    async def handle_http_error(_request: Request, error: HTTPException) -> ErrorResponse:
        return ErrorResponse(error.status_code, _format_detail(error.detail), headers=error.headers)


def _format_detail(detail: Any) -> str:
    return detail if isinstance(detail, str) else "the request cannot be processed"
