"""Which series, and what is what in them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from attendo.core.config import Config, Count, Rate


class SeriesConfig(Config):
    """Where series lie, what their columns are, and how windows are cut."""

    paths: Annotated[tuple[Path, ...], Field(min_length=1)]
    dev: tuple[Path, ...] = ()
    time: str | None = None
    group: str | None = None
    features: tuple[str, ...] = ()
    targets: Annotated[tuple[str, ...], Field(min_length=1)]
    kind: Literal["labels", "numbers"] | None = None
    window: Count = 30
    horizon: Count = 7
    stride: Count = 1
    dev_share: Rate = 0.15
    gaps: Literal["refuse", "mask"] = "refuse"
