"""The log of a server: one JSON object a line, for machines; users' texts never stand in it."""

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
    """Writes a record as JSON: the time, the level, what it says, and its `facts`."""

    def format(self, record: logging.LogRecord) -> str:
        """Give one line."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "facts", {}),
        }
        return json.dumps(fields, ensure_ascii=False)


def configure_json_logging() -> None:
    """Show Attendo's log on the error stream as JSON; a broken-off request of uvicorn's, too."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    configure(handler=handler)
    uvicorn_logger = logging.getLogger("uvicorn")
    uvicorn_logger.handlers, uvicorn_logger.propagate = [handler], False
    uvicorn_logger.setLevel(logging.WARNING)


def traceback_locations(error: BaseException) -> list[str]:
    """Tell where an error came from, by files and lines; its message may hold a user's text.

    >>> word_places(ValueError("somebody's secret"))
    ['ValueError']
    """
    locations: list[str] = []
    frame: TracebackType | None = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        locations.append(f"{Path(code.co_filename).name}:{frame.tb_lineno} {code.co_name}")
        frame = frame.tb_next
    return [type(error).__name__, *reversed(locations)]
