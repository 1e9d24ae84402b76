"""The application: every route, behind the guard, over one service."""

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
from attendo.serving import classroom, forecasts, libre, page, runs, sampling, v1
from attendo.serving.answers import ErrorAnswer, answer_error, word_findings
from attendo.serving.config import ENVIRONMENT, ServeConfig
from attendo.serving.guard import Guard
from attendo.serving.json_log import log_as_json
from attendo.serving.metrics import Metrics
from attendo.serving.service import Service
from attendo.serving.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.requests import Request

ABOUT = (
    "Translation with your own models. The first routes are those of LibreTranslate, so that its "
    "clients work; `/v1` tells more: n-best, confidence, glossaries, attention, words as they "
    "come, and what models of series forecast."
)


def create_app(config: ServeConfig, service: Service | None = None) -> FastAPI:
    """Make the application; the models are loaded as it starts, if `service` has none yet."""
    metrics = Metrics()
    app = FastAPI(
        title="Attendo",
        description=ABOUT,
        version=__version__,
        docs_url=None,  # its scripts come from other hosts
        redoc_url=None,
        lifespan=_live,
    )
    app.state.config, app.state.metrics = config, metrics
    app.state.service = service or Service(config)
    if app.state.service.metrics is None:
        app.state.service.metrics = metrics
    app.state.shelf = Shelf(
        max_files=config.max_files,
        max_bytes=config.max_files * config.max_file_bytes,
        seconds=config.file_seconds,
    )
    _include_routers(app)
    _handle_errors(app)
    app.add_middleware(Guard, config=config, metrics=metrics)
    if config.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(config.origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


def from_environment() -> FastAPI:
    """Make the application of one process among several (`attendo serve --workers`)."""
    log_as_json()
    return create_app(ServeConfig.model_validate_json(os.environ[ENVIRONMENT]))


@asynccontextmanager
async def _live(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    await service.start()
    warming = asyncio.ensure_future(asyncio.to_thread(libre.warm_up, service))
    try:
        yield
    finally:
        await asyncio.gather(warming, return_exceptions=True)
        await service.stop()


def _include_routers(app: FastAPI) -> None:
    for room in (libre, v1, forecasts, sampling, runs, classroom, page):
        app.include_router(room.router)
    app.state.page = page.read_page()


def _handle_errors(app: FastAPI) -> None:
    @app.exception_handler(AttendoError)
    async def refuse(_request: Request, error: AttendoError) -> ErrorAnswer:
        return answer_error(error)

    @app.exception_handler(RequestValidationError)
    async def refuse_shape(_request: Request, error: RequestValidationError) -> ErrorAnswer:
        return ErrorAnswer(400, word_findings(error.errors()))

    @app.exception_handler(HTTPException)
    async def refuse_plainly(_request: Request, error: HTTPException) -> ErrorAnswer:
        return ErrorAnswer(error.status_code, _word(error.detail), headers=error.headers)


def _word(detail: Any) -> str:
    return detail if isinstance(detail, str) else "the request cannot be answered"
