"""The record of a sentence or a time series, as `attendo.inspection.record` describes it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class RecordToken(BaseModel):
    """A token; `text` is its surface, `word` the index of its word."""

    model_config = ConfigDict(extra="allow")

    id: int
    piece: str
    text: str
    word: int | None


class RecordSide(BaseModel):
    """The source or the target."""

    model_config = ConfigDict(extra="allow")

    text: str
    tokens: list[RecordToken]
    words: list[str]


class RecordWeights(BaseModel):
    """Attention weights in base64: 16 bits each, in the order layer, head, row, column."""

    layers: int
    heads: int
    rows: int
    columns: int
    encoding: Literal["u16"]
    data: str


class RecordAttention(BaseModel):
    """The attention by kind; null if the model has none of it."""

    encoder_self: RecordWeights | None
    decoder_self: RecordWeights | None
    cross: RecordWeights | None


class RecordStep(BaseModel):
    """One predicted token, and the most likely ones."""

    model_config = ConfigDict(extra="allow")

    probability: float
    log_prob: float
    entropy: float
    top: list[dict[str, Any]]


class RecordResponse(BaseModel):
    """A record; unknown keys must be ignored."""

    model_config = ConfigDict(extra="allow")

    format: Literal["attendo.record"]
    version: int
    attendo: str
    model: dict[str, Any]
    search: dict[str, Any]
    src: RecordSide
    tgt: RecordSide
    attention: RecordAttention
    steps: list[RecordStep]
    beam: dict[str, Any] | None
    measures: dict[str, Any]
    logit_lens: dict[str, Any] | None
    attribution: dict[str, Any] | None
    ablation: dict[str, Any] | None
    positions: dict[str, Any] | None
    embeddings: dict[str, Any] | None
    series: dict[str, Any] | None
    notes: list[str]
