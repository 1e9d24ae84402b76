"""Writes the log in a thread, so that a reader of the log that stalls does not stop the server.

A write to a full pipe blocks until somebody reads it: a paused terminal, a log collector that
hangs. Lines that do not fit in the queue are dropped and counted.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINES = 10_000
FLUSH_SECONDS = 1.0
"""How long the end of the process waits for the log."""


class BackgroundHandler(logging.Handler):
    """Formats records where they are logged, and writes them to a stream in a thread.

    Args:
        stream: of the lines.
        make_dropped: returns the record that tells how many lines were dropped.

    """

    def __init__(
        self,
        stream: TextIO,
        make_dropped: Callable[[int], logging.LogRecord],
        *,
        max_lines: int = MAX_LINES,
    ) -> None:
        super().__init__()
        self._stream, self._make_dropped, self._max_lines = stream, make_dropped, max_lines
        self._lines: deque[str] = deque()
        self._num_dropped = 0
        self._has_lines, self._is_idle = threading.Event(), threading.Event()
        self._is_idle.set()
        self._thread: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line to the queue."""
        try:
            line = self.format(record)
        except Exception:  # noqa: BLE001 - as logging.Handler does
            self.handleError(record)
            return
        if len(self._lines) >= self._max_lines:
            self._num_dropped += 1
            return
        if self._num_dropped:
            dropped, self._num_dropped = self._num_dropped, 0
            self._lines.append(self.format(self._make_dropped(dropped)))
        self._lines.append(line)
        self._is_idle.clear()
        self._has_lines.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="attendo-log", daemon=True)
            self._thread.start()

    def flush(self) -> None:
        """Wait until all lines are written, for a short time."""
        self._is_idle.wait(FLUSH_SECONDS)

    def _run(self) -> None:
        while True:
            self._has_lines.wait()
            self._has_lines.clear()
            lines = []
            with suppress(IndexError):
                while True:
                    lines.append(self._lines.popleft())
            if lines:
                with suppress(OSError, ValueError):  # nobody reads it, the disk is full, or closed
                    self._stream.write("".join(f"{line}\n" for line in lines))
                    self._stream.flush()
            if not self._lines:
                self._is_idle.set()
                if self._lines:  # added in between
                    self._is_idle.clear()
                    self._has_lines.set()
