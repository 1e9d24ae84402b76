"""The FastAPI application: routes, middleware and error handlers over one service."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware

from attendo.core.device import has_torch, is_torch
from attendo.core.errors import AttendoError, MissingTorchError
from attendo.core.version import __version__
from attendo.serving.errors import ErrorResponse, conceal, to_error_response, to_input_error
from attendo.serving.file_store import FileStore
from attendo.serving.metrics import Metrics
from attendo.serving.routes import (
    builds,
    corrections,
    forecast,
    frontend,
    generate,
    libretranslate,
    runs,
    v1,
)
from attendo.serving.routes.frontend import accepts_gzip
from attendo.serving.service import Service
from attendo.serving.transport.middleware import GatewayMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from attendo.serving.config import ServeConfig

MIN_COMPRESSED_BYTES = 1000
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
        openapi_url=None,  # attendo.serving.openapi adds to it; /docs loads nothing from elsewhere
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
    app.add_middleware(NegotiatedGZip, minimum_size=MIN_COMPRESSED_BYTES, compresslevel=5)
    closing = app.state.service.closing
    app.add_middleware(GatewayMiddleware, config=config, metrics=metrics, closing=closing)
    if config.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.origins),
            allow_methods=["DELETE", "GET", "HEAD", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


class NegotiatedGZip(GZipMiddleware):
    """Starlette's middleware, which would also compress for `Accept-Encoding: gzip;q=0`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Compress the response if the client accepts that."""
        is_http = scope["type"] == "http"
        if is_http and not accepts_gzip(Headers(scope=scope).get("accept-encoding", "")):
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


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
    for module in (libretranslate, v1, corrections, forecast, generate, runs, builds):
        app.include_router(module.router)
    if has_torch():
        from attendo.serving.routes import lessons

        app.include_router(lessons.router)
    else:
        from attendo.serving.routes import without_torch

        app.include_router(without_torch.router)
    app.include_router(frontend.router)
    app.state.assets = frontend.load_assets()


def _add_error_handlers(app: FastAPI) -> None:
    @app.exception_handler(AttendoError)
    async def handle_attendo_error(request: Request, error: AttendoError) -> ErrorResponse:
        service: Service = request.app.state.service
        request_id = request.scope.get("state", {}).get("request_id", "")
        return to_error_response(conceal(error, service.registry, request_id=request_id))

    @app.exception_handler(ModuleNotFoundError)
    async def handle_missing_module(_request: Request, error: ModuleNotFoundError) -> ErrorResponse:
        if not is_torch(error.name):
            raise error
        return to_error_response(MissingTorchError())

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
