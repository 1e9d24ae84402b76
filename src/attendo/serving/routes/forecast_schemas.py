"""What /v1/forecast takes and gives: every list and number has a limit, as in `schemas`."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from attendo.serving.routes.v1_schemas import (
    INTEGRAL,
    Name,
    RequestModel,
    Seed,
    config_with_example,
)

MAX_ROWS, MAX_COLUMNS = 100_000, 1000
Value = Annotated[float, Field(allow_inf_nan=False)] | None
"""null: missing."""
Row = Annotated[list[Value], Field(min_length=1, max_length=MAX_COLUMNS, fail_fast=True)]
Column = Annotated[list[Value], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)]
Time = Annotated[str, Field(min_length=1, max_length=64)]


class ForecastRequest(RequestModel):
    """The latest rows of a series, oldest first, all of them numbers or null."""

    model_config = config_with_example(
        columns={"sea_temperature": [26.1, None, 26.4]},
        times=["2023-08-11", "2023-08-12", "2023-08-13"],
    )
    model: Name | None = None
    """A series model; the first one when not given."""
    rows: Annotated[list[Row], Field(min_length=1, max_length=MAX_ROWS, fail_fast=True)] | None = (
        None
    )
    """The columns as /v1/models names them, in that order."""
    columns: Annotated[dict[Name, Column], Field(min_length=1, max_length=MAX_COLUMNS)] | None = (
        None
    )
    """The same by name, in place of `rows`."""
    times: Annotated[list[Time], Field(max_length=MAX_ROWS, fail_fast=True)] | None = None
    """Of each row: ISO dates, or numbers where the model counts so."""
    num_samples: Annotated[int, Field(ge=1, le=1000), INTEGRAL] = 200
    """Sequences that are drawn for the chances of labels, where there are too many to walk all."""
    seed: Seed = 1
    api_key: Annotated[str, Field(max_length=512)] | None = None

    @model_validator(mode="after")
    def _check_rows_or_columns(self) -> Self:
        if (self.rows is None) == (self.columns is None):
            message = "send either rows or columns"
            raise PydanticCustomError("rows_or_columns", "{told}", {"told": message})
        return self

    @property
    def num_rows(self) -> int:
        """Count the rows that were sent."""
        if self.rows is not None:
            return len(self.rows)
        return max(map(len, (self.columns or {}).values()), default=0)


class WindowResponse(BaseModel):
    """What was read: the last rows of those that were sent."""

    first: str | None
    """Its first time; null where none were sent."""
    last: str | None
    rows: int
    missing: int
    """Values that are missing."""


class ForecastStep(BaseModel):
    """One step of the horizon: a label with the chance of each, or a number for each target."""

    time: str
    """As text; "+1", "+2" ... where no times were sent."""
    label: str | None = None
    """Of the likeliest sequence, label after label."""
    probabilities: dict[str, float | None] | None = None
    """The chance of each label at this step, whatever the others are."""
    values: dict[str, float | None] | None = None


class ForecastResponse(BaseModel):
    """What comes next, step by step."""

    model: str
    seconds: float
    window: WindowResponse
    steps: list[ForecastStep]
