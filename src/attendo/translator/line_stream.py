"""Lines that come and go: from a pipe, a file or a person who types.

What has arrived is translated together: a line that comes alone is answered at once, a thousand
that wait make good batches. A line that cannot be translated comes back empty and says why; the
others are not lost.
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
    """Give lines in lists of what has arrived, at least one and at most `most`, in order.

    >>> [line for part in gather(["a", "b", "c"], most=2) for line in part]
    ['a', 'b', 'c']
    """
    arrivals: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=4 * max_lines)

    def read() -> None:
        try:
            for line in lines:
                arrivals.put(line)
            arrivals.put(None)
        except BaseException as error:  # noqa: BLE001 - raised again by the one who waits
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
    translator: Translator, batches: Iterable[list[str]], **options: Any
) -> Iterator[Translation]:
    """Translate lines in the lists that they come in, in order.

    What the options themselves make impossible is raised at once.
    """
    for batch in batches:
        try:
            yield from translator.translate(batch, **options)
        except (MemoryError, RuntimeError):  # of some line: find it, and save the others
            for line in batch:
                yield _translate_line(translator, line, options)


def _translate_line(translator: Translator, line: str, options: dict[str, Any]) -> Translation:
    try:
        return translator.translate([line], **options)[0]
    except (AttendoError, MemoryError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Translation("", source=line, is_finished=False, notes=[f"failed: {reason}"])
