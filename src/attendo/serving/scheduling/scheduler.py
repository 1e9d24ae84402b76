"""Decides what the engine computes next: admission, fairness between clients, slices, deadlines.

The event loop never computes: it keeps the queue (`attendo.serving.scheduling.fair_queue`) and
runs one slice at a time in a thread (`attendo.serving.scheduling.pausable`). A slice is a batch of
texts, no heavier than the engine can decode in `SLICE_SECONDS`, or a part of a longer computation
between two checkpoints. Cancelled and expired requests leave the queue; what they have begun ends
at its next checkpoint.

Requests that name an engine with slots need no turns: their items join it at its next step, as soon
as slots are free (`attendo.serving.scheduling.slot_runner`). The engine runs until others wait for
turns; then the time is shared by what the clients have used. Items that an engine cannot decode,
because a step has failed or because they are too long for a slot, are decoded in batches.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import AttendoError
from attendo.serving.scheduling.batch_limits import BatchLimits
from attendo.serving.scheduling.errors import DeadlineExceededError, QueueFullError
from attendo.serving.scheduling.fair_queue import FairQueue, Item, Request
from attendo.serving.scheduling.pausable import Computation, WorkerPool
from attendo.serving.scheduling.slot_runner import SlotRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Hashable, Iterator, Sequence

    from attendo.serving.scheduling.slot_runner import Finished, SlotEngine

ResultT = TypeVar("ResultT")
SLICE_SECONDS = 0.15
"""The time of a slice; a small request waits for the rest of one, and for its own turn."""
PAUSE_SECONDS = 0.05
"""After this time a computation makes way for others at its next checkpoint."""
MAX_PAUSED = 64
"""Paused computations, each with a thread; if there are more, the next ones run to their ends."""
SMOOTHING = 0.05
"""The share of the last item in the expected costs of an item."""
UNKNOWN_CLIENT = ""


class Engine(Protocol):
    """What decodes batches. It may call `checkpoint()` wherever it can be paused."""

    def decode(self, key: Any, payloads: list[Any]) -> list[Any]:
        """Return one result per payload; called in a thread of the scheduler."""
        ...

    def kind_of(self, key: Any) -> Hashable:
        """Return what the time per weight depends on, e.g. the library that decodes."""
        ...


@dataclass(eq=False)
class _Job(Request):
    """A request with its results."""

    future: asyncio.Future[list[Any]] = field(default_factory=asyncio.Future)
    results: list[Any] = field(default_factory=list)
    num_done: int = 0
    retries: list[_Job] = field(default_factory=list)
    """Its items that are decoded again, in batches."""

    @property
    def is_over(self) -> bool:
        return self.future.done()

    def finish_item(self, index: int, result: Any) -> None:
        if self.is_over:
            return
        if isinstance(result, BaseException):
            self.future.set_exception(result)
            return
        self.results[index] = result
        self.num_done += 1
        if self.num_done == len(self.results):
            self.future.set_result(self.results)


@dataclass(eq=False)
class _Turn:
    """A batch or a call that was begun."""

    items: list[Item]
    computation: Computation

    @property
    def jobs(self) -> list[_Job]:
        return list(dict.fromkeys(_job_of(item) for item in self.items))


class Scheduler:
    """The queue of one model; `submit`, `call` and `stream` are used by any number of clients.

    Args:
        engine: decodes the batches.
        size: maximum items per batch.
        max_weight: maximum weight of a batch, however fast the engine is.
        min_weight: a batch may always be as heavy as this, however slow the engine is.
        wait: seconds that the first item of a batch waits for others.
        max_queue: items that may wait, of which those of a large request count as one batch; when
            the queue is full, a client that has less than its share of it is still admitted.
        name: of the threads.
        on_batch: is called with the number of items of each batch.

    """

    def __init__(
        self,
        engine: Engine,
        *,
        size: int = 32,
        max_weight: float = 64_000,
        min_weight: float = 2_000,
        wait: float = 0.01,
        max_queue: int = 512,
        name: str = "model",
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        self._engine, self._on_batch = engine, on_batch
        self._size, self._wait, self._max_queue = size, wait, max_queue
        self._limits = BatchLimits(smallest=min_weight, largest=max_weight, seconds=SLICE_SECONDS)
        self._queue = FairQueue()
        self._runner = SlotRunner(self._finish_slots)
        self._seconds_per_weight = 1e-4
        """Of items in slots: what one is expected to cost."""
        self._were_slots_last = False
        self._num_paused = 0
        self._changed = asyncio.Event()
        self._is_closed = False
        self._workers = WorkerPool(f"attendo-{name}")
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return the number of waiting items."""
        return self._queue.count_waiting()

    def start(self) -> None:
        """Start to process the queue; needs a running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run_loop())

    async def close(self) -> None:
        """Accept no more requests, finish the queue, and stop the threads."""
        self._is_closed = True
        self._changed.set()
        if self._task is not None:
            await self._task
        self._workers.close()

    async def submit(
        self,
        key: Hashable,
        payloads: Sequence[Any],
        *,
        weights: Sequence[float] | None = None,
        client: str = UNKNOWN_CLIENT,
        timeout: float,
        spent: float = 0.0,
        slots: SlotEngine | None = None,
    ) -> list[Any]:
        """Return the decoded payloads; they enter batches in turns with those of others.

        With `slots` they join this engine, one by one, as slots become free. `spent` is the part of
        `timeout` that the request has used before.

        Raises:
            QueueFullError: the queue has no capacity left.
            DeadlineExceededError: the request took longer than `timeout`.

        """
        if not payloads:
            return []
        self._check_capacity(client, min(len(payloads), self._size))
        job = self._add(client, key, payloads, weights, slots)
        return await self._await(job, timeout, spent)

    async def call(
        self,
        function: Callable[..., ResultT],
        *args: Any,
        client: str = UNKNOWN_CLIENT,
        timeout: float,
        spent: float = 0.0,
        **kwargs: Any,
    ) -> ResultT:
        """Run a function in a thread of the model; it is paused at checkpoints if others wait."""
        self._check_capacity(client, 1)
        job = self._add(client, None, [lambda: function(*args, **kwargs)])
        (result,) = await self._await(job, timeout, spent)
        value: ResultT = result
        return value

    async def stream(
        self,
        make_iterator: Callable[[], Iterator[ResultT]],
        *,
        client: str = UNKNOWN_CLIENT,
        timeout: float,
        spent: float = 0.0,
    ) -> AsyncGenerator[ResultT, None]:
        """Iterate in a thread of the model and yield items as they arrive.

        The iteration is paused between items if others wait, and stops when the consumer is gone.
        """
        self._check_capacity(client, 1)
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any]]()

        def produce() -> None:
            for value in make_iterator():
                loop.call_soon_threadsafe(events.put_nowait, ("item", value))
                checkpoint()

        job = self._add(client, None, [produce])
        job.future.add_done_callback(lambda done: events.put_nowait(_end_event(done)))
        deadline = loop.time() + timeout - spent
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
            self._drop(job)

    def _check_capacity(self, client: str, count: int) -> None:
        """Raise an error if the queue is full, and the client has its share of it."""
        if self._is_closed:
            raise QueueFullError("the server is shutting down")
        waiting = self._queue.count_waiting(at_most=self._size)
        if not waiting or waiting + count <= self._max_queue:
            return
        own = self._queue.count_waiting(client, at_most=self._size)
        num_clients = self._queue.num_clients + (not own)
        if num_clients == 1 or own + count > self._max_queue / num_clients:
            raise QueueFullError

    def _add(
        self,
        client: str,
        key: Hashable | None,
        payloads: Sequence[Any],
        weights: Sequence[float] | None = None,
        slots: SlotEngine | None = None,
    ) -> _Job:
        loop = asyncio.get_running_loop()
        job = _Job(
            client,
            key,
            payloads,
            weights or [1.0] * len(payloads),
            loop.time(),
            slots=slots if slots is not None and self._runner.is_usable(slots) else None,
            future=loop.create_future(),
            results=[None] * len(payloads),
        )
        self._queue.add(job)
        if job.slots is not None:
            self._fill_slots()
        self._changed.set()
        return job

    async def _await(self, job: _Job, timeout: float, spent: float) -> list[Any]:
        try:
            async with asyncio.timeout(timeout - spent):
                return await job.future
        except TimeoutError:
            raise DeadlineExceededError(timeout) from None
        finally:
            self._drop(job)

    def _drop(self, job: _Job) -> None:
        """Remove what is left of a job whose result is known, or that nobody waits for."""
        job.future.cancel()
        self._queue.remove(job)
        self._runner.cancel(job)
        for retry in job.retries:
            self._drop(retry)
        self._fill_slots()
        self._changed.set()

    async def _run_loop(self) -> None:
        while True:
            if self._is_turn_of_slots():
                await self._run_slots()
                continue
            if self._queue.has_turns:
                await self._run_next()
                continue
            if self._is_closed and not self._queue:
                return
            self._changed.clear()
            await self._changed.wait()

    async def _run_next(self) -> None:
        """Run the next turn; between turns nothing refers to a job, and thus to its model."""
        await self._wait_for_batch()
        first = self._queue.peek()
        if first is not None:
            self._were_slots_last = False
            await self._run_turn(self._next_turn(first))

    def _is_turn_of_slots(self) -> bool:
        """Return whether the engines with slots run next."""
        self._fill_slots()
        if not self._runner.has_work:
            return False
        first = self._queue.peek()
        if first is None:
            return True
        served = min(map(self._queue.clock_of, self._runner.clients), default=0.0)
        waited = self._queue.clock_of(first.client)
        return served < waited or (served == waited and not self._were_slots_last)

    def _fill_slots(self) -> None:
        """Hand over items for the slots that are free."""
        for item in self._queue.take_for_slots(self._runner.num_free, self._seconds_per_weight):
            self._runner.add(item)

    async def _run_slots(self) -> None:
        """Run the engines with slots until they have nothing to do, or others wait too long."""
        loop = asyncio.get_running_loop()
        self._were_slots_last = True
        computation = Computation(
            lambda: self._runner.run(loop, self._should_slots_pause),
            self._workers.acquire(),
            should_pause=lambda _seconds: False,
            is_abandoned=lambda: False,
        )
        await computation.run_slice(loop)
        self._workers.release(computation.worker)
        if computation.error is not None:
            self._finish_slots(self._runner.fail_all(computation.error))

    def _should_slots_pause(self, seconds: float) -> bool:
        return seconds >= PAUSE_SECONDS and self._queue.has_turns

    def _finish_slots(self, finished: list[Finished]) -> None:
        """Set the results of items that left their slots, and fill these again."""
        for item, result, seconds in finished:
            job = _job_of(item)
            self._queue.charge(job.client, seconds - item.weight * self._seconds_per_weight)
            self._seconds_per_weight += SMOOTHING * (
                seconds / max(item.weight, 1.0) - self._seconds_per_weight
            )
            if job.slots is not None and not self._runner.is_usable(job.slots):
                self._queue.end_slots(job.slots)
            if isinstance(result, Exception) and not isinstance(result, AttendoError):
                self._retry(job, item)
                continue
            job.finish_item(item.index, result)
            if isinstance(result, BaseException):
                self._queue.remove(job)
                self._runner.cancel(job)
        self._fill_slots()

    def _retry(self, job: _Job, item: Item) -> None:
        """Decode an item in a batch, which does not fail because of others."""
        if job.is_over:
            return
        retry = self._add(job.client, job.key, [item.payload], [item.weight])
        job.retries.append(retry)

        def finish(done: asyncio.Future[list[Any]]) -> None:
            if not done.cancelled():
                job.finish_item(item.index, done.exception() or done.result()[0])

        retry.future.add_done_callback(finish)

    async def _wait_for_batch(self) -> None:
        """Wait until the batch is full, other work is queued, or `wait` has elapsed."""
        loop = asyncio.get_running_loop()
        first = self._queue.peek()
        deadline = first.arrived_at + self._wait if first is not None else 0.0
        while not self._is_closed and self._should_wait():
            remaining = deadline - loop.time()
            if remaining <= 0:
                return
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(remaining):
                    await self._changed.wait()

    def _should_wait(self) -> bool:
        key = self._queue.only_key
        return (
            key is not None
            and not self._runner.has_work
            and len(self) < self._size
            and self._queue.total_weight() < self._limits.get(self._engine.kind_of(key))
        )

    def _next_turn(self, first: Request) -> _Turn:
        """Take the next turn from the queue: a paused one, or a new batch or call."""
        if first.is_paused:
            (item,) = self._queue.take(1, 0)
            self._num_paused -= 1
            paused: _Turn = item.payload
            return paused
        if first.key is None:
            items = self._queue.take(1, 0)
        else:
            kind = self._engine.kind_of(first.key)
            rate = self._limits.seconds_per_weight(kind)
            items = self._queue.take(self._size, self._limits.get(kind), rate)
            if self._on_batch is not None:
                self._on_batch(len(items))
        jobs = list(dict.fromkeys(_job_of(item) for item in items))
        computation = Computation(
            lambda: self._compute(items),
            self._workers.acquire(),
            should_pause=self._should_pause,
            is_abandoned=lambda: all(job.is_over for job in jobs),
        )
        return _Turn(items, computation)

    def _should_pause(self, seconds: float) -> bool:
        others_wait = bool(self._queue) or self._runner.has_work
        return seconds >= PAUSE_SECONDS and others_wait and self._num_paused < MAX_PAUSED

    async def _run_turn(self, turn: _Turn) -> None:
        computation, before = turn.computation, turn.computation.seconds
        is_finished = await computation.run_slice(asyncio.get_running_loop())
        self._charge(turn, computation.seconds - before)
        if not is_finished:
            self._pause(turn)
            return
        self._workers.release(computation.worker)
        key = turn.items[0].request.key
        error = computation.error
        results = computation.result if error is None else [error] * len(turn.items)
        if key is not None and not isinstance(results[0], BaseException):
            weight = sum(item.weight for item in turn.items)
            self._limits.record(self._engine.kind_of(key), weight, computation.seconds)
        for item, result in zip(turn.items, results, strict=True):
            job = _job_of(item)
            job.finish_item(item.index, result)
            if isinstance(result, BaseException):
                self._queue.remove(job)

    def _charge(self, turn: _Turn, seconds: float) -> None:
        """Charge the clients of a turn with its time, by the weights of their items."""
        total = sum(item.weight for item in turn.items)
        for item in turn.items:
            self._queue.charge(item.request.client, seconds * item.weight / total)

    def _pause(self, turn: _Turn) -> None:
        """Queue the rest of a turn, for the client among its owners that has used the least."""
        clients = {item.request.client for item in turn.items}
        client = min(clients, key=self._queue.clock_of)
        self._queue.add(Request(client, None, [turn], [1.0], is_paused=True))
        self._num_paused += 1

    def _compute(self, items: list[Item]) -> list[Any]:
        """Decode in the thread; if a batch fails, retry each request alone."""
        try:
            return self._decode_or_call(items)
        except Exception as error:  # noqa: BLE001 - reported to the caller
            jobs = list(dict.fromkeys(_job_of(item) for item in items))
            if len(jobs) == 1:
                return [error] * len(items)
        results: dict[int, Any] = {}
        for job in jobs:
            own = [item for item in items if item.request is job]
            results |= {
                id(item): result for item, result in zip(own, self._compute(own), strict=True)
            }
        return [results[id(item)] for item in items]

    def _decode_or_call(self, items: list[Item]) -> list[Any]:
        key = items[0].request.key
        if key is None:
            try:
                return [items[0].payload()]
            except StopIteration as error:  # a future cannot hold it
                raise RuntimeError("the call raised StopIteration") from error
        results = self._engine.decode(key, [item.payload for item in items])
        if len(results) != len(items):
            raise RuntimeError(f"{len(results)} results for {len(items)} texts")
        return results


def _job_of(item: Item) -> _Job:
    job = item.request
    if not isinstance(job, _Job):
        raise TypeError("a paused turn has no results of its own")
    return job


def _end_event(done: asyncio.Future[Any]) -> tuple[str, BaseException | None]:
    return "end", None if done.cancelled() else done.exception()
