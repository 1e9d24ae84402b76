"""A limit on the memory that the bodies of all requests take.

A client may announce a large body and stop in the middle. `timeout` ends such a request, but until
then many of them would fill the memory. If the sum is over the limit, a body that is still being
received gives way: the oldest one of the client whose bodies take most.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PART_OVERHEAD = 64
"""Bytes that each received part of a body takes besides its content."""


class BodyBudget:
    """The bodies that are being received, and those whose requests are being processed."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.num_bytes = 0
        self._by_client: Counter[str] = Counter()
        self._receiving: dict[HeldBody, None] = {}
        """The oldest one first."""

    def receive(self, client: str) -> HeldBody:
        """Return an empty body of a client, which is counted until it is released."""
        body = HeldBody(self, client)
        self._receiving[body] = None
        return body

    def finish(self, body: HeldBody) -> None:
        """Record that a body was received: it is not dropped any more."""
        self._receiving.pop(body, None)

    def count(self, client: str, num_bytes: int) -> None:
        """Count bytes of a client, and drop bodies until the sum is within the limit."""
        self.num_bytes += num_bytes
        self._by_client[client] += num_bytes
        if not self._by_client[client]:
            del self._by_client[client]
        while self.num_bytes > self.max_bytes and self._receiving:
            self._find_largest().drop()

    def _find_largest(self) -> HeldBody:
        """Return the oldest body of the client whose bodies take most."""
        clients = {body.client for body in self._receiving}
        largest = max(clients, key=self._by_client.__getitem__)
        return next(body for body in self._receiving if body.client == largest)


class HeldBody:
    """The bytes of one body."""

    def __init__(self, budget: BodyBudget, client: str) -> None:
        self._budget, self.client = budget, client
        self._parts: list[bytes] = []  # one growing buffer per body would fragment the memory
        self._num_bytes = self._num_counted = 0
        self.is_dropped = False
        self.on_drop: Callable[[], None] = lambda: None
        """Called when another body needs the memory."""

    def __len__(self) -> int:
        """Return the number of bytes that were received."""
        return self._num_bytes

    def add(self, part: bytes) -> None:
        """Add received bytes."""
        self._parts.append(part)
        self._num_bytes += len(part)
        self._num_counted += len(part) + PART_OVERHEAD
        self._budget.count(self.client, len(part) + PART_OVERHEAD)

    def finish(self) -> bytes:
        """Return the whole body, which is counted until it is released."""
        self._budget.finish(self)
        content = b"".join(self._parts)
        self._parts.clear()
        return content

    def drop(self) -> None:
        """Release the memory of a body that is being received."""
        self.is_dropped = True
        self.release()
        self.on_drop()

    def release(self) -> None:
        """Release the memory; a second call does nothing."""
        self._budget.finish(self)
        self._parts.clear()
        num_bytes, self._num_counted = self._num_counted, 0
        self._budget.count(self.client, -num_bytes)
