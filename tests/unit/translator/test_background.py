"""A stage of a pipeline in a thread: order, errors, and that the thread ends."""

from __future__ import annotations

import queue
import threading
from itertools import count

import pytest

from attendo.translator.background import BackgroundStage


def running() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "attendo-stage"]


def double(numbers):
    for number in numbers:
        yield 2 * number


@pytest.mark.parametrize("depth", [1, 2, 100])
def test_results_come_in_order_through_several_stages(depth):
    first = BackgroundStage(range(50), double, depth=depth)
    with BackgroundStage(first, double, depth=depth) as second:
        assert list(second) == [4 * number for number in range(50)]
    assert not running()


def test_only_a_limited_number_of_results_waits():
    taken = []

    def numbers():
        for number in count():
            taken.append(number)
            yield number

    with BackgroundStage(numbers(), double, depth=2) as stage:
        results = iter(stage)
        assert [next(results), next(results)] == [0, 2]
    assert not running()
    assert len(taken) <= 2 + 2 + 1  # read, waiting, and in the hands of the thread


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_comes_after_what_was_done_before(error):
    def broken():
        yield 1
        raise error

    def failing(numbers):
        for number in numbers:
            if number > 1:
                raise error
            yield number

    for stage in (BackgroundStage(broken(), double), BackgroundStage([1, 2], failing)):
        results = iter(stage)
        assert next(results) in (1, 2)
        with pytest.raises(error):
            next(results)
        stage.close()
    assert not running()


def test_an_error_passes_through_the_next_stage():
    def broken():
        yield 1
        raise ValueError("line 2")

    with BackgroundStage(BackgroundStage(broken(), double), double) as stage:
        results = iter(stage)
        assert next(results) == 4
        with pytest.raises(ValueError, match="line 2"):
            next(results)
    assert not running()


def test_a_stage_that_waits_for_its_source_is_closed():
    channel: queue.Queue[int | None] = queue.Queue()
    first = BackgroundStage(iter(channel.get, None), double)
    second = BackgroundStage(first, double)
    channel.put(1)
    assert next(iter(second)) == 4
    second.close()  # although the first stage still waits for an item
    assert running() == [first._thread]
    channel.put(2)
    first._thread.join()
    assert not running()


def test_the_source_is_closed():
    closed = []

    def numbers():
        try:
            yield from count()
        finally:
            closed.append(True)

    with BackgroundStage(numbers(), double) as stage:
        next(iter(stage))
    assert closed == [True]


def test_long_work_is_ended_by_its_check():
    is_checking = threading.Event()

    def endless(numbers):
        for number in numbers:
            yield number
            while True:
                is_checking.set()
                stage.check()

    stage = BackgroundStage([1, 2], endless)
    assert next(iter(stage)) == 1
    is_checking.wait()
    stage.close()
    assert not running()
