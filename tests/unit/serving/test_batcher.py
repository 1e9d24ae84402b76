from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest

from attendo.core.errors import InputError
from attendo.serving.batcher import Batcher, DeadlineExceededError, QueueFullError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

PATIENCE = 30.0


class Decoder:
    """Gives payloads doubled; waits while it is told to, and notes its batches."""

    def __init__(self) -> None:
        self.batches: list[tuple[Any, list[Any]]] = []
        self.threads: set[str] = set()
        self.may_go = threading.Event()
        self.may_go.set()
        self.has_begun = threading.Event()

    def __call__(self, key: Any, payloads: list[Any]) -> list[Any]:
        self.has_begun.set()
        assert self.may_go.wait(PATIENCE)
        self.threads.add(threading.current_thread().name)
        self.batches.append((key, payloads))
        if "boom" in payloads:
            raise InputError("boom")
        return [payload * 2 for payload in payloads]


def play(decoder: Decoder, scene: Callable[[Batcher], Coroutine[Any, Any, Any]], **options) -> Any:
    """Run a scene with a batcher, and close it."""

    async def run() -> Any:
        batcher = Batcher(decoder, **options)
        batcher.start()
        try:
            return await asyncio.wait_for(scene(batcher), PATIENCE)
        finally:
            decoder.may_go.set()
            await asyncio.wait_for(batcher.close(), PATIENCE)

    return asyncio.run(run())


async def hold(batcher: Batcher, decoder: Decoder) -> asyncio.Task[Any]:
    """Have the thread busy, so that whatever comes now waits."""
    decoder.may_go.clear()
    task = asyncio.ensure_future(batcher.submit("hold", [0], timeout=PATIENCE))
    assert await asyncio.to_thread(decoder.has_begun.wait, PATIENCE)
    return task


def submit(batcher: Batcher, key: Any, payloads: list[Any], **options) -> asyncio.Task[list[Any]]:
    return asyncio.ensure_future(batcher.submit(key, payloads, **{"timeout": PATIENCE, **options}))


def test_what_comes_together_is_decoded_together_and_everyone_gets_their_own() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> list[list[int]]:
        return await asyncio.gather(*(submit(batcher, "a", [n]) for n in range(10)))

    assert play(decoder, scene, wait=5.0, size=10) == [[2 * n] for n in range(10)]
    assert decoder.batches == [("a", list(range(10)))]
    assert len(decoder.threads) == 1
    assert threading.main_thread().name not in decoder.threads


def test_a_batch_is_no_larger_than_told_in_number_and_in_weight() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> None:
        held = await hold(batcher, decoder)
        tasks = [submit(batcher, "a", [n], sizes=[n]) for n in (1, 1, 1, 9, 9, 1)]
        await asyncio.sleep(0)
        decoder.may_go.set()
        await asyncio.gather(held, *tasks)

    play(decoder, scene, size=4, max_weight=11)
    assert [payloads for _, payloads in decoder.batches[1:]] == [[1, 1, 1], [9], [9, 1]]


def test_one_text_that_is_heavier_than_any_batch_is_decoded_alone() -> None:
    async def scene(batcher: Batcher) -> list[Any]:
        return await batcher.submit("a", ["x"], sizes=[999], timeout=PATIENCE)

    assert play(Decoder(), scene, max_weight=10) == ["xx"]


def test_other_options_make_another_batch_and_the_first_is_served_first() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> None:
        held = await hold(batcher, decoder)
        tasks = [submit(batcher, key, [n]) for n, key in enumerate("abab")]
        await asyncio.sleep(0)
        decoder.may_go.set()
        await asyncio.gather(held, *tasks)

    play(decoder, scene)
    assert decoder.batches[1:] == [("a", [0, 2]), ("b", [1, 3])]


def test_a_long_request_lets_others_come_between() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> list[Any]:
        held = await hold(batcher, decoder)
        long = submit(batcher, "a", list(range(6)))
        await asyncio.sleep(0)
        short = submit(batcher, "b", [100])
        await asyncio.sleep(0)
        decoder.may_go.set()
        return (await asyncio.gather(held, long, short))[1]

    assert play(decoder, scene, size=2, wait=0) == [0, 2, 4, 6, 8, 10]
    assert decoder.batches[1:3] == [("a", [0, 1]), ("b", [100])]


def test_a_full_queue_sends_away_who_comes_and_serves_who_waits() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> list[Any]:
        held = await hold(batcher, decoder)
        waiting = [submit(batcher, "a", [n]) for n in range(3)]
        await asyncio.sleep(0)
        assert len(batcher) == 3
        with pytest.raises(QueueFullError):
            await batcher.submit("a", [3], timeout=PATIENCE)
        with pytest.raises(QueueFullError):
            await batcher.call(print, timeout=PATIENCE)
        decoder.may_go.set()
        return await asyncio.gather(held, *waiting)

    assert play(decoder, scene, max_queue=3)[1:] == [[0], [2], [4]]


def test_who_is_past_the_deadline_hears_it_at_once_and_is_never_decoded() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> None:
        held = await hold(batcher, decoder)
        with pytest.raises(DeadlineExceededError, match=r"0\.05 seconds"):
            await batcher.submit("a", ["late"], timeout=0.05)
        assert not held.done()  # the thread is still busy
        assert len(batcher) == 0
        decoder.may_go.set()
        await held
        assert await batcher.submit("a", ["next"], timeout=PATIENCE) == ["nextnext"]

    play(decoder, scene)
    assert all("late" not in payloads for _, payloads in decoder.batches)


