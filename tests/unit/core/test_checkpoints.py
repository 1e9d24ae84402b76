from __future__ import annotations

import threading

import pytest

from attendo.core.checkpoints import checkpoint, on_checkpoint, without_checkpoints


def test_a_checkpoint_calls_only_what_its_own_thread_has_set() -> None:
    calls: list[str] = []
    with on_checkpoint(lambda: calls.append(threading.current_thread().name)):
        thread = threading.Thread(target=checkpoint)
        thread.start()
        thread.join()
        checkpoint()
        with without_checkpoints():
            checkpoint()
    checkpoint()
    assert calls == [threading.current_thread().name]


def test_an_exception_of_the_callback_ends_the_computation_and_leaves_nothing() -> None:
    def stop() -> None:
        raise KeyError

    with pytest.raises(KeyError), on_checkpoint(stop):
        checkpoint()
    checkpoint()
