"""Routes of training runs: list, details, and new events."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import JSONResponse, Response, StreamingResponse

from attendo.serving import run_reader
from attendo.serving.checkpoint_reader import CheckpointReader
from attendo.serving.log_index import LogIndexes
from attendo.serving.routes.v1 import EVENT_HEADERS, EVENT_STREAM, format_event
from attendo.serving.routes.v1_schemas import ErrorBody, RequestModel, config_with_example
from attendo.serving.scheduling.errors import QueueFullError
from attendo.serving.strict_json import StrictRoute

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from attendo.serving.service import Service

POLL_SECONDS = 0.5
"""Interval at which a log is checked for new events."""
HEARTBEAT_SECONDS = 15.0
"""Interval of keep-alive comments, so that proxies do not close the connection."""
MAX_STREAM_SECONDS = 3600.0
"""The client then reconnects and continues from its last event."""
MAX_SUBSCRIBERS = 100
MAX_CHECKPOINT_CHARACTERS = 500

Line = Annotated[int, Query(ge=0, lt=2**53, description="Number of log lines already read.")]
Wait = Annotated[float, Query(ge=0.0, le=30.0, description="Seconds to wait for new events.")]


class RunSummaryResponse(BaseModel):
    """Progress of a run."""

    name: str
    state: run_reader.State
    step: int
    max_steps: int | None
    dev: dict[str, Any] | None
    diverged: bool
    """Whether the last training loss is NaN or infinite."""
    updated: str


class RunsResponse(BaseModel):
    """The runs, the newest first."""

    runs: list[RunSummaryResponse]


class RunResponse(RunSummaryResponse):
    """Everything about a run."""

    config: dict[str, Any]
    events: list[dict[str, Any]]
    """Thinned evenly to 2,000 events of each kind."""
    next: int
    """The line to continue from."""
    samples: list[dict[str, Any]]
    checkpoints: list[int]
    """The steps whose checkpoints are kept."""
    report: dict[str, Any] | None
    model: str | None
    """The name of the model of this run, if the server has it."""


class EventsResponse(BaseModel):
    """New events; `next` is the line to continue from."""

    events: list[dict[str, Any]]
    next: int
    state: run_reader.State


class CheckpointRequest(RequestModel):
    """A sentence for a checkpoint that is kept; by default the newest one."""

    model_config = config_with_example(text="나는 학생이다.")

    text: Annotated[str, Field(min_length=1, max_length=MAX_CHECKPOINT_CHARACTERS)]
    step: Annotated[int | None, Field(ge=0, lt=2**53)] = None
    api_key: Annotated[str, Field(max_length=512)] | None = None


class CheckpointResponse(BaseModel):
    """What the checkpoint makes of the sentence."""

    step: int
    text: str
    translation: str
    src: list[str]
    """The tokens of the sentence."""
    tgt: list[str]
    attention: list[list[float]] | None
    """Cross-attention of the last layer, the mean of its heads: a row per token of `tgt`."""


router = APIRouter(
    prefix="/v1/runs",
    route_class=StrictRoute,
    tags=["runs"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.get("", summary="The training runs")
def list_runs(request: Request) -> RunsResponse:
    """Return the runs; none if the server has no folder of runs."""
    folder = _runs_folder(request)
    if folder is None:
        return RunsResponse(runs=[])
    summaries = (
        run_reader.summarize(run, run_reader.run_name(folder, run))
        for run in run_reader.list_runs(folder)
    )
    return RunsResponse(runs=[RunSummaryResponse(**summary) for summary in summaries])


@router.get("/{name}", summary="One training run")
def get_run(request: Request, name: str) -> RunResponse:
    """Return a run: configuration, events, samples, report, and the model that is served."""
    run = _find_run_or_404(request, name)
    service: Service = request.app.state.service
    described = run_reader.describe_run(run, name, _get_logs(request))
    return RunResponse(**described, model=service.registry.find_by_run(run))


@router.get(
    "/{name}/events",
    summary="New events of a training run",
    response_model=EventsResponse,
    responses={
        200: {
            "description": "New events; with `Accept: text/event-stream` they are streamed as "
            "server-sent events of the same shape.",
            "content": {EVENT_STREAM: {}},
        }
    },
)
async def get_events(request: Request, name: str, after: Line = 0, wait: Wait = 0.0) -> Response:
    """Return the events after a line of the log, immediately or as a stream."""
    run = await asyncio.to_thread(_find_run_or_404, request, name)
    service: Service = request.app.state.service
    logs = _get_logs(request)
    if EVENT_STREAM in request.headers.get("accept", ""):
        last_event_id = request.headers.get("last-event-id", "")
        line = (
            int(last_event_id[:15])
            if last_event_id.isascii() and last_event_id.isdecimal()
            else after
        )
        events = _stream_events(run, line, logs, service.closing, _get_subscribers(request))
        return StreamingResponse(events, media_type=EVENT_STREAM, headers=EVENT_HEADERS)
    page = await asyncio.to_thread(_read_event_page, run, after, logs)
    deadline = monotonic() + wait
    while not page["events"] and monotonic() < deadline and not service.closing.is_set():
        await _sleep_or_closing(service.closing, min(POLL_SECONDS, wait))
        page = await asyncio.to_thread(_read_event_page, run, after, logs)
    return JSONResponse(page)


@router.post("/{name}/checkpoint", summary="A sentence, seen by a checkpoint of a run")
async def view_checkpoint(
    request: Request, name: str, body: CheckpointRequest
) -> CheckpointResponse:
    """Translate a sentence with a checkpoint that the run has kept, and return its attention."""
    run = await asyncio.to_thread(_find_run_or_404, request, name)
    service: Service = request.app.state.service
    read = _get_checkpoints(request).read
    view = await service.call_aside("checkpoints", read, run, body.step, body.text)
    if view is None:
        raise HTTPException(404, "no such checkpoint; the run lists those that are kept")
    return CheckpointResponse(**view.to_dict())


def _get_checkpoints(request: Request) -> CheckpointReader:
    state = request.app.state
    if not hasattr(state, "run_checkpoints"):
        state.run_checkpoints = CheckpointReader()
    reader: CheckpointReader = state.run_checkpoints
    return reader


def _runs_folder(request: Request) -> Path | None:
    service: Service = request.app.state.service
    return service.config.runs


def _find_run_or_404(request: Request, name: str) -> Path:
    folder = _runs_folder(request)
    run = run_reader.find_run(folder, name) if folder else None
    if run is None:
        raise HTTPException(404, "no such run; /v1/runs lists them")
    return run


def _read_event_page(run: Path, after: int, logs: LogIndexes) -> dict[str, Any]:
    state = run_reader.run_state(
        run
    )  # read first: the last page of a finished run must be complete
    return {**run_reader.read_new_events(run, after, logs)._asdict(), "state": state}


def _get_logs(request: Request) -> LogIndexes:
    state = request.app.state
    if not hasattr(state, "run_logs"):
        state.run_logs = LogIndexes()
    logs: LogIndexes = state.run_logs
    return logs


class _SubscriberCount:
    """Number of clients that stream events, in one process."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1


