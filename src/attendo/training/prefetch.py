"""Read the next batches in a thread while the current one is trained on."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def prefetch(
    items: Sequence[ItemT], read: Callable[[ItemT], ResultT], *, depth: int = 4
) -> Iterator[ResultT]:
    """Yield `read(item)` for each item in order, reading up to `depth` of them ahead in a thread.

    >>> list(prefetch([1, 2, 3], lambda number: number * 2))
    [2, 4, 6]
    """
    ready: queue.Queue[ResultT | BaseException] = queue.Queue(maxsize=depth)
    stop = threading.Event()

    def put(value: ResultT | BaseException) -> None:
        while not stop.is_set():
            try:
                ready.put(value, timeout=0.1)
            except queue.Full:
                continue
            return

    def work() -> None:
        for item in items:
            if stop.is_set():
                return
            try:
                put(read(item))
            except BaseException as error:  # noqa: BLE001 - raised again by the reader
                put(error)
                return

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        for _ in items:
            value = ready.get()
            if isinstance(value, BaseException):
                raise value
            yield value
    finally:
        stop.set()
        worker.join()
