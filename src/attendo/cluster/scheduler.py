"""Hands shards to workers, and shards of lost workers to others.

The next free worker gets the shards of one that died, and a new worker replaces it wherever there
is capacity. Ray Data's pool of actors keeps the tasks of an actor whose machine is gone until there
is capacity for that actor again (docs/log.md).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attendo.cluster.worker import Failure, ShardReport, TranslationWorker
from attendo.core.errors import AttendoError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attendo.cluster.connection import WorkerShape
    from attendo.cluster.shards import Shard

SHARDS_PER_WORKER = 2
"""One is translated while the next one travels."""
MAX_ATTEMPTS = 5
"""Workers that may die with a shard until it is taken for the cause."""
MAX_FAILED_STARTS = 5
"""Workers that may die one after the other before any is ready."""
POLL_SECONDS = 1.0


@dataclass
class WorkerState:
    """A worker and what it has to do."""

    actor: Any
    is_ready: bool = False
    shards: dict[Any, Shard] = field(default_factory=dict)
    """By the reference of the result."""


class ShardScheduler:
    """Runs the shards on workers.

    Args:
        ray: the module, connected.
        shape: what a worker occupies.
        load: the arguments of `TranslationWorker.load`, in the object store.
        submit: calls `translate` of an actor with a shard.
        count_workers: returns how many workers there should be; asked again and again, so that new
            machines are used.
        report: receives messages for the user.

    """

    def __init__(
        self,
        ray: Any,
        shape: WorkerShape,
        load: tuple[Any, ...],
        submit: Callable[[Any, Shard], Any],
        count_workers: Callable[[], int],
        report: Callable[[str], None],
    ) -> None:
        self.ray, self.shape, self.load, self.submit = ray, shape, load, submit
        self.count_workers, self.report = count_workers, report
        self.workers: list[WorkerState] = []
        self.num_lost = self.num_repeated = 0
        self._attempts: dict[tuple[int, int], int] = {}
        self._waiting: deque[Shard] = deque()
        self._starting: dict[Any, WorkerState] = {}
        self._num_failed_starts = 0
        self._says_waiting = False
        self._actor_class = ray.remote(TranslationWorker)

    def run(self, shards: Iterator[Shard]) -> Iterator[ShardReport]:
        """Yield a report of each shard when it is written; raise the first error of a worker."""
        first = next(shards, None)
        if first is None:  # everything is translated: no worker has to load the model
            return
        self._waiting.append(first)
        is_read = False
        try:
            while True:
                self._start_workers(needed=not is_read or bool(self._waiting))
                is_read = self._assign(shards, is_read)
                if is_read and not self._waiting and not any(one.shards for one in self.workers):
                    return
                yield from self._collect()
        finally:
            self.stop()

    def stop(self) -> None:
        """End all workers."""
        for worker in self.workers:
            self.ray.kill(worker.actor)
        self.workers, self._starting = [], {}

    def _start_workers(self, *, needed: bool) -> None:
        target = self.count_workers() if needed else 0
        if not target and needed and not self.workers and not self._says_waiting:
            self._says_waiting = True
            self.report(message("waiting for a machine with capacity for a worker"))
        while len(self.workers) < target:
            actor = self._actor_class.options(
                num_cpus=self.shape.num_cpus, num_gpus=self.shape.num_gpus, max_restarts=0
            ).remote()
            worker = WorkerState(actor)
            self.workers.append(worker)
            self._starting[actor.load.remote(*self.load)] = worker

    def _assign(self, shards: Iterator[Shard], is_read: bool) -> bool:
        """Assign shards to the workers that have the fewest; return whether all were read."""
        while True:
            free = [one for one in self.workers
                    if one.is_ready and len(one.shards) < SHARDS_PER_WORKER]  # fmt: skip
            if not free:
                return is_read
            if self._waiting:
                shard = self._waiting.popleft()
            else:
                following = None if is_read else next(shards, None)
                if following is None:
                    return True
                shard = following
            worker = min(free, key=lambda one: len(one.shards))
            worker.shards[self.submit(worker.actor, shard)] = shard

    def _collect(self) -> Iterator[ShardReport]:
        refs = [*self._starting, *(ref for one in self.workers for ref in one.shards)]
        if not refs:
            import time

            time.sleep(POLL_SECONDS)
            return
        ready, _ = self.ray.wait(refs, num_returns=len(refs), timeout=0)
        if not ready:
            ready, _ = self.ray.wait(refs, num_returns=1, timeout=POLL_SECONDS)
        for ref in ready:
            if ref in self._starting:
                self._finish_start(ref)
                continue
            worker = next((one for one in self.workers if ref in one.shards), None)
            if worker is not None:  # not given to another one meanwhile
                yield from self._finish_shard(worker, ref)

    def _finish_start(self, ref: Any) -> None:
        worker = self._starting.pop(ref)
        try:
            result = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            raise AttendoError(
                message("a worker failed: {detail}", detail=last_line(error))
            ) from error
        except self.ray.exceptions.RayError as error:
            self._num_failed_starts += 1
            if self._num_failed_starts > MAX_FAILED_STARTS:
                raise AttendoError(
                    message("workers die while they load the model: {detail}",
                            detail=first_line(error)),
                    hint="is there enough memory? Use fewer workers per machine: --threads 4",
                ) from error  # fmt: skip
            self._drop(worker)
            return
        if isinstance(result, Failure):
            raise result.to_error()
        self._num_failed_starts = 0
        worker.is_ready = True

    def _finish_shard(self, worker: WorkerState, ref: Any) -> Iterator[ShardReport]:
        shard = worker.shards[ref]
        try:
            result = self.ray.get(ref)
        except self.ray.exceptions.RayTaskError as error:
            raise AttendoError(
                message("a worker failed: {detail}", detail=last_line(error))
            ) from error
        except self.ray.exceptions.RayError as error:
            self._drop(worker)
            key = (shard.source, shard.number)
            if self._attempts.get(key, 0) >= MAX_ATTEMPTS:
                raise AttendoError(
                    message(
                        "workers die with shard {number} of file {source}: {detail}",
                        number=shard.number,
                        source=shard.source + 1,
                        detail=first_line(error),
                    ),
                    hint="is there enough memory? Use fewer workers per machine: --threads 4",
                ) from error
            return
        del worker.shards[ref]
        if isinstance(result, Failure):
            raise result.to_error()
        yield result

    def _drop(self, worker: WorkerState) -> None:
        """Forget a worker that died; others get its shards, the first one first."""
        self.ray.kill(worker.actor)  # if it only cannot be reached
        self.workers.remove(worker)
        shards = sorted(worker.shards.values(), key=lambda one: (one.source, one.number))
        for position, shard in enumerate(shards):
            key = (shard.source, shard.number)
            if position == 0:  # the others were only waiting
                self._attempts[key] = self._attempts.get(key, 0) + 1
        self._waiting.extendleft(reversed(shards))
        self.num_lost += 1
        self.num_repeated += len(shards)
        self.report(
            message("a worker was lost; others translate its {count} shards", count=len(shards))
        )


def first_line(error: BaseException) -> str:
    """Return the first line of a message."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def last_line(error: BaseException) -> str:
    """Return the last line of a message: of a trace, the error itself."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
