"""Items join an engine with slots as soon as one is free, and leave it when they are done."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import InputError
from attendo.serving.scheduling.errors import DeadlineExceededError
from attendo.serving.scheduling.scheduler import Scheduler
from attendo.serving.scheduling.slot_runner import MIN_SLOTS, NUM_TIMED_STEPS, SlotLimit

PATIENCE = 120.0


class Slots:
    """Doubles numbers; each takes as many steps as it says, and "boom" fails."""

    step_seconds = 10.0

    def __init__(self, num_slots: int = 2) -> None:
        self.num_slots = num_slots
        self.left: dict[Any, list[Any]] = {}
        self.joined: list[Any] = []
        self.cancelled: list[Any] = []
        self.most = 0
        self.error: Exception | None = None
        self.may_go = threading.Event()
        self.may_go.set()
        self.has_started = threading.Event()
        self.threads: set[str] = set()

    def __len__(self) -> int:
        return len(self.left)

    def add(self, ticket, _key, payload) -> None:
        steps = payload if isinstance(payload, int) else 1
        self.left[ticket] = [steps, payload]
        self.joined.append(payload)

    def cancel(self, ticket) -> None:
        found = self.left.pop(ticket, None)
        if found is not None:
            self.cancelled.append(found[1])

    def step(self) -> list[tuple[Any, Any]]:
        self.threads.add(threading.current_thread().name)
        self.most = max(self.most, len(self.left))
        self.has_started.set()
        assert self.may_go.wait(PATIENCE)
        if self.error is not None:
            raise self.error
        done = []
        for ticket, one in list(self.left.items()):
            one[0] -= 1
            if one[0] <= 0:
                del self.left[ticket]
                result = InputError("boom") if one[1] == "boom" else one[1] * 2
                done.append((ticket, result))
        return done


class Batches:
    """Triples payloads in batches."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []

    def kind_of(self, _key) -> str:
        return "engine"

    def decode(self, _key, payloads) -> list[Any]:
        self.batches.append(payloads)
        return [payload * 3 for payload in payloads]


def run_scenario(slots: Slots, scenario, batches: Batches | None = None, **options) -> Any:
    """Run a scene with a scheduler, and close it."""

    async def run() -> Any:
        scheduler = Scheduler(batches or Batches(), **options)
        scheduler.start()
        try:
            return await asyncio.wait_for(scenario(scheduler), PATIENCE)
        finally:
            slots.may_go.set()
            await asyncio.wait_for(scheduler.close(), PATIENCE)

    return asyncio.run(run())


def submit(scheduler, slots, payloads, **options) -> asyncio.Task[list[Any]]:
    settings = {"timeout": PATIENCE, "slots": slots, **options}
    return asyncio.ensure_future(scheduler.submit("key", payloads, **settings))


async def begin(slots: Slots) -> None:
    assert await asyncio.to_thread(slots.has_started.wait, PATIENCE)


def test_everyone_gets_their_own_and_no_more_items_join_than_there_are_slots():
    slots = Slots(num_slots=3)

    async def scenario(scheduler):
        return await asyncio.gather(
            *(submit(scheduler, slots, [n, n + 1], client=f"c{n % 4}") for n in range(1, 12))
        )

    assert run_scenario(slots, scenario) == [[2 * n, 2 * n + 2] for n in range(1, 12)]
    assert slots.most == 3
    assert len(slots.threads) == 1
    assert threading.main_thread().name not in slots.threads


def test_a_small_request_gets_the_next_free_slot_while_a_large_one_runs():
    slots = Slots(num_slots=2)

    async def scenario(scheduler):
        slots.may_go.clear()
        large = submit(scheduler, slots, list(range(3, 43)), client="large")
        await begin(slots)
        small = submit(scheduler, slots, [1], client="small")
        await asyncio.sleep(0)
        slots.may_go.set()
        return await asyncio.gather(large, small)

    large, small = run_scenario(slots, scenario)
    assert (large, small) == ([2 * n for n in range(3, 43)], [2])
    assert slots.joined.index(1) == 2


