"""Points at which the caller of a long computation can pause or cancel it.

Searches and studies call `checkpoint()` between their steps. By default that does nothing. A server
runs them in `on_checkpoint(callback)`, and its callback may block the thread for a while, so that
others are served, or raise an exception, if nobody waits for the result any more.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class _ThreadState(threading.local):
    callback: Callable[[], None] | None = None


_state = _ThreadState()


def checkpoint() -> None:
    """Call the callback of this thread, if it has one; no shared state may be half changed here."""
    if _state.callback is not None:
        _state.callback()


@contextmanager
def on_checkpoint(callback: Callable[[], None] | None) -> Iterator[None]:
    """Have `checkpoint` call a function in this thread, within the context.

    >>> calls = []
    >>> with on_checkpoint(lambda: calls.append("paused")):
    ...     checkpoint()
    >>> checkpoint()
    >>> calls
    ['paused']
    """
    previous, _state.callback = _state.callback, callback
    try:
        yield
    finally:
        _state.callback = previous


def without_checkpoints() -> AbstractContextManager[None]:
    """Ignore checkpoints within the context, e.g. while a shared model is changed."""
    return on_checkpoint(None)
