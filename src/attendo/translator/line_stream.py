"""Streams lines from a pipe, a file or a terminal, batching what has arrived.

A single line is translated at once; many waiting lines are translated in large batches. If a line
cannot be translated, its translation is empty and has a note with the reason; the other lines are
not affected.
"""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError
from attendo.translator.translation import Translation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attendo.translator.translator import Translator

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


def translate_lines(
    translator: Translator, batches: Iterable[list[str]], **arguments: Any
) -> Iterator[Translation]:
    """Translate batches of lines in order; `arguments` are those of `Translator.translate`.

    Invalid arguments raise an error at once.
    """
    for batch in batches:
        try:
            yield from translator.translate(batch, **arguments)
        except (MemoryError, RuntimeError):  # Some line failed: find it and keep the others.
            for line in batch:
                yield _translate_line(translator, line, arguments)


def _translate_line(translator: Translator, line: str, arguments: dict[str, Any]) -> Translation:
    try:
        return translator.translate([line], **arguments)[0]
    except (AttendoError, MemoryError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Translation("", source=line, is_finished=False, notes=[f"failed: {reason}"])