def test_a_client_that_disconnects_frees_the_slots():
    slots = Slots(num_slots=1)

    async def scenario(scheduler):
        slots.may_go.clear()
        gone = submit(scheduler, slots, [100_000, 100_001], client="gone")
        await begin(slots)
        gone.cancel()
        late = submit(scheduler, slots, [2], client="late", timeout=PATIENCE)
        await asyncio.sleep(0)
        slots.may_go.set()
        with pytest.raises(asyncio.CancelledError):
            await gone
        return await late

    assert run_scenario(slots, scenario) == [4]
    assert slots.cancelled == [100_000]
    assert 100_001 not in slots.joined


def test_a_deadline_frees_the_slot():
    slots = Slots(num_slots=1)

    async def scenario(scheduler):
        slots.may_go.clear()
        late = submit(scheduler, slots, [100_000], timeout=1.0)  # time enough to begin
        await begin(slots)
        with pytest.raises(DeadlineExceededError):
            await late
        slots.may_go.set()
        return await submit(scheduler, slots, [3])

    assert run_scenario(slots, scenario) == [6]
    assert slots.cancelled == [100_000]


def test_one_failure_affects_no_other():
    slots = Slots(num_slots=4)

    async def scenario(scheduler):
        tasks = [submit(scheduler, slots, payloads) for payloads in (["boom", 9], [2], [3])]
        return await asyncio.gather(*tasks, return_exceptions=True)

    failed, *others = run_scenario(slots, scenario)
    assert isinstance(failed, InputError)
    assert others == [[4], [6]]


def test_after_a_failed_step_everything_goes_by_batches():
    """What was in slots, what waits, and what comes later."""
    slots, batches = Slots(num_slots=1), Batches()

    async def scenario(scheduler):
        slots.may_go.clear()
        inside = submit(scheduler, slots, [4, 5], client="inside")
        await begin(slots)
        waiting = submit(scheduler, slots, [6, 7], client="waiting")
        await asyncio.sleep(0)
        slots.error = RuntimeError("out of order")
        slots.may_go.set()
        found = await asyncio.gather(inside, waiting)
        found.append(await submit(scheduler, slots, [8]))
        return found, len(scheduler._runner), scheduler._runner.has_work

    assert run_scenario(slots, scenario, batches) == ([[12, 15], [18, 21], [24]], 0, False)
    assert slots.joined == [4]


def test_items_on_their_way_to_an_engine_that_fails_are_decoded_in_batches():
    slots, batches = Slots(num_slots=2), Batches()

    async def scenario(scheduler):
        slots.may_go.clear()
        inside = submit(scheduler, slots, [5], client="inside")
        await begin(slots)
        on_its_way = submit(scheduler, slots, [6, 7, 8], client="late")
        await asyncio.sleep(0)
        slots.error = RuntimeError("out of order")
        slots.may_go.set()
        return await asyncio.gather(inside, on_its_way), len(scheduler._runner)

    assert run_scenario(slots, scenario, batches) == ([[15], [18, 21, 24]], 0)
    assert slots.joined == [5]


def test_what_an_engine_cannot_decode_is_decoded_in_a_batch_and_may_fail_there():
    class Picky(Slots):
        def step(self):
            bad = [ticket for ticket, (_, payload) in self.left.items() if payload > 5]
            for ticket in bad:
                del self.left[ticket]
            return [(ticket, RuntimeError("too large")) for ticket in bad] + super().step()

    class Fragile(Batches):
        def decode(self, key, payloads):
            if 9 in payloads:
                raise RuntimeError("far too large")
            return super().decode(key, payloads)

    slots, batches = Picky(num_slots=4), Fragile()

    async def scenario(scheduler):
        tasks = [submit(scheduler, slots, payloads) for payloads in ([1, 6], [2, 9], [7], [3])]
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, failed, *others = run_scenario(slots, scenario, batches)
    assert (first, others) == ([2, 18], [[21], [6]])
    assert "far too large" in str(failed)


def test_a_retry_ends_with_its_request():
    slots, batches = Slots(num_slots=1), Batches()
    slots.error = RuntimeError("out of order")

    async def scenario(scheduler):
        release, blocked = threading.Event(), threading.Event()

        def block():
            blocked.set()
            assert release.wait(PATIENCE)

        slots.may_go.clear()
        gone = submit(scheduler, slots, [5], client="gone")
        await begin(slots)
        call = asyncio.ensure_future(scheduler.call(block, client="caller", timeout=PATIENCE))
        await asyncio.sleep(0)
        slots.may_go.set()
        assert await asyncio.to_thread(blocked.wait, PATIENCE)
        waiting = len(scheduler)
        gone.cancel()
        await asyncio.wait([gone])
        try:
            return waiting, len(scheduler)
        finally:
            release.set()
            await call

    assert run_scenario(slots, scenario, batches) == (1, 0)
    assert batches.batches == []


