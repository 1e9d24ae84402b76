"""Requests and responses of /v1/forecast; every list and number has a limit."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from attendo.core.message import message
from attendo.serving.routes.v1_schemas import (
    INTEGRAL,
    Name,
    RequestModel,
    Seed,
    config_with_example,
)

MAX_ROWS, MAX_COLUMNS = 100_000, 1000
Value = Annotated[float, Field(allow_inf_nan=False)] | None
"""A number; null if it is missing."""
Row = Annotated[list[Value], Field(min_length=1, max_length=MAX_COLUMNS, fail_fast=True)]
Column = Annotated[list[Value], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
Time = Annotated[str, Field(min_length=1, max_length=64)]


class ForecastRequest(RequestModel):
    """The latest rows of a time series, oldest first; numbers or null."""

    model_config = config_with_example(
        columns={"sea_temperature": [26.1, None, 26.4]},
        times=["2023-08-11", "2023-08-12", "2023-08-13"],
    )
    model: Name | None = None
    """A time series model; by default the first one."""
    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)] | None = (
        None
    )
    """Values of the columns, in the order of /v1/models."""
    columns: Annotated[dict[Name, Column], Field(min_length=1, max_length=MAX_COLUMNS)] | None = (
        None
    )
    """Values by column name, instead of `rows`."""
    times: Annotated[list[Time], Field(max_length=MAX_ROWS, fail_fast=True)] | None = None
    """The time of each row: an ISO date, or a number, as in the training data."""
    num_samples: Annotated[int, Field(ge=1, le=1000), INTEGRAL] = 200
    """Sequences sampled for label probabilities if there are too many to enumerate."""
    seed: Seed = 1
    api_key: Annotated[str, Field(max_length=512)] | None = None

    @model_validator(mode="after")
    def _check_rows_or_columns(self) -> Self:
        if (self.rows is None) == (self.columns is None):
            reason = message("send either rows or columns")
            raise PydanticCustomError("rows_or_columns", "{reason}", {"reason": reason})
        return self

    @property
    def num_rows(self) -> int:
        """Return the number of rows in the request."""
        if self.rows is not None:
            return len(self.rows)
        return max(map(len, (self.columns or {}).values()), default=0)


class WindowResponse(BaseModel):
    """The rows that were read: the last ones of the request."""

    first: str | None
    """The first time; null without times."""
    last: str | None
    rows: int
    missing: int
    """Number of missing values."""


class ForecastStep(BaseModel):
    """One step of the horizon: a label with probabilities, or one number per target."""

    time: str
    """The time as text; "+1", "+2", ... without times."""
    label: str | None = None
    """The label in the most probable sequence."""
    probabilities: dict[str, float | None] | None = None
    """The marginal probability of each label at this step."""
    values: dict[str, float | None] | None = None


class ForecastResponse(BaseModel):
    """The forecast, step by step."""

    model: str
    seconds: float
    window: WindowResponse
    steps: list[ForecastStep]
