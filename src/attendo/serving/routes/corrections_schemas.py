"""Requests and responses of /v1/corrections."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from attendo.memory.unit import MAX_NAME_CHARACTERS, MAX_TEXT_CHARACTERS, Origin
from attendo.serving.routes.v1_schemas import Name, RequestModel, config_with_example

UnitText = Annotated[str, Field(min_length=1, max_length=MAX_TEXT_CHARACTERS)]
PersonName = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS)]
ExportFormat = Literal["tmx", "jsonl"]


class CorrectionRequest(RequestModel):
    """A text and its right translation; the languages are those of the model, or given."""

    model_config = config_with_example(
        source_text="나는 학생이다.", target_text="I am a student.", source="ko", target="en",
        output="I am student.", author="Kim",
    )  # fmt: skip
    source_text: UnitText
    target_text: UnitText
    """The translation that a person wrote."""
    source: Name | None = None
    target: Name | None = None
    model: Name | None = None
    """The model whose output was corrected."""
    output: Annotated[str, Field(max_length=MAX_TEXT_CHARACTERS)] | None = None
    """What the model had written."""
    author: PersonName | None = None
    api_key: Annotated[str, Field(max_length=512)] | None = None
    """API key, if the server requires one; `Authorization: Bearer` works too."""


class CorrectionResponse(BaseModel):
    """A stored correction."""

    id: int
    source: str
    target: str
    source_text: str
    target_text: str
    model: str | None
    output: str | None
    author: str | None
    time: str | None
    """When it was written, in UTC (ISO 8601)."""
    origin: Origin
    """Whether it was corrected here, or imported."""


class CorrectionsResponse(BaseModel):
    """Corrections, newest first."""

    corrections: list[CorrectionResponse]
    num_units: int
    """All units of the memory."""
    next_before: int | None
    """The parameter `before` of the next page; null on the last one."""


class DeletedResponse(BaseModel):
    """The correction that was deleted."""

    deleted: int


class ImportedResponse(BaseModel):
    """What became of the units of a file."""

    added: int
    replaced: int
    """Units whose source had another translation."""
    unchanged: int
    skipped: int
    """Units of a TMX file without texts in two languages."""
