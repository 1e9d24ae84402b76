"""Server log as JSON lines; it never contains the text of a request."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.logs import configure

if TYPE_CHECKING:
    from types import TracebackType


class JsonFormatter(logging.Formatter):
    """Formats a record as JSON: time, level, event, and its `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line of JSON."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        return json.dumps(fields, ensure_ascii=False)


def configure_json_logging() -> None:
    """Write the logs of Attendo and uvicorn to stderr as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    configure(handler=handler)
    uvicorn_logger = logging.getLogger("uvicorn")
    uvicorn_logger.handlers, uvicorn_logger.propagate = [handler], False
    uvicorn_logger.setLevel(logging.WARNING)


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
