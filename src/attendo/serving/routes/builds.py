"""The route of builds: their steps, and the progress of the running one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel

from attendo.serving import build_reader, run_reader
from attendo.serving.routes.v1_schemas import ErrorBody
from attendo.serving.strict_json import StrictRoute

if TYPE_CHECKING:
    from attendo.serving.service import Service

StepState = Literal["done", "stale", "failed", "interrupted", "to do", "running"]


class BuildStepResponse(BaseModel):
    """A step of a build."""

    name: str
    state: StepState
    needs: list[str]
    """The steps whose results it reads."""
    seconds: float | None
    """How long it took, if it is done."""
    estimate: float | None
    """How long it will take, if that is known."""


class ProgressResponse(BaseModel):
    """How much of the running step is done: training steps or lines; `total` is 0 if unknown."""

    done: int
    total: int


class BuildResponse(BaseModel):
    """A build."""

    name: str
    state: run_reader.State
    steps: list[BuildStepResponse]
    progress: ProgressResponse | None
    updated: str


class BuildsResponse(BaseModel):
    """The builds, the newest first."""

    builds: list[BuildResponse]


router = APIRouter(
    prefix="/v1/builds",
    route_class=StrictRoute,
    tags=["runs"],
    responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
)


@router.get("", summary="The builds of attendo build")
def list_builds(request: Request) -> BuildsResponse:
    """Return the builds in the folder of runs; none if the server has no such folder."""
    service: Service = request.app.state.service
    folder = service.config.runs
    builds = build_reader.list_builds(folder) if folder else []
    counts = _get_line_counts(request)
    return BuildsResponse(
        builds=[BuildResponse(**build_reader.describe_build(build, counts)) for build in builds]
    )


def _get_line_counts(request: Request) -> build_reader.LineCounts:
    state = request.app.state
    if not hasattr(state, "build_line_counts"):
        state.build_line_counts = build_reader.LineCounts()
    counts: build_reader.LineCounts = state.build_line_counts
    return counts
