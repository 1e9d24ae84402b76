"""Runs engines with slots: items join them and leave them at any step, in a thread.

The event loop hands over items, and takes them back with `cancel`; the thread runs the steps, and
sends what has finished to the event loop. An engine that raises an error in a step is not used
again: the scheduler decodes its items in batches, like all later ones.
"""

from __future__ import annotations

from collections import Counter, deque
from time import perf_counter, thread_time
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from weakref import WeakKeyDictionary, WeakSet

from attendo.core.checkpoints import without_checkpoints
from attendo.core.logs import get_logger
from attendo.serving.scheduling.batch_limits import BatchLimits

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Hashable, Sequence

    from attendo.serving.scheduling.fair_queue import Item, Request

_log = get_logger(__name__)
MIN_SLOTS = 8
"""Slots that are always used, however slow the engine is."""
NUM_TIMED_STEPS = 16
"""Steps whose mean time counts, so that a single slow one does not."""


class SlotEngine(Protocol):
    """Decodes items step by step; used by one thread at a time, except for `num_slots`."""

    @property
    def num_slots(self) -> int:
        """Items that are decoded at a time."""
        ...

    @property
    def step_seconds(self) -> float:
        """The processor time that a step should take at most; a small request waits for many."""
        ...

    def __len__(self) -> int:
        """Return the number of items that were added and not returned."""
        ...

    def add(self, ticket: Hashable, key: Any, payload: Any) -> None:
        """Add an item with the key of its request; it joins at the next step."""
        ...

    def cancel(self, ticket: Hashable) -> None:
        """Forget an item, if it is still decoded."""
        ...

    def step(self) -> Sequence[tuple[Hashable, Any]]:
        """Run one step, and return what has finished: results, or errors."""
        ...


class Finished(NamedTuple):
    """An item that left its slot."""

    item: Item
    result: Any
    """Or an exception."""
    seconds: float
    """The item's share of the time of the steps."""


class SlotLimit:
    """How many slots of an engine may be used, so that a step does not take too long.

    Processor time counts: other programs on the machine do not make a step smaller.
    """

    def __init__(self, num_slots: int, step_seconds: float) -> None:
        self._limits = BatchLimits(smallest=MIN_SLOTS, largest=num_slots, seconds=step_seconds)
        self._num_steps, self._num_items, self._seconds = 0, 0, 0.0

    @property
    def num_slots(self) -> int:
        """The number of slots."""
        return int(self._limits.get(None))

    def record(self, num_items: int, seconds: float) -> None:
        """Learn from the time of a step."""
        self._num_steps += 1
        self._num_items += num_items
        self._seconds += seconds
        if self._num_steps == NUM_TIMED_STEPS:
            mean_items = self._num_items / NUM_TIMED_STEPS
            self._limits.record(None, mean_items, self._seconds / NUM_TIMED_STEPS)
            self._num_steps, self._num_items, self._seconds = 0, 0, 0.0


