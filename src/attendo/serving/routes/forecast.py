"""Routes of time series models: forecast the steps after the given rows, and inspect a forecast.

Windows of several requests share a batch; equal windows and seeds give equal probabilities.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from fastapi import APIRouter, Request
from starlette.responses import Response

from attendo.serving.limits import check_limits
from attendo.serving.routes import v1_schemas
from attendo.serving.routes.forecast_schemas import (
    ForecastRequest,
    ForecastResponse,
    ForecastStep,
    WindowResponse,
)
from attendo.serving.routes.record_responses import RecordResponse
from attendo.serving.routes.series_rows import SeriesWindow, read_window
from attendo.serving.strict_json import StrictRoute

if TYPE_CHECKING:
    from attendo.serving.served_model import SeriesModelHandle
    from attendo.serving.service import Service
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.forecaster import Forecast, Forecaster

router = APIRouter(
    prefix="/v1/forecast",
    route_class=StrictRoute,
    tags=["v1"],
    responses={"4XX": {"model": v1_schemas.ErrorBody}, "5XX": {"model": v1_schemas.ErrorBody}},
)


@router.post("", summary="Forecast a time series")
async def forecast(body: ForecastRequest, request: Request) -> ForecastResponse:
    """Return label probabilities or values for every step of the horizon."""
    start = perf_counter()
    service, served, rows = _read_request(request, body)
    options = {"num_samples": body.num_samples, "seed": body.seed}
    prediction = await service.forecast(served, rows.values, rows.tgt_times, options)
    return ForecastResponse(
        model=served.name,
        seconds=round(perf_counter() - start, 4),
        window=_describe_window(rows),
        steps=_describe_steps(served.forecaster.codec, prediction),
    )


@router.post(
    "/explain",
    summary="Inspect a forecast",
    responses={
        200: {
            "description": "The record; see `attendo.inspection.record`.",
            "model": RecordResponse,
        }
    },
)
async def explain(body: ForecastRequest, request: Request) -> Response:
    """Return the record: the series, the forecast, and every attention head over the time steps."""
    service, served, rows = _read_request(request, body)
    record_json = await service.call(served, served.call_native, _capture_record, rows, body)
    return Response(record_json, media_type="application/json")


def _read_request(
    request: Request, body: ForecastRequest
) -> tuple[Service, SeriesModelHandle, SeriesWindow]:
    """Return the service, the model, and the validated rows."""
    service: Service = request.app.state.service
    served = service.registry.get_series_model(body.model)
    check_limits({"rows": (body.num_rows, service.config.max_rows)})
    return service, served, read_window(served.forecaster.codec, body)


def _capture_record(forecaster: Forecaster, rows: SeriesWindow, body: ForecastRequest) -> str:
    from attendo.tasks.forecasting.capture import capture_series

    return capture_series(
        forecaster,
        rows.values,
        times=rows.times,
        tgt_times=rows.tgt_times,
        num_samples=body.num_samples,
        seed=body.seed,
    ).to_json()


def _describe_window(rows: SeriesWindow) -> WindowResponse:
    return WindowResponse(
        first=rows.times[0] if rows.times else None,
        last=rows.times[-1] if rows.times else None,
        rows=len(rows.values),
        missing=int(np.isnan(rows.values).sum()),
    )


def _describe_steps(codec: SeriesCodec, prediction: Forecast) -> list[ForecastStep]:
    steps = []
    for index, time in enumerate(prediction.times):
        fields: dict[str, Any] = {"time": time}
        if prediction.labels is not None and prediction.probabilities is not None:
            fields["label"] = prediction.labels[index]
            fields["probabilities"] = {
                label: v1_schemas.round_finite(probability)
                for label, probability in prediction.probabilities[index].items()
            }
        if prediction.values is not None:
            numbers = map(v1_schemas.round_finite, prediction.values[index])
            fields["values"] = dict(zip(codec.targets, numbers, strict=True))
        steps.append(ForecastStep(**fields))
    return steps