def test_a_deadline_passes_while_the_own_batch_is_decoded() -> None:
    decoder = Decoder()
    decoder.may_go.clear()

    async def scene(batcher: Batcher) -> None:
        with pytest.raises(DeadlineExceededError):
            await batcher.submit("a", [1], timeout=0.1)
        decoder.may_go.set()
        assert await batcher.submit("a", [2], timeout=PATIENCE) == [4]

    play(decoder, scene, wait=0)


def test_who_goes_away_leaves_the_queue() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> None:
        held = await hold(batcher, decoder)
        gone, stays = submit(batcher, "a", ["gone"] * 3), submit(batcher, "a", ["stays"])
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0.01)
        assert len(batcher) == 1
        decoder.may_go.set()
        await asyncio.gather(held, stays)

    play(decoder, scene)
    assert decoder.batches[1:] == [("a", ["stays"])]


def test_one_failure_takes_nobody_along() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> list[Any]:
        held = await hold(batcher, decoder)
        tasks = [submit(batcher, "a", payloads) for payloads in (["x"], ["boom", "y"], ["z"])]
        await asyncio.sleep(0)
        decoder.may_go.set()
        return (await asyncio.gather(held, *tasks, return_exceptions=True))[1:]

    first, failed, last = play(decoder, scene)
    assert (first, last) == (["xx"], ["zz"])
    assert isinstance(failed, InputError)


def test_a_decoder_that_gives_too_few_does_not_end_the_service() -> None:
    async def scene(batcher: Batcher) -> None:
        with pytest.raises(RuntimeError, match="0 results for 1"):
            await batcher.submit("a", [1], timeout=PATIENCE)
        assert await batcher.call(lambda: "alive", timeout=PATIENCE) == "alive"

    async def run() -> None:
        batcher = Batcher(lambda _key, _payloads: [])
        batcher.start()
        await scene(batcher)
        await batcher.close()

    asyncio.run(run())


def test_a_call_runs_in_the_thread_and_its_error_comes_back() -> None:
    decoder = Decoder()

    def stop() -> None:
        raise StopIteration

    async def scene(batcher: Batcher) -> None:
        name = await batcher.call(lambda: threading.current_thread().name, timeout=PATIENCE)
        await batcher.submit("a", [1], timeout=PATIENCE)
        assert decoder.threads == {name}
        assert await batcher.call(int, "11", base=2, timeout=PATIENCE) == 3
        with pytest.raises(ZeroDivisionError):
            await batcher.call(lambda: 1 / 0, timeout=PATIENCE)
        with pytest.raises(RuntimeError, match="raised StopIteration"):
            await batcher.call(stop, timeout=PATIENCE)
        assert await batcher.call(len, "abc", timeout=PATIENCE) == 3

    play(decoder, scene)


def test_a_stream_gives_things_as_they_come_and_its_error_at_its_place() -> None:
    async def scene(batcher: Batcher) -> None:
        seen: list[int] = []
        step = threading.Event()

        def walk():
            yield 1
            assert step.wait(PATIENCE)
            yield 2
            raise InputError("no more")

        stream = batcher.stream(walk, timeout=PATIENCE)
        seen.append(await anext(stream))
        step.set()  # the first came before the second was made
        seen.append(await anext(stream))
        assert seen == [1, 2]
        with pytest.raises(InputError, match="no more"):
            await anext(stream)
        assert [n async for n in batcher.stream(lambda: iter("ab"), timeout=PATIENCE)] == ["a", "b"]

    play(Decoder(), scene)


def test_a_stream_that_nobody_listens_to_stops() -> None:
    async def scene(batcher: Batcher) -> None:
        made: list[int] = []
        may_go = threading.Semaphore(1)

        def walk():
            for number in range(10**9):
                assert may_go.acquire(timeout=PATIENCE)
                made.append(number)
                yield number

        stream = batcher.stream(walk, timeout=PATIENCE)
        assert await anext(stream) == 0
        await stream.aclose()
        may_go.release(5)
        assert await batcher.call(lambda: len(made), timeout=PATIENCE) < 4

    play(Decoder(), scene)


def test_a_stream_has_a_deadline() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> None:
        held = await hold(batcher, decoder)
        with pytest.raises(DeadlineExceededError):
            await anext(batcher.stream(lambda: iter([1]), timeout=0.05))
        decoder.may_go.set()
        await held

    play(decoder, scene)


def test_the_end_finishes_what_waits_and_takes_nothing_more() -> None:
    decoder = Decoder()

    async def scene(batcher: Batcher) -> list[Any]:
        held = await hold(batcher, decoder)
        waiting = [submit(batcher, str(n), [n]) for n in range(3)]
        await asyncio.sleep(0)
        closing = asyncio.ensure_future(batcher.close())
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError, match="shutting down"):
            await batcher.submit("a", [9], timeout=PATIENCE)
        decoder.may_go.set()
        await closing
        return await asyncio.gather(held, *waiting)

    assert play(decoder, scene) == [[0], [0], [2], [4]]
