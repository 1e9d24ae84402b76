"""Batches requests of many clients, decoded by one thread.

The event loop never computes: it keeps the queue and hands one batch at a time to the thread of the
model (PyTorch releases the GIL meanwhile). The queue is processed in order of arrival; requests
with equal options share a batch with the first. Cancelled and expired requests leave the queue
before they are decoded.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from attendo.core.errors import AttendoError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence

    Decode = Callable[[Any, list[Any]], list[Any]]

ResultT = TypeVar("ResultT")


class QueueFullError(AttendoError):
    """The queue is full, or the server is shutting down."""

    def __init__(self, reason: str = "too many requests in the queue") -> None:
        super().__init__(reason, hint="try again in a moment")


class DeadlineExceededError(AttendoError):
    """A request was not finished by its deadline."""

    def __init__(self, timeout: float) -> None:
        super().__init__(
            message("not finished within {seconds} seconds", seconds=f"{timeout:g}"),
            hint="send a smaller request",
        )


@dataclass(eq=False)
class _QueueItem:
    """A text or a call in the queue."""

    key: Hashable
    """Items with equal keys may share a batch; None is processed alone."""
    payload: Any
    size: int
    future: asyncio.Future[Any]
    arrived_at: float
    owner: object = field(default_factory=object)
    """The request that the item belongs to."""


class Batcher:
    """One queue and one thread; `decode(key, payloads)` returns one result per payload."""

    def __init__(
        self,
        decode: Decode,
        *,
        size: int = 32,
        max_weight: int = 16_000,
        wait: float = 0.01,
        max_queue: int = 512,
        name: str = "model",
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._decode, self._on_batch = decode, on_batch
        self._batch_size, self._max_weight, self._max_wait = size, max_weight, wait
        self._max_queue = max_queue
        self._queue: deque[_QueueItem] = deque()
        self._changed = asyncio.Event()
        self._is_closed = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=f"attendo-{name}")
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return the number of queued items that are not cancelled."""
        return sum(not item.future.done() for item in self._queue)

    def start(self) -> None:
        """Start to process the queue; needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run_loop())

    async def close(self) -> None:
        """Accept no more items, finish the queue, and stop the thread."""
        self._is_closed = True
        self._changed.set()
        if self._task is not None:
            await self._task
        self._executor.shutdown(wait=True)

    async def submit(
        self,
        key: Hashable,
        payloads: Sequence[Any],
        *,
        sizes: Sequence[int] | None = None,
        timeout: float,
    ) -> list[Any]:
        """Return the decoded payloads.

        A long request enters the queue one batch at a time, so that others are processed in
        between; once accepted, it is not rejected in the middle.

        Raises:
            QueueFullError: The queue has no capacity left.
            DeadlineExceededError: The request took longer than `timeout`.

        """
        self._check_capacity(min(len(payloads), self._batch_size))
        results: list[Any] = []
        try:
            async with asyncio.timeout(timeout):
                for start in range(0, len(payloads), self._batch_size):
                    chunk_slice = slice(start, start + self._batch_size)
                    chunk = payloads[chunk_slice]
                    weights = sizes[chunk_slice] if sizes else [1] * len(chunk)
                    results += await self._await_all(key, chunk, weights)
        except TimeoutError:
            raise DeadlineExceededError(timeout) from None
        return results

    async def call(
        self, function: Callable[..., ResultT], *args: Any, timeout: float, **kwargs: Any
    ) -> ResultT:
        """Run a function in the thread, in queue order."""
        self._check_capacity(1)
        try:
            async with asyncio.timeout(timeout):
                (result,) = await self._await_all(None, [lambda: function(*args, **kwargs)], [1])
        except TimeoutError:
            raise DeadlineExceededError(timeout) from None
        value: ResultT = result
        return value

    async def stream(
        self, make_iterator: Callable[[], Iterator[ResultT]], *, timeout: float
    ) -> AsyncIterator[ResultT]:
        """Iterate in the thread and yield items as they arrive; stop when the consumer is gone."""
        self._check_capacity(1)
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any]]()
        has_consumer = True

        def produce() -> None:
            for value in make_iterator():
                if not has_consumer:
                    return
                loop.call_soon_threadsafe(events.put_nowait, ("item", value))

        (item,) = self._enqueue(None, [produce], [1])
        item.future.add_done_callback(lambda done: events.put_nowait(_end_event(done)))
        deadline = loop.time() + timeout
        try:
            while True:
                try:
                    async with asyncio.timeout_at(deadline):
                        kind, value = await events.get()
                except TimeoutError:
                    raise DeadlineExceededError(timeout) from None
                if kind == "item":
                    yield value
                    continue
                if value is not None:
                    raise value
                return
        finally:
            has_consumer = False
            item.future.cancel()

    def _check_capacity(self, count: int) -> None:
        if self._is_closed:
            raise QueueFullError("the server is shutting down")
        waiting = len(self)
        if waiting and waiting + count > self._max_queue:
            raise QueueFullError

    def _enqueue(
        self, key: Hashable, payloads: Sequence[Any], sizes: Sequence[int]
    ) -> list[_QueueItem]:
        loop, owner = asyncio.get_running_loop(), object()
        now = loop.time()
        items = [
            _QueueItem(key, payload, size, loop.create_future(), now, owner)
            for payload, size in zip(payloads, sizes, strict=True)
        ]
        self._queue.extend(items)
        self._changed.set()
        return items

    async def _await_all(
        self, key: Hashable, payloads: Sequence[Any], sizes: Sequence[int]
    ) -> list[Any]:
        items = self._enqueue(key, payloads, sizes)
        try:
            return await asyncio.gather(*(item.future for item in items))
        finally:  # a deadline or a cancellation cancels all items of the request
            for item in items:
                item.future.cancel()

    async def _run_loop(self) -> None:
        while True:
            self._drop_cancelled()
            if self._queue:
                await self._wait_for_batch()
                batch = self._take_batch()
                if batch:
                    await self._run_batch(batch)
                continue
            if self._is_closed:
                return
            self._changed.clear()
            await self._changed.wait()

    async def _wait_for_batch(self) -> None:
        """Wait until the batch is full, another key is queued, or `wait` has elapsed."""
        loop = asyncio.get_running_loop()
        first = self._queue[0]
        deadline = first.arrived_at + self._max_wait
        while not self._is_closed and first.key is not None and self._should_wait(first.key):
            remaining = deadline - loop.time()
            if remaining <= 0:
                return
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(remaining):
                    await self._changed.wait()

    def _should_wait(self, key: Hashable) -> bool:
        return (
            len(self._queue) < self._batch_size
            and sum(item.size for item in self._queue) < self._max_weight
            and all(item.key == key for item in self._queue)
        )

    def _take_batch(self) -> list[_QueueItem]:
        """Remove and return the first item and the later ones that share its batch."""
        self._drop_cancelled()
        batch: list[_QueueItem] = []
        rest: deque[_QueueItem] = deque()
        weight, is_full = 0, False
        for item in self._queue:
            fits = not batch or (not is_full and item.key is not None and item.key == batch[0].key)
            if fits and batch and weight + item.size > self._max_weight:
                fits, is_full = False, True  # later items must not overtake it
            if not fits:
                rest.append(item)
                continue
            batch.append(item)
            weight += item.size
            is_full = is_full or len(batch) == self._batch_size
        self._queue = rest
        return batch

    def _drop_cancelled(self) -> None:
        if any(item.future.done() for item in self._queue):
            self._queue = deque(item for item in self._queue if not item.future.done())

    async def _run_batch(self, batch: list[_QueueItem]) -> None:
        if self._on_batch is not None and batch[0].key is not None:
            self._on_batch(len(batch))
        loop = asyncio.get_running_loop()
        try:
            results = await loop.run_in_executor(self._executor, self._compute, batch)
        except Exception as error:  # noqa: BLE001 - of the thread itself; the next batch may succeed
            results = [error] * len(batch)
        for item, result in zip(batch, results, strict=True):
            if item.future.done():  # cancelled meanwhile
                continue
            if isinstance(result, BaseException):
                item.future.set_exception(result)
            else:
                item.future.set_result(result)

    def _compute(self, batch: list[_QueueItem]) -> list[Any]:
        """Decode in the thread; if a batch fails, retry each request alone."""
        try:
            return self._decode_or_call(batch)
        except Exception as error:  # noqa: BLE001 - reported to the caller
            owners = list(dict.fromkeys(id(item.owner) for item in batch))
            if len(owners) == 1:
                return [error] * len(batch)
        results: dict[int, Any] = {}
        for owner in owners:
            owner_items = [item for item in batch if id(item.owner) == owner]
            results |= {
                id(item): result
                for item, result in zip(owner_items, self._compute(owner_items), strict=True)
            }
        return [results[id(item)] for item in batch]

    def _decode_or_call(self, batch: list[_QueueItem]) -> list[Any]:
        if batch[0].key is None:
            try:
                return [batch[0].payload()]
            except StopIteration as error:  # a future cannot hold it
                raise RuntimeError("the call raised StopIteration") from error
        results = self._decode(batch[0].key, [item.payload for item in batch])
        if len(results) != len(batch):
            raise RuntimeError(f"{len(results)} results for {len(batch)} texts")
        return results


def _end_event(done: asyncio.Future[Any]) -> tuple[str, BaseException | None]:
    return "end", None if done.cancelled() else done.exception()
