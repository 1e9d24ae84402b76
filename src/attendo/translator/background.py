"""Runs a stage of a pipeline in a thread, ahead of its consumer."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

InT = TypeVar("InT")
OutT = TypeVar("OutT")


@dataclass
class StageSeconds:
    """Where the time of a stage went."""

    total: float = 0.0
    source: float = 0.0
    """Waiting for items, or reading them."""
    consumer: float = 0.0
    """Waiting until the consumer has read a result."""

    @property
    def work(self) -> float:
        """Return the time that was spent on the work itself."""
        return self.total - self.source - self.consumer


class StageStoppedError(Exception):
    """Ends the work of a stage whose results nobody will read."""


class BackgroundStage(Generic[InT, OutT]):
    """Iterates over `work(source)` in a thread, ahead of the consumer.

    At most `depth` results wait to be read. An error of the source or of the work is raised to the
    consumer after the results before it. The items of the source are taken in the thread; if that
    blocks, as on a terminal, `close` does not wait for it.

    >>> with BackgroundStage([1, 2, 3], lambda items: (2 * item for item in items)) as stage:
    ...     list(stage)
    [2, 4, 6]
    """

    def __init__(
        self,
        source: Iterable[InT],
        work: Callable[[Iterator[InT]], Iterator[OutT]],
        *,
        depth: int = 2,
    ) -> None:
        self.source, self.work, self.depth = source, work, depth
        self.seconds = StageSeconds()
        self._results: deque[OutT] = deque()
        self._error: BaseException | None = None
        self._is_done = self._is_stopped = self._is_taking = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True, name="attendo-stage")
        self._thread.start()

    def __enter__(self) -> BackgroundStage[InT, OutT]:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[OutT]:
        """Yield the results in order."""
        while True:
            with self._changed:
                while not (self._results or self._is_done or self._is_stopped):
                    self._changed.wait()
                if self._is_stopped or not self._results:
                    break
                result = self._results.popleft()
                self._changed.notify_all()
            yield result
        if self._error is not None and not self._is_stopped:
            raise self._error

    @property
    def is_ready(self) -> bool:
        """Return whether the next result, or the end, is there without waiting."""
        return bool(self._results) or self._is_done

    @property
    def is_stopped(self) -> bool:
        """Return whether the results are not needed any more."""
        return self._is_stopped

    def check(self) -> None:
        """Raise an error if the results are not needed any more: long work calls this."""
        if self._is_stopped:
            raise StageStoppedError

    def stop(self) -> None:
        """Ask the thread to end; a consumer that waits for a result gets none."""
        with self._changed:
            self._is_stopped = True
            self._results.clear()
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and wait until the work has ended."""
        self.stop()
        if isinstance(self.source, BackgroundStage):
            self.source.stop()  # the thread may wait for its next result
        with self._changed:
            is_blocked = self._is_taking and not isinstance(self.source, BackgroundStage)
        if not is_blocked:
            self._thread.join()
        if isinstance(self.source, BackgroundStage):
            self.source.close()

    def _run(self) -> None:
        begin = perf_counter()
        items = self._take_items()
        results = self.work(items)
        try:
            for result in results:
                self._put(result)
                del result  # it need not stay in memory until the next one is there
        except StageStoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by the consumer
            self._error = error
        finally:
            self.seconds.total = perf_counter() - begin
            with self._changed:
                self._is_done = True
                self._changed.notify_all()

    def _take_items(self) -> Iterator[InT]:
        """Yield the items of the source until the results are not needed any more."""
        items = iter(self.source)
        try:
            while True:
                begin = perf_counter()
                with self._changed:
                    self.check()
                    self._is_taking = True
                try:
                    item = next(items)
                except StopIteration:
                    return
                finally:
                    self._is_taking = False
                    self.seconds.source += perf_counter() - begin
                    self.check()
                yield item
                del item
        finally:
            if hasattr(items, "close"):
                items.close()

    def _put(self, result: OutT) -> None:
        begin = perf_counter()
        with self._changed:
            while len(self._results) >= self.depth and not self._is_stopped:
                self._changed.wait()
            self.check()
            self._results.append(result)
            self._changed.notify_all()
        self.seconds.consumer += perf_counter() - begin