class SlotRunner:
    """The items in the slots of a scheduler's engines.

    Args:
        deliver: is called in the event loop with what has finished.

    """

    def __init__(self, deliver: Callable[[list[Finished]], None]) -> None:
        self._deliver = deliver
        self._handed: dict[Request, dict[Item, SlotEngine]] = {}
        """Items that were handed over and have not come back; belongs to the event loop."""
        self._counts: Counter[SlotEngine] = Counter()
        """Of these by engine."""
        self._clients: Counter[str] = Counter()
        """Of these by client."""
        self._broken: WeakSet[SlotEngine] = WeakSet()
        self._limits: WeakKeyDictionary[SlotEngine, SlotLimit] = WeakKeyDictionary()
        self._commands: deque[tuple[Item, SlotEngine | None]] = deque()
        """New items, and with None cancelled ones: from the event loop to the thread."""
        self._inside: dict[Item, tuple[SlotEngine, float]] = {}
        """Items in engines, and the cost when they joined; belongs to the thread."""
        self._cost = 0.0
        """The time of all steps so far, each divided by the items that it served."""

    @property
    def has_work(self) -> bool:
        """Whether items are in slots, or on their way to them or from them."""
        return bool(self._handed or self._commands)

    @property
    def clients(self) -> list[str]:
        """The clients with items in slots."""
        return list(self._clients)

    def __len__(self) -> int:
        """Return the number of items in slots, or on their way to them."""
        return self._counts.total()

    def is_usable(self, engine: SlotEngine) -> bool:
        """Return whether an engine has never failed."""
        return engine not in self._broken

    def num_free(self, engine: SlotEngine) -> int:
        """Return how many more items an engine can take."""
        if not self.is_usable(engine):
            return 0
        return min(engine.num_slots, self._limit(engine).num_slots) - self._counts[engine]

    def _limit(self, engine: SlotEngine) -> SlotLimit:
        return self._limits.setdefault(engine, SlotLimit(engine.num_slots, engine.step_seconds))

    def add(self, item: Item) -> None:
        """Hand over an item of a request that uses slots."""
        engine: SlotEngine = item.request.slots
        self._handed.setdefault(item.request, {})[item] = engine
        self._counts[engine] += 1
        self._clients[item.request.client] += 1
        self._commands.append((item, engine))

    def cancel(self, request: Request) -> None:
        """Take back all items of a request; their slots are free for the next step."""
        for item in list(self._handed.get(request, ())):
            self._forget(item)
            self._commands.append((item, None))

    def run(self, loop: AbstractEventLoop, should_pause: Callable[[float], bool]) -> None:
        """Run steps in a thread, until nothing is left to do or it is time to pause."""
        start = before = perf_counter()
        with without_checkpoints():  # a step is not divided
            while True:
                self._obey()
                engines = dict.fromkeys(engine for engine, _ in self._inside.values())
                if not engines:
                    return
                found = [one for engine in engines for one in self._step(engine)]
                now = perf_counter()
                self._cost += (now - before) / max(len(self._inside) + len(found), 1)
                before = now
                if found:
                    finished = [
                        Finished(item, result, self._cost - joined)
                        for item, result, joined in found
                    ]
                    loop.call_soon_threadsafe(self._receive, finished)
                if should_pause(now - start):
                    return

    def _obey(self) -> None:
        """Add and cancel what the event loop has asked for."""
        while self._commands:
            item, engine = self._commands.popleft()
            if engine is not None:
                self._inside[item] = (engine, self._cost)
                if self.is_usable(engine):
                    engine.add(item, item.request.key, item.payload)
            elif item in self._inside:
                self._inside.pop(item)[0].cancel(item)

    def _step(self, engine: SlotEngine) -> list[tuple[Item, Any, float]]:
        try:
            found = self._step_usable(engine)
        except Exception as error:  # noqa: BLE001 - reported to those who wait
            if self.is_usable(engine):
                _log.error("a step has failed; texts are decoded in batches: %s",
                           type(error).__name__)  # fmt: skip
            self._broken.add(engine)
            found = [(item, error) for item, (one, _) in self._inside.items() if one is engine]
        return [
            (item, result, self._inside.pop(item)[1])
            for item, result in found
            if item in self._inside
        ]

    def _step_usable(self, engine: SlotEngine) -> Sequence[tuple[Any, Any]]:
        if not self.is_usable(engine):  # these items were on their way when it failed
            raise RuntimeError("the engine has failed before")
        start, num_items = thread_time(), len(engine)
        found = engine.step()
        self._limit(engine).record(num_items, thread_time() - start)
        return found

    def _receive(self, finished: list[Finished]) -> None:
        known = [one for one in finished if one.item in self._handed.get(one.item.request, ())]
        for one in known:
            self._forget(one.item)
        self._deliver(known)

    def _forget(self, item: Item) -> None:
        request, client = item.request, item.request.client
        engine = self._handed[request].pop(item)
        if not self._handed[request]:
            del self._handed[request]
        self._counts[engine] -= 1
        if not self._counts[engine]:
            del self._counts[engine]
        self._clients[client] -= 1
        if not self._clients[client]:
            del self._clients[client]

    def fail_all(self, error: BaseException) -> list[Finished]:
        """Forget all items after `run` has failed, and return them."""
        self._broken.update(self._counts)
        lost = [Finished(one, error, 0.0) for items in self._handed.values() for one in items]
        for one in lost:
            self._forget(one.item)
        self._commands.clear()
        self._inside.clear()
        return lost
