"""Reads lines from a pipe or a terminal in windows of what has arrived.

A single line is translated at once; many waiting lines are translated in large batches.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_LINES = 1024


def batch_arrivals(lines: Iterable[str], *, max_lines: int = MAX_LINES) -> Iterator[list[str]]:
    """Yield the lines that have arrived, in order: at least one and at most `max_lines` at a time.

    >>> [line for batch in batch_arrivals(["a", "b", "c"], max_lines=2) for line in batch]
    ['a', 'b', 'c']
    """
    arrivals: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=4 * max_lines)

    def read() -> None:
        try:
            for line in lines:
                arrivals.put(line)
            arrivals.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by the consumer
            arrivals.put(error)

    threading.Thread(target=read, daemon=True).start()
    is_open = True
    while is_open:
        batch: list[str] = []
        while len(batch) < max_lines:
            try:
                line = arrivals.get(block=not batch)
            except queue.Empty:
                break
            if line is None or isinstance(line, BaseException):
                is_open = False
                break
            batch.append(line)
        if batch:
            yield batch
        if not is_open and isinstance(line, BaseException):
            raise line
