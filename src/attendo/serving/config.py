"""What a server is told: which models, where to listen, and every limit with its default."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError

Seconds = Annotated[float, Field(gt=0.0, le=86_400.0)]
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that only this machine reaches."""
CONFIG_ENV_VAR = "ATTENDO_SERVE"
"""Where the processes of one server find their config."""
MAX_THREADS = 8
"""More than these seldom make one sentence faster."""


class ServeConfig(Config):
    """One server; what is not told is safe on a laptop and fair to several people at once."""

    models: Annotated[tuple[Path, ...], Field(min_length=1)]
    """Model folders, or those of runs; the first is the one for who asks for none."""
    src_lang: str = "auto"
    """What the models read that do not tell it themselves; "auto" is anything."""
    tgt_lang: str = "auto"
    """What the models write that do not tell it themselves."""
    device: str | None = None
    """Where models lie; a GPU where there is one."""
    engine: Literal["auto", "attendo", "ctranslate2"] = "auto"
    """What decodes: on a CPU CTranslate2, where it is installed and can run the model."""
    precision: Literal["auto", "int8", "float32", "bfloat16"] = "auto"
    """Of CTranslate2: int8, and for a text that comes alone what is faster here.

    bfloat16 is for our own decoder, which it makes faster yet on a GPU.
    """
    runs: Path | None = None
    """A folder of training runs to show; none are shown without it."""

    host: str = "127.0.0.1"
    """The address to listen on; the default is reached from this machine alone."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """0 takes any that is free."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Processes; each loads the models, and counts and limits for itself."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """Threads that one process computes with; 0 is the cores, less one for the network."""
    proxies: str = "127.0.0.1"
    """Addresses, with commas, whose word is taken for where a request comes from."""
    origins: tuple[str, ...] = ()
    """Other sites whose pages may ask (CORS); none by default."""

    batch_size: Annotated[int, Field(ge=1, le=1024)] = 32
    """Texts that are decoded together."""
    batch_characters: Count = 16_000
    """Characters that are decoded together: a few long texts fill a batch as many short ones do."""
    batch_wait_ms: Annotated[float, Field(ge=0.0, le=60_000.0)] = 10.0
    """How long the first text waits for others; under load nobody waits for this."""
    max_queue: Count = 512
    """Texts that may wait, a model; who comes then is told to come again (503)."""
    timeout: Seconds = 30.0
    """What a request may take before it is given up (504)."""
    file_timeout: Seconds = 300.0
    """The same for a file."""
    grace: Seconds = 30.0
    """How long the end waits for what was begun."""
    watch_seconds: Annotated[float, Field(ge=0.0)] = 2.0
    """How often the model folders are looked at for a newer model; 0 is never."""

    beam_size: Annotated[int, Field(ge=1, le=64)] = 4
    """Of a request that tells none."""
    max_beam_size: Annotated[int, Field(ge=1, le=256)] = 16
    """The most that a request may ask for."""
    max_alternatives: Annotated[int, Field(ge=0, le=64)] = 10
    """Further translations that a request may ask for."""
    max_characters: Count = 5000
    """Of one text."""
    max_texts: Count = 128
    """Of one request."""
    max_rows: Count = 10_000
    """Of a series; only as many as the model's window are read, the last ones."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 2_000_000
    """Of a request; what is longer is refused before it is read."""
    max_file_bytes: Count = 1_000_000
    """Of a file to translate."""
    max_files: Count = 64
    """Translated files that are kept for their readers."""
    file_seconds: Seconds = 600.0
    """How long each is kept."""

    api_keys: tuple[Annotated[str, Field(min_length=8)], ...] = ()
    """Who may ask; anybody who reaches the address, if none is named."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 0
    """Of one key, or one address; 0 is no limit."""
    log_requests: bool = True
    """Write a line of JSON a request, never with its text."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        reasons = []
        if self.beam_size > self.max_beam_size:
            reasons.append(f"beam_size {self.beam_size} is more than max_beam_size")
        if self.max_file_bytes > self.max_body_bytes:
            reasons.append(f"max_file_bytes {self.max_file_bytes} is more than max_body_bytes")
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    @property
    def is_public(self) -> bool:
        """Tell whether other machines reach the address."""
        return self.host not in LOOPBACK

    @property
    def num_threads(self) -> int:
        """The threads of one process: one core is left to the network, the workers share."""
        if self.threads:
            return self.threads
        return max(1, min(MAX_THREADS, (count_cores() - 1) // self.workers))


def count_cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
