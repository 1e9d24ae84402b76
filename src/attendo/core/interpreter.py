"""Settings of the Python interpreter while threads share a long computation."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

GPU_SWITCH_SECONDS = 0.0001
"""How long a thread that drives a GPU waits for one that runs Python. Each operation of PyTorch
lets the other threads run, and waits for them: with Python's default of 5 ms, a decoding step of 40
operations takes 48 ms next to a busy thread, with 1 ms 8.5 ms, with 0.1 ms 1.8 ms."""
NUM_NEW_OBJECTS = 100_000
"""Objects after which garbage is collected: a search makes many objects and hardly any cycles."""

_lock = Lock()
_restores: list[Callable[[], None]] = []
_num_active = 0


@contextmanager
def favor_throughput(*, drives_gpu: bool) -> Iterator[None]:
    """Let threads alternate quickly where one drives a GPU, and collect garbage less often.

    Both are settings of the process; they are restored when the last one leaves.
    """
    _enter(drives_gpu=drives_gpu)
    try:
        yield
    finally:
        _leave()


def let_threads_alternate() -> None:
    """Let threads alternate quickly, for a process in which one of them drives a GPU."""
    sys.setswitchinterval(min(GPU_SWITCH_SECONDS, sys.getswitchinterval()))


def _enter(*, drives_gpu: bool) -> None:
    global _num_active
    with _lock:
        if not _num_active:
            first, *others = gc.get_threshold()
            _restores.append(partial(gc.set_threshold, first, *others))
            if first:  # otherwise it is switched off
                gc.set_threshold(max(NUM_NEW_OBJECTS, first), *others)
        if drives_gpu and sys.getswitchinterval() > GPU_SWITCH_SECONDS:
            _restores.append(partial(sys.setswitchinterval, sys.getswitchinterval()))
            let_threads_alternate()
        _num_active += 1


def _leave() -> None:
    global _num_active
    with _lock:
        _num_active -= 1
        while not _num_active and _restores:
            _restores.pop()()
