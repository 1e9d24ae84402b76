"""The routes about training runs: which there are, what each has done, and news as they come."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from pydantic import BaseModel
from starlette.responses import JSONResponse, Response, StreamingResponse

from attendo.serving import run_files
from attendo.serving.batcher import BusyError
from attendo.serving.schemas import Problem
from attendo.serving.strict import StrictRoute
from attendo.serving.v1 import EVENT_HEADERS, EVENTS, word_event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from attendo.serving.service import Service

LOOK_SECONDS = 0.5
"""How often a log is looked at for news."""
BEAT_SECONDS = 15.0
"""A sign of life, lest a proxy takes the silence for the end."""
WATCH_SECONDS = 3600.0
"""Then who watches connects again, and tells where it was."""
MOST_WATCHERS = 100

Line = Annotated[int, Query(ge=0, lt=2**53, description="Lines of the log that are known.")]
Wait = Annotated[float, Query(ge=0.0, le=30.0, description="Seconds to wait for news.")]


class RunSummary(BaseModel):
    """How far a run is."""

    name: str
    state: run_files.State
    step: int
    max_steps: int | None
    dev: dict[str, Any] | None
    updated: str


class RunsAnswer(BaseModel):
    """The runs, the newest first."""

    runs: list[RunSummary]


class RunAnswer(RunSummary):
    """Everything of a run."""

    config: dict[str, Any]
    events: list[dict[str, Any]]
    """Thinned evenly where a kind has more than 2,000."""
    next: int
    """The line to ask for news from."""
    samples: list[dict[str, Any]]
    report: dict[str, Any] | None


class NewsAnswer(BaseModel):
    """New events; `next` is the line to ask from the next time."""

    events: list[dict[str, Any]]
    next: int
    state: run_files.State


router = APIRouter(
    prefix="/v1/runs",
    route_class=StrictRoute,
    tags=["runs"],
    responses={"4XX": {"model": Problem}, "5XX": {"model": Problem}},
)


@router.get("", summary="The training runs")
def list_runs(request: Request) -> RunsAnswer:
    """Tell which runs there are; none if the server was given no folder of runs."""
    folder = _folder(request)
    runs = run_files.list_runs(folder) if folder else []
    return RunsAnswer(runs=[RunSummary(**run_files.summarise(run)) for run in runs])


@router.get("/{name}", summary="One training run")
def show_run(request: Request, name: str) -> RunAnswer:
    """Tell everything of a run: settings, events, samples, report."""
    return RunAnswer(**run_files.describe(_find(request, name)))


@router.get(
    "/{name}/events",
    summary="What is new in a training run",
    response_model=NewsAnswer,
    responses={
        200: {
            "description": "New events; with `Accept: text/event-stream` they come as they happen, "
            "each message an `events` of the same shape.",
            "content": {EVENTS: {}},
        }
    },
)
async def show_news(request: Request, name: str, after: Line = 0, wait: Wait = 0.0) -> Response:
    """Give the events after a line of the log, at once or when they come."""
    run = await asyncio.to_thread(_find, request, name)
    service: Service = request.app.state.service
    if EVENTS in request.headers.get("accept", ""):
        known = request.headers.get("last-event-id", "")
        line = int(known[:15]) if known.isascii() and known.isdecimal() else after
        watch = _watch(run, line, service.closing, _count_watchers(request))
        return StreamingResponse(watch, media_type=EVENTS, headers=EVENT_HEADERS)
    news = await asyncio.to_thread(_read, run, after)
    until = monotonic() + wait
    while not news["events"] and monotonic() < until and not service.closing.is_set():
        await _rest(service.closing, min(LOOK_SECONDS, wait))
        news = await asyncio.to_thread(_read, run, after)
    return JSONResponse(news)


def _folder(request: Request) -> Path | None:
    service: Service = request.app.state.service
    return service.config.runs


def _find(request: Request, name: str) -> Path:
    folder = _folder(request)
    run = run_files.find_run(folder, name) if folder else None
    if run is None:
        raise HTTPException(404, "there is no such run; /v1/runs lists them")
    return run


def _read(run: Path, after: int) -> dict[str, Any]:
    state = run_files.find_state(run)  # before: what is told last is told after it has ended
    return {**run_files.read_news(run, after)._asdict(), "state": state}


class _Watchers:
    """Those who watch at the moment, in one process."""

    def __init__(self) -> None:
        self.count = 0

    def __enter__(self) -> None:
        self.count += 1

    def __exit__(self, *_: object) -> None:
        self.count -= 1


def _count_watchers(request: Request) -> _Watchers:
    state = request.app.state
    if not hasattr(state, "run_watchers"):
        state.run_watchers = _Watchers()
    watchers: _Watchers = state.run_watchers
    if watchers.count >= MOST_WATCHERS:
        raise BusyError("too many watch training runs")
    return watchers


async def _watch(
    run: Path, line: int, closing: asyncio.Event, watchers: _Watchers
) -> AsyncIterator[str]:
    """Tell what is new until the listener goes or the server ends."""
    with watchers:
        begin = beat = monotonic()
        told_state = None
        while not closing.is_set() and monotonic() - begin < WATCH_SECONDS:
            news = await asyncio.to_thread(_read, run, line)
            if news["events"] or news["state"] != told_state:
                yield word_event("events", news, number=news["next"])
                line, told_state, beat = news["next"], news["state"], monotonic()
            elif monotonic() - beat > BEAT_SECONDS:
                yield ": still here\n\n"
                beat = monotonic()
            await _rest(closing, LOOK_SECONDS)


async def _rest(closing: asyncio.Event, seconds: float) -> None:
    """Wait a while, or until the server ends."""
    try:
        async with asyncio.timeout(seconds):
            await closing.wait()
    except TimeoutError:
        return