def test_an_engine_that_cannot_even_add_does_not_end_the_service(monkeypatch):
    slots = Slots()

    async def scenario(scheduler):
        monkeypatch.setattr(slots, "add", None)
        return await submit(scheduler, slots, [1]), await submit(scheduler, slots, [2])

    assert run_scenario(slots, scenario) == ([3], [6])


def test_calls_and_batches_share_the_time_with_the_slots():
    """The slots make way, and go on where they were."""
    slots, batches = Slots(num_slots=2), Batches()

    async def scenario(scheduler):
        slots.may_go.clear()
        long = submit(scheduler, slots, [3_000, 3_001], client="long")
        await begin(slots)
        called = asyncio.ensure_future(
            scheduler.call(lambda: len(slots.left), client="caller", timeout=PATIENCE)
        )
        batch = submit(scheduler, None, [1], client="batch")
        await asyncio.sleep(0)
        slots.may_go.set()
        return await asyncio.gather(called, batch, long)

    async def patiently(scheduler):
        # Pauses are due at once: no test depends on the time that a step takes.
        monkey = pytest.MonkeyPatch()
        monkey.setattr("attendo.serving.scheduling.scheduler.PAUSE_SECONDS", 0.0)
        try:
            return await scenario(scheduler)
        finally:
            monkey.undo()

    inside, batch, long = run_scenario(slots, patiently, batches)
    assert inside == 2  # the call ran while both were in their slots
    assert (batch, long) == ([3], [6_000, 6_002])


def test_a_long_call_yields_for_the_slots(monkeypatch):
    monkeypatch.setattr("attendo.serving.scheduling.scheduler.PAUSE_SECONDS", 0.0)
    slots, started, is_served = Slots(), threading.Event(), threading.Event()

    def compute() -> str:
        started.set()
        while not is_served.is_set():  # it would never end by itself
            checkpoint()
        return "done"

    async def scenario(scheduler):
        called = asyncio.ensure_future(scheduler.call(compute, client="caller", timeout=PATIENCE))
        assert await asyncio.to_thread(started.wait, PATIENCE)
        found = await submit(scheduler, slots, [3], client="small")
        is_served.set()
        return found, await called

    try:
        assert run_scenario(slots, scenario) == ([6], "done")
    finally:
        is_served.set()


def test_the_end_finishes_what_is_in_slots_and_what_waits():
    slots = Slots(num_slots=1)

    async def scenario(scheduler):
        slots.may_go.clear()
        tasks = [submit(scheduler, slots, [n]) for n in (3, 4, 5)]
        await begin(slots)
        closing = asyncio.ensure_future(scheduler.close())
        await asyncio.sleep(0)
        slots.may_go.set()
        found = await asyncio.gather(*tasks)
        await closing
        return found

    assert run_scenario(slots, scenario) == [[6], [8], [10]]


def test_two_engines_of_one_model_run_side_by_side():
    """After a reload the old model finishes what it has begun."""
    old, new = Slots(num_slots=1), Slots(num_slots=1)

    async def scenario(scheduler):
        old.may_go.clear()
        first = submit(scheduler, old, [50])
        await begin(old)
        second = submit(scheduler, new, [2])
        await asyncio.sleep(0)
        old.may_go.set()
        return await asyncio.gather(first, second)

    assert run_scenario(old, scenario) == [[100], [4]]
    assert old.joined == [50]
    assert new.joined == [2]


def test_slow_steps_leave_slots_unused_and_fast_ones_take_them_back():
    limit = SlotLimit(64, 0.01)
    for _ in range(NUM_TIMED_STEPS - 1):
        limit.record(20, 1.0)
    before = limit.num_slots
    limit.record(20, 1.0)
    assert MIN_SLOTS == limit.num_slots < before
    for _ in range(4 * NUM_TIMED_STEPS):
        limit.record(limit.num_slots, 1e-3)
    assert limit.num_slots == 64
    assert SlotLimit(2, 0.01).num_slots == 2
