"""The routes of series models: rows in, the steps that come next out, and a look inside.

Windows of several people are foretold together, as texts are translated together; the same window
and seed give the same chances, whoever else asks.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from attendo.inspection.series import capture_series
from attendo.serving import schemas
from attendo.serving.forecast_bodies import (
    ForecastAnswer,
    ForecastBody,
    ForecastStep,
    WindowAnswer,
)
from attendo.serving.series_rows import Rows, read_rows
from attendo.serving.strict import StrictRoute

if TYPE_CHECKING:
    from attendo.data.series.codec import SeriesCodec
    from attendo.forecaster import Forecast, Forecaster
    from attendo.serving.served import ServedSeries
    from attendo.serving.service import Service

router = APIRouter(
    prefix="/v1/forecast",
    route_class=StrictRoute,
    tags=["v1"],
    responses={"4XX": {"model": schemas.Problem}, "5XX": {"model": schemas.Problem}},
)


@router.post("", summary="Foretell what comes behind the rows of a series")
async def forecast(body: ForecastBody, request: Request) -> ForecastAnswer:
    """Give a label and the chance of each, or numbers, for every step of the horizon."""
    begin = perf_counter()
    service, served, rows = _read(request, body)
    options = {"num_samples": body.num_samples, "seed": body.seed}
    made = await service.forecast(served, rows.values, rows.tgt_times, options)
    return ForecastAnswer(
        model=served.name,
        seconds=round(perf_counter() - begin, 4),
        window=_describe_window(rows),
        steps=_describe_steps(served.forecaster.codec, made),
    )


@router.post(
    "/explain",
    summary="Everything that one window through the model shows",
    responses={
        200: {
            "description": "The record: `attendo.inspection.record` documents it.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }
    },
)
async def explain(body: ForecastBody, request: Request) -> Response:
    """Give the record: the series, the forecast, every head over the time steps."""
    service, served, rows = _read(request, body)
    told = await service.call(served, served.call_own, _look, rows, body)
    return Response(told, media_type="application/json")


def _read(request: Request, body: ForecastBody) -> tuple[Service, ServedSeries, Rows]:
    """Find the model, check the limits, and read the rows."""
    service: Service = request.app.state.service
    served = service.registry.get_series(body.model)
    schemas.check_limits({"rows": (body.num_rows, service.config.max_rows)})
    return service, served, read_rows(served.forecaster.codec, body)


def _look(forecaster: Forecaster, rows: Rows, body: ForecastBody) -> str:
    return capture_series(
        forecaster,
        rows.values,
        times=rows.times,
        tgt_times=rows.tgt_times,
        num_samples=body.num_samples,
        seed=body.seed,
    ).to_json()


def _describe_window(rows: Rows) -> WindowAnswer:
    return WindowAnswer(
        first=rows.times[0] if rows.times else None,
        last=rows.times[-1] if rows.times else None,
        rows=len(rows.values),
        missing=int(np.isnan(rows.values).sum()),
    )


def _describe_steps(codec: SeriesCodec, made: Forecast) -> list[ForecastStep]:
    steps = []
    for place, time in enumerate(made.times):
        told: dict[str, Any] = {"time": time}
        if made.labels is not None and made.probabilities is not None:
            told["label"] = made.labels[place]
            told["probabilities"] = {
                label: schemas.finite(chance) for label, chance in made.probabilities[place].items()
            }
        if made.values is not None:
            numbers = map(schemas.finite, made.values[place])
            told["values"] = dict(zip(codec.targets, numbers, strict=True))
        steps.append(ForecastStep(**told))
    return steps
