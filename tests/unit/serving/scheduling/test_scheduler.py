from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import InputError
from attendo.serving.scheduling.errors import DeadlineExceededError, QueueFullError
from attendo.serving.scheduling.scheduler import Scheduler

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PATIENCE = 120.0


class Decoder:  # an engine
    """Doubles payloads; waits on request, and records its batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, list[Any]]] = []
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()
        self.has_started = threading.Event()

    def kind_of(self, _key: Any) -> str:
        return "engine"

    def decode(self, key: Any, payloads: list[Any]) -> list[Any]:
        self.has_started.set()
        assert self.may_go.wait(PATIENCE)
        self.threads.add(threading.current_thread().name)
        self.batches.append((key, payloads))
        if "boom" in payloads:
            raise InputError("boom")
        return [payload * 2 for payload in payloads]


def run_scenario(
    decoder: Decoder, scenario: Callable[[Scheduler], Coroutine[Any, Any, Any]], **options
) -> Any:
    """Run a scene with a scheduler, and close it."""

    async def run() -> Any:
        scheduler = Scheduler(decoder, **options)
        scheduler.start()
        try:
            return await asyncio.wait_for(scenario(scheduler), PATIENCE)
        finally:
            decoder.may_go.set()
            await asyncio.wait_for(scheduler.close(), PATIENCE)

    return asyncio.run(run())


async def hold(scheduler: Scheduler, decoder: Decoder) -> asyncio.Task[Any]:
    """Have the thread busy, so that whatever comes now waits."""
    decoder.may_go.clear()
    task = asyncio.ensure_future(scheduler.submit("hold", [0], timeout=PATIENCE))
    assert await asyncio.to_thread(decoder.has_started.wait, PATIENCE)
    return task


def submit(
    scheduler: Scheduler, key: Any, payloads: list[Any], **options
) -> asyncio.Task[list[Any]]:
    return asyncio.ensure_future(
        scheduler.submit(key, payloads, **{"timeout": PATIENCE, **options})
    )


def test_simultaneous_texts_share_a_batch_and_get_their_own_results() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[list[int]]:
        return await asyncio.gather(*(submit(scheduler, "a", [n]) for n in range(10)))

    assert run_scenario(decoder, scenario, wait=5.0, size=10) == [[2 * n] for n in range(10)]
    assert decoder.batches == [("a", list(range(10)))]
    assert len(decoder.threads) == 1
    assert threading.main_thread().name not in decoder.threads


def test_a_batch_has_at_most_the_requested_number_and_weight() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> None:
        held = await hold(scheduler, decoder)
        tasks = [submit(scheduler, "a", [n], weights=[n]) for n in (1, 1, 1, 9, 9, 1)]
        await asyncio.sleep(0)
        decoder.may_go.set()
        await asyncio.gather(held, *tasks)

    run_scenario(decoder, scenario, size=4, max_weight=11)
    assert [payloads for _, payloads in decoder.batches[1:]] == [[1, 1, 1], [9], [9, 1]]


def test_one_text_that_is_heavier_than_any_batch_is_decoded_alone() -> None:
    async def scenario(scheduler: Scheduler) -> list[Any]:
        return await scheduler.submit("a", ["x"], weights=[999], timeout=PATIENCE)

    assert run_scenario(Decoder(), scenario, max_weight=10) == ["xx"]


def test_other_options_make_another_batch_and_the_first_is_served_first() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> None:
        held = await hold(scheduler, decoder)
        tasks = [submit(scheduler, key, [n]) for n, key in enumerate("abab")]
        await asyncio.sleep(0)
        decoder.may_go.set()
        await asyncio.gather(held, *tasks)

    run_scenario(decoder, scenario)
    assert decoder.batches[1:] == [("a", [0, 2]), ("b", [1, 3])]


def test_a_long_request_lets_others_come_between() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        long = submit(scheduler, "a", list(range(6)))
        await asyncio.sleep(0)
        short = submit(scheduler, "b", [100])
        await asyncio.sleep(0)
        decoder.may_go.set()
        return (await asyncio.gather(held, long, short))[1]

    assert run_scenario(decoder, scenario, size=2, wait=0) == [0, 2, 4, 6, 8, 10]
    assert decoder.batches[1:3] == [("a", [0, 1]), ("b", [100])]


def test_a_full_queue_rejects_new_requests_and_serves_the_queued() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        waiting = [submit(scheduler, "a", [n]) for n in range(3)]
        await asyncio.sleep(0)
        assert len(scheduler) == 3
        with pytest.raises(QueueFullError):
            await scheduler.submit("a", [3], timeout=PATIENCE)
        with pytest.raises(QueueFullError):
            await scheduler.call(print, timeout=PATIENCE)
        decoder.may_go.set()
        return await asyncio.gather(held, *waiting)

    assert run_scenario(decoder, scenario, max_queue=3)[1:] == [[0], [2], [4]]


def test_a_request_past_its_deadline_fails_at_once_and_is_never_decoded() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> None:
        held = await hold(scheduler, decoder)
        with pytest.raises(DeadlineExceededError, match=r"0\.05 seconds"):
            await scheduler.submit("a", ["late"], timeout=0.05)
        assert not held.done()  # the thread is still busy
        assert len(scheduler) == 0
        decoder.may_go.set()
        await held
        assert await scheduler.submit("a", ["next"], timeout=PATIENCE) == ["nextnext"]

    run_scenario(decoder, scenario)
    assert all("late" not in payloads for _, payloads in decoder.batches)


def test_a_deadline_passes_while_the_own_batch_is_decoded() -> None:
    decoder = Decoder()
    decoder.may_go.clear()

    async def scenario(scheduler: Scheduler) -> None:
        with pytest.raises(DeadlineExceededError):
            await scheduler.submit("a", [1], timeout=0.1)
        decoder.may_go.set()
        assert await scheduler.submit("a", [2], timeout=PATIENCE) == [4]

    run_scenario(decoder, scenario, wait=0)


def test_a_client_that_disconnects_leaves_the_queue() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> None:
        held = await hold(scheduler, decoder)
        gone, stays = submit(scheduler, "a", ["gone"] * 3), submit(scheduler, "a", ["stays"])
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0.01)
        assert len(scheduler) == 1
        decoder.may_go.set()
        await asyncio.gather(held, stays)

    run_scenario(decoder, scenario)
    assert decoder.batches[1:] == [("a", ["stays"])]


def test_one_failure_affects_no_other() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        tasks = [submit(scheduler, "a", payloads) for payloads in (["x"], ["boom", "y"], ["z"])]
        await asyncio.sleep(0)
        decoder.may_go.set()
        return (await asyncio.gather(held, *tasks, return_exceptions=True))[1:]

    first, failed, last = run_scenario(decoder, scenario)
    assert (first, last) == (["xx"], ["zz"])
    assert isinstance(failed, InputError)


def test_a_decoder_that_gives_too_few_does_not_end_the_service() -> None:
    async def scenario(scheduler: Scheduler) -> None:
        with pytest.raises(RuntimeError, match="0 results for 1"):
            await scheduler.submit("a", [1], timeout=PATIENCE)
        assert await scheduler.call(lambda: "alive", timeout=PATIENCE) == "alive"

    class Empty(Decoder):
        def decode(self, _key: Any, _payloads: list[Any]) -> list[Any]:
            return []

    async def run() -> None:
        scheduler = Scheduler(Empty())
        scheduler.start()
        await scenario(scheduler)
        await scheduler.close()

    asyncio.run(run())


def test_a_call_runs_in_the_thread_and_its_error_comes_back() -> None:
    decoder = Decoder()

    def stop() -> None:
        raise StopIteration

    async def scenario(scheduler: Scheduler) -> None:
        name = await scheduler.call(lambda: threading.current_thread().name, timeout=PATIENCE)
        await scheduler.submit("a", [1], timeout=PATIENCE)
        assert decoder.threads == {name}
        assert await scheduler.call(int, "11", base=2, timeout=PATIENCE) == 3
        with pytest.raises(ZeroDivisionError):
            await scheduler.call(lambda: 1 / 0, timeout=PATIENCE)
        with pytest.raises(RuntimeError, match="raised StopIteration"):
            await scheduler.call(stop, timeout=PATIENCE)
        assert await scheduler.call(len, "abc", timeout=PATIENCE) == 3

    run_scenario(decoder, scenario)


def test_a_stream_yields_items_as_they_come_and_its_error_in_order() -> None:
    async def scenario(scheduler: Scheduler) -> None:
        seen: list[int] = []
        step = threading.Event()

        def loop():
            yield 1
            assert step.wait(PATIENCE)
            yield 2
            raise InputError("no more")

        stream = scheduler.stream(loop, timeout=PATIENCE)
        seen.append(await anext(stream))
        step.set()  # the first came before the second was made
        seen.append(await anext(stream))
        assert seen == [1, 2]
        with pytest.raises(InputError, match="no more"):
            await anext(stream)
        assert [n async for n in scheduler.stream(lambda: iter("ab"), timeout=PATIENCE)] == [
            "a",
            "b",
        ]

    run_scenario(Decoder(), scenario)


def test_a_stream_that_nobody_listens_to_stops() -> None:
    async def scenario(scheduler: Scheduler) -> None:
        made: list[int] = []
        may_go = threading.Semaphore(1)

        def loop():
            for number in range(10**9):
                assert may_go.acquire(timeout=PATIENCE)
                made.append(number)
                yield number

        stream = scheduler.stream(loop, timeout=PATIENCE)
        assert await anext(stream) == 0
        await stream.aclose()
        may_go.release(5)
        assert await scheduler.call(lambda: len(made), timeout=PATIENCE) < 4

    run_scenario(Decoder(), scenario)


def test_a_stream_has_a_deadline() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> None:
        held = await hold(scheduler, decoder)
        with pytest.raises(DeadlineExceededError):
            await anext(scheduler.stream(lambda: iter([1]), timeout=0.05))
        decoder.may_go.set()
        await held

    run_scenario(decoder, scenario)


def test_the_end_finishes_what_waits_and_takes_nothing_more() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        waiting = [submit(scheduler, str(n), [n]) for n in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(scheduler.close())
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="shutting down"):
            await scheduler.submit("a", [9], timeout=PATIENCE)
        decoder.may_go.set()
        await closing
        return await asyncio.gather(held, *waiting)

    assert run_scenario(decoder, scenario) == [[0], [0], [2], [4]]


def make_steps(log: list[str], name: str, count: int) -> Callable[[], str]:
    """Make a long computation with a checkpoint after every step; each step is a whole slice."""

    def run() -> str:
        for number in range(count):
            log.append(f"{name}{number}")
            checkpoint()
        return name

    return run


@pytest.fixture
def short_slices(monkeypatch) -> None:
    monkeypatch.setattr("attendo.serving.scheduling.scheduler.PAUSE_SECONDS", 0.0)


@pytest.mark.usefixtures("short_slices")
def test_a_long_call_yields_at_its_checkpoints() -> None:
    decoder, log = Decoder(), []

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        calls = [
            asyncio.ensure_future(
                scheduler.call(make_steps(log, name, 50), client=name, timeout=PATIENCE)
            )
            for name in "ab"
        ]
        await asyncio.sleep(0)
        small = submit(scheduler, "k", ["small"], client="c")
        small.add_done_callback(lambda _: log.append("small"))
        await asyncio.sleep(0)
        decoder.may_go.set()
        return (await asyncio.gather(held, small, *calls))[1:]

    assert run_scenario(decoder, scenario, wait=0) == [["smallsmall"], "a", "b"]
    assert log.index("small") < 50  # of 100 steps
    assert log.index("b0") < log.index("a49")
    assert log.index("a0") < log.index("b49")


@pytest.mark.usefixtures("short_slices")
def test_what_nobody_waits_for_ends_at_its_next_checkpoint() -> None:
    log: list[str] = []
    has_started, may_go = threading.Event(), threading.Event()

    def run() -> None:
        has_started.set()
        assert may_go.wait(PATIENCE)
        checkpoint()
        log.append("went on")

    async def scenario(scheduler: Scheduler) -> str:
        task = asyncio.ensure_future(scheduler.call(run, timeout=PATIENCE))
        assert await asyncio.to_thread(has_started.wait, PATIENCE)
        task.cancel()
        await asyncio.sleep(0)
        may_go.set()
        return await scheduler.call(lambda: "next", timeout=PATIENCE)

    assert run_scenario(Decoder(), scenario) == "next"
    assert log == []


@pytest.mark.usefixtures("short_slices")
def test_a_paused_batch_still_gives_everyone_their_own() -> None:
    class Slow(Decoder):
        def decode(self, key: Any, payloads: list[Any]) -> list[Any]:
            for _ in range(3):
                checkpoint()
            return super().decode(key, payloads)

    async def scenario(scheduler: Scheduler) -> list[Any]:
        return await asyncio.gather(
            *(
                submit(scheduler, n % 3, [n, -n], client=f"client {n % 4}", weights=[n + 1, 1])
                for n in range(24)
            )
        )

    assert run_scenario(Slow(), scenario, wait=0, max_weight=20) == [
        [2 * n, -2 * n] for n in range(24)
    ]


def test_a_full_queue_still_admits_a_client_that_has_less_than_its_share() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        hog = [submit(scheduler, "a", [n], client="hog") for n in range(4)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await scheduler.submit("a", [9], client="hog", timeout=PATIENCE)
        other = submit(scheduler, "b", [5], client="other")
        await asyncio.sleep(0)
        decoder.may_go.set()
        return (await asyncio.gather(held, other, *hog))[1]

    assert run_scenario(decoder, scenario, max_queue=4) == [10]


def test_a_large_request_does_not_fill_the_queue() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> list[Any]:
        held = await hold(scheduler, decoder)
        large, small = submit(scheduler, "a", [0] * 500), submit(scheduler, "a", [1])
        await asyncio.sleep(0)
        assert len(scheduler) == 501
        decoder.may_go.set()
        return (await asyncio.gather(held, large, small))[2]

    assert run_scenario(decoder, scenario, size=2, max_queue=8) == [2]


def test_a_heavy_request_does_not_delay_a_small_one_of_another_client() -> None:
    decoder = Decoder()

    async def scenario(scheduler: Scheduler) -> None:
        held = await hold(scheduler, decoder)
        heavy = submit(scheduler, "heavy", ["h"] * 50, weights=[100] * 50, client="hog")
        await asyncio.sleep(0)
        small = submit(scheduler, "small", ["s"], client="other")
        await asyncio.sleep(0)
        decoder.may_go.set()
        await asyncio.gather(held, heavy, small)

    run_scenario(decoder, scenario, wait=0, max_weight=400, min_weight=400)
    keys = [key for key, _ in decoder.batches[1:]]
    assert keys.index("small") <= 1
    assert all(len(payloads) <= 4 for key, payloads in decoder.batches if key == "heavy")
