"""The request that is being answered: the client that it belongs to, and when it arrived.

The middleware sets both for each request. The scheduler shares the time among the clients, and the
time limit of a request counts from its arrival, however many steps its answer takes.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL_CLIENT = "local"
"""Work that no request asked for, and calls of a program that embeds the server."""

current_client: ContextVar[str] = ContextVar("current_client", default=LOCAL_CLIENT)
_arrival: ContextVar[float | None] = ContextVar("arrival", default=None)


@contextmanager
def one_time_limit() -> Iterator[None]:
    """Count the time limits within the context from its start, or from that of an outer one."""
    if _arrival.get() is not None:
        yield
        return
    token = _arrival.set(monotonic())
    try:
        yield
    finally:
        _arrival.reset(token)


def seconds_spent() -> float:
    """Return the seconds since the request arrived; 0 without a request.

    >>> seconds_spent()
    0.0
    """
    arrival = _arrival.get()
    return 0.0 if arrival is None else monotonic() - arrival