def _get_subscribers(request: Request) -> _SubscriberCount:
    state = request.app.state
    if not hasattr(state, "run_subscribers"):
        state.run_subscribers = _SubscriberCount()
    subscribers: _SubscriberCount = state.run_subscribers
    if subscribers.count >= MAX_SUBSCRIBERS:
        raise QueueFullError("too many clients watch training runs")
    return subscribers


async def _stream_events(
    run: Path,
    line: int,
    logs: LogIndexes,
    closing: asyncio.Event,
    subscribers: _SubscriberCount,
) -> AsyncIterator[str]:
    """Yield new events until the client disconnects or the server shuts down."""
    with subscribers:
        start = last_sent = monotonic()
        sent_state = None
        while not closing.is_set() and monotonic() - start < MAX_STREAM_SECONDS:
            page = await asyncio.to_thread(_read_event_page, run, line, logs)
            if page["events"] or page["state"] != sent_state:
                yield format_event("events", page, event_id=page["next"])
                line, sent_state, last_sent = page["next"], page["state"], monotonic()
            elif monotonic() - last_sent > HEARTBEAT_SECONDS:
                yield ": keep-alive\n\n"
                last_sent = monotonic()
            await _sleep_or_closing(closing, POLL_SECONDS)


async def _sleep_or_closing(closing: asyncio.Event, seconds: float) -> None:
    """Sleep, but wake up when the server shuts down."""
    try:
        async with asyncio.timeout(seconds):
            await closing.wait()
    except TimeoutError:
        return
