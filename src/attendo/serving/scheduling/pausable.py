"""Computations that can be paused: each has a thread of its own, but only one of them runs.

A computation runs until it is finished, or until a checkpoint (`attendo.core.checkpoints`) at which
its slice is over and others wait. A paused one keeps its thread, which sleeps.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from time import perf_counter
from typing import TYPE_CHECKING, Any

from attendo.core.checkpoints import on_checkpoint
from attendo.serving.scheduling.errors import AbandonedError

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable


class Worker:
    """A thread that runs one function after another."""

    def __init__(self, name: str) -> None:
        self._functions: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def start(self, function: Callable[[], None]) -> None:
        """Run a function as soon as the thread is free."""
        self._functions.put(function)

    def stop(self) -> None:
        """End the thread after the functions that were started."""
        self._functions.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (function := self._functions.get()) is not None:
            function()
            del function  # it refers to a model, which may be unloaded while the thread waits


class WorkerPool:
    """Idle threads, the last one used first; there are as many as paused computations, and one."""

    def __init__(self, name: str) -> None:
        self._name, self._count = name, 0
        self._idle: list[Worker] = []

    def acquire(self) -> Worker:
        """Return an idle thread, or a new one."""
        if self._idle:
            return self._idle.pop()
        self._count += 1
        return Worker(f"{self._name}-{self._count}")

    def release(self, worker: Worker) -> None:
        """Return a thread to the pool."""
        self._idle.append(worker)

    def close(self) -> None:
        """End the idle threads."""
        while self._idle:
            self._idle.pop().stop()


class Computation:
    """A function that runs in slices; used from the event loop, except for `checkpoint`.

    Args:
        function: computes the result.
        worker: the thread.
        should_pause: is called in that thread with the seconds of the slice.
        is_abandoned: is called in that thread; True ends the function at its next checkpoint.

    """

    def __init__(
        self,
        function: Callable[[], Any],
        worker: Worker,
        *,
        should_pause: Callable[[float], bool],
        is_abandoned: Callable[[], bool],
    ) -> None:
        self._function, self.worker = function, worker
        self._should_pause, self._is_abandoned = should_pause, is_abandoned
        self._may_go = threading.Semaphore(0)
        self._slice: Future[bool] | None = None
        self._loop: AbstractEventLoop | None = None
        self._slice_start = 0.0
        self.is_begun = False
        self.seconds = 0.0
        """Of all slices so far."""
        self.result: Any = None
        self.error: BaseException | None = None

    async def run_slice(self, loop: AbstractEventLoop) -> bool:
        """Run until the function is finished (True) or was paused (False)."""
        self._loop, self._slice = loop, loop.create_future()
        if self.is_begun:
            self._may_go.release()
        else:
            self.is_begun = True
            self.worker.start(self._run)
        return await self._slice

    def checkpoint(self) -> None:
        """Pause if the slice is over; raise an error if nobody waits for the result."""
        if self._is_abandoned():
            raise AbandonedError
        if not self._should_pause(perf_counter() - self._slice_start):
            return
        self._end_slice(is_finished=False)
        self._may_go.acquire()
        self._slice_start = perf_counter()
        if self._is_abandoned():
            raise AbandonedError

    def _run(self) -> None:
        self._slice_start = perf_counter()
        try:
            with on_checkpoint(self.checkpoint):
                self.result = self._function()
        except BaseException as error:  # noqa: BLE001 - handed to the event loop
            self.error = error
        self._end_slice(is_finished=True)

    def _end_slice(self, *, is_finished: bool) -> None:
        self.seconds += perf_counter() - self._slice_start
        loop, current = self._loop, self._slice
        if loop is None or current is None:
            raise RuntimeError("no slice is in progress")
        loop.call_soon_threadsafe(current.set_result, is_finished)
