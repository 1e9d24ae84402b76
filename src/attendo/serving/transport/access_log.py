"""Server log as JSON lines; it never contains the text of a request."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from attendo.core.logs import configure, get_logger
from attendo.serving.transport.log_writer import BackgroundHandler

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

MAX_REPETITIONS, REPETITION_SECONDS = 5, 60.0
"""How often the same message is written within a period."""
NETWORK_MODULES = ("attendo.serving.transport.protocol", "attendo.serving.transport.uvicorn_server")
"""Modules whose messages clients cause."""
MAX_TEMPLATES, MAX_TEMPLATE_CHARACTERS = 1000, 100


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON: time, level, event, and its `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": first_line(record.getMessage()),
            **getattr(record, "fields", {}),
        }
        return json.dumps(fields, ensure_ascii=False)


class RepetitionFilter(logging.Filter):
    """Passes a message `count` times per period; the next one tells how many were left out."""

    def __init__(
        self,
        count: int = MAX_REPETITIONS,
        *,
        seconds: float = REPETITION_SECONDS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        super().__init__()
        self._count, self._seconds, self._clock = count, seconds, clock
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is written."""
        if len(self._seen) > MAX_TEMPLATES:
            self._seen.clear()
        key, now = (record.name, str(record.msg)[:MAX_TEMPLATE_CHARACTERS]), self._clock()
        start, count = self._seen.get(key, (now, 0))
        if now - start > self._seconds:
            if count > self._count:
                fields = getattr(record, "fields", {})
                record.fields = {**fields, "repeated": count - self._count}
            start, count = now, 0
        self._seen[key] = start, count + 1
        return count < self._count


def configure_json_logging() -> None:
    """Write the logs of Attendo, uvicorn, asyncio and Python's warnings to stderr as JSON."""
    handler = BackgroundHandler(sys.stderr, _make_dropped_record)
    handler.setFormatter(JsonFormatter())
    configure(handler=handler)
    logging.captureWarnings(True)
    repetitions = RepetitionFilter()
    for name in ("uvicorn.error", "asyncio", "py.warnings"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate, logger.filters = [handler], False, [repetitions]
        logger.setLevel(logging.WARNING)
    for name in NETWORK_MODULES:
        get_logger(name).filters = [repetitions]


def _make_dropped_record(count: int) -> logging.LogRecord:
    template = "log lines were dropped: they were not read in time"
    record = logging.LogRecord(__name__, logging.WARNING, __file__, 0, template, None, None)
    record.fields = {"dropped": count}
    return record


def first_line(text: str) -> str:
    """Return the first line of a message: asyncio adds lines that describe its objects."""
    return text.split("\n", 1)[0]


def traceback_locations(error: BaseException) -> list[str]:
    """Return the files and lines of a traceback, without the message: it may quote a user's text.

    >>> traceback_locations(ValueError("a private text"))
    ['ValueError']
    """
    locations: list[str] = []
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        locations.append(f"{Path(code.co_filename).name}:{frame.tb_lineno} {code.co_name}")
        frame = frame.tb_next
    return [type(error).__name__, *reversed(locations)]
