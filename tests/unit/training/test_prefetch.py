from __future__ import annotations

import threading

import pytest

from attendo.training.prefetch import prefetch


def test_order_is_kept():
    assert list(prefetch(list(range(50)), lambda n: n * n)) == [n * n for n in range(50)]


def test_nothing_to_read():
    assert list(prefetch([], int)) == []


def test_an_error_is_raised_in_order():
    def read(number: int) -> int:
        if number == 3:
            raise OSError("disk")
        return number

    items = prefetch(range(9), read)
    assert [next(items) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(OSError, match="disk"):
        next(items)


def test_reads_ahead_but_not_without_end():
    started = threading.Semaphore(0)
    items = prefetch(range(100), lambda n: started.release() or n, depth=4)
    assert next(items) == 0
    for _ in range(6):  # one given, four ready, one in the worker's hand
        assert started.acquire(timeout=60)
    assert not started.acquire(timeout=0.05)
    items.close()


def test_leaving_early_ends_the_thread():
    before = threading.active_count()
    items = prefetch(range(1000), lambda n: n)
    assert next(items) == 0
    assert threading.active_count() == before + 1
    items.close()
    assert threading.active_count() == before
