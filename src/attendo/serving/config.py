"""Configuration of the server: models, address, and every limit with its default."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count
from attendo.core.errors import ConfigError
from attendo.core.message import message

Seconds = Annotated[float, Field(gt=0.0, le=86_400.0)]
LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Addresses that are reachable from this machine only."""
MIN_KEY_CHARACTERS = 8
MAX_THREADS = 8
"""More threads rarely make a single sentence faster."""


class ServeConfig(Config):
    """Configuration of one server; the defaults are safe on a laptop with several users."""

    models: Annotated[tuple[Path, ...], Field(min_length=1)]
    """Model folders or run folders; the first is the default model."""
    src_lang: str = "auto"
    """Source language of models that do not record one; "auto" matches any."""
    tgt_lang: str = "auto"
    """Target language of models that do not record one."""
    device: str | None = None
    """Device of the models; None uses a GPU if there is one."""
    engine: Literal["auto", "attendo", "ctranslate2", "onnx"] = "auto"
    """Decoding engine; "auto" is CTranslate2 on a CPU if it is installed and supports the model,
    and for an exported folder the engine that it was exported for."""
    precision: Literal["auto", "int8", "float32", "bfloat16"] = "auto"
    """Precision; "auto" with CTranslate2 is int8, or float32 for single texts if that is faster.

    bfloat16 is for the native decoder on a GPU.
    """
    runs: Path | None = None
    """Folder of training runs to show; None shows none."""
    memory: Path | None = None
    """File of the translation memory, created if it does not exist; None keeps no corrections."""
    max_memory_units: Count = 1_000_000
    """Maximum units of the memory."""

    host: str = "127.0.0.1"
    """Address to listen on; the default is reachable from this machine only."""
    port: Annotated[int, Field(ge=0, le=65_535)] = 8765
    """0 chooses a free port."""
    workers: Annotated[int, Field(ge=1, le=64)] = 1
    """Worker processes; each loads the models and has its own metrics and rate limits."""
    threads: Annotated[int, Field(ge=0, le=256)] = 0
    """Compute threads per process; 0 uses all cores but one."""
    proxies: str = "127.0.0.1"
    """Comma-separated proxy addresses whose `X-Forwarded-For` header is trusted."""
    origins: tuple[str, ...] = ()
    """Origins that may send cross-origin requests (CORS); none by default."""

    hosts: tuple[str, ...] = ()
    """Host names that requests may address; "*" allows any.

    Without any, a server on a loopback address accepts only localhost and its address, so that no
    web page can reach it under another name (DNS rebinding); others accept any name.
    """
    max_connections: Count = 8192
    """Maximum open connections per process, as far as the system allows; idle ones are dropped."""
    max_connections_per_address: Count = 256
    """Maximum open connections of one address, except for the proxies."""
    head_timeout: Seconds = 10.0
    """Seconds until a connection must have sent the head of a request."""

    pivot: bool = True
    """Whether texts are translated in two steps where no model translates directly."""
    retry: bool = True
    """Whether a sentence whose output is empty, a loop or a copy of it is searched once more."""
    slots: Annotated[int, Field(ge=0, le=4096)] | None = None
    """Sentences that the native decoder searches at a time; each joins and leaves at any step.

    None: 512 on a GPU (1,024 for greedy search) and 64 on a CPU, as far as the memory allows;
    0: batches only.
    """
    batch_size: Annotated[int, Field(ge=1, le=1024)] = 32
    """Maximum texts per batch."""
    batch_characters: Count = 16_000
    """Maximum characters per batch, so that a few long texts fill a batch too."""
    batch_wait_ms: Annotated[float, Field(ge=0.0, le=60_000.0)] = 10.0
    """How long the first text of a batch waits for others; under load batches fill earlier."""
    max_queue: Count = 512
    """Maximum queued texts per model; further requests get status 503."""
    timeout: Seconds = 30.0
    """Seconds until a request is abandoned with status 504."""
    file_timeout: Seconds = 300.0
    """Timeout for file translation."""
    grace: Seconds = 30.0
    """Seconds that shutdown waits for requests in progress."""
    watch_seconds: Annotated[float, Field(ge=0.0)] = 2.0
    """Seconds between checks for changed model folders; 0 disables them."""
    idle_seconds: Annotated[float, Field(ge=0.0)] = 0.0
    """Seconds without a request after which a text model is unloaded; the next request loads it
    again. 0: models stay loaded."""

    beam_size: Annotated[int, Field(ge=1, le=64)] = 4
    """Default beam size of a request."""
    max_beam_size: Annotated[int, Field(ge=1, le=256)] = 16
    """Maximum beam size of a request."""
    max_alternatives: Annotated[int, Field(ge=0, le=64)] = 10
    """Maximum number of alternative translations."""
    max_characters: Count = 5000
    """Maximum characters per text."""
    max_texts: Count = 128
    """Maximum texts per request."""
    max_request_characters: Count = 200_000
    """Maximum characters of all texts of a request, at the default beam size; a larger beam, more
    samples and constraints count more. Files are limited by `max_file_bytes`."""
    max_rows: Count = 10_000
    """Maximum rows of a time series; the model reads only the last window."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 2_000_000
    """Maximum size of a request; larger ones are rejected before they are read."""
    max_bodies_bytes: Count = 64_000_000
    """Maximum memory of the bodies of all requests; beyond it those that are still being received
    get status 503, the oldest one of the client that takes most first."""
    max_file_bytes: Count = 1_000_000
    """Maximum size of a file to translate."""
    max_unpacked_bytes: Count = 100_000_000
    """Maximum size of what an archive (docx, pptx, odt, epub) contains."""
    max_files: Count = 64
    """Translated files that are kept for download."""
    file_seconds: Seconds = 600.0
    """Seconds that a translated file is kept."""

    api_keys: Annotated[tuple[str, ...], Field(repr=False)] = ()
    """Valid API keys; without any, no key is required."""
    requests_per_minute: Annotated[int, Field(ge=0)] = 0
    """Rate limit per API key or client address; 0 is unlimited."""
    log_requests: bool = True
    """Log one JSON line per request, without its text."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        reasons = []
        if any(len(key) < MIN_KEY_CHARACTERS for key in self.api_keys):  # it is not repeated
            reasons.append(
                message(
                    "api_keys: a key has fewer than {count} characters", count=MIN_KEY_CHARACTERS
                )
            )
        if self.beam_size > self.max_beam_size:
            reasons.append(
                message("beam_size {beam_size} exceeds max_beam_size", beam_size=self.beam_size)
            )
        if self.max_file_bytes > self.max_body_bytes:
            reasons.append(
                message(
                    "max_file_bytes {max_file_bytes} exceeds max_body_bytes",
                    max_file_bytes=self.max_file_bytes,
                )
            )
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    @property
    def is_public(self) -> bool:
        """Whether the address is reachable from other machines."""
        return self.host not in LOOPBACK

    @property
    def num_threads(self) -> int:
        """Compute threads per process: the cores but one, divided among the workers."""
        if self.threads:
            return self.threads
        return max(1, min(MAX_THREADS, (count_cores() - 1) // self.workers))


def count_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
