"""The order of work: round robin over clients by the time that they used, and over their requests.

Each client has a clock, the seconds of computation that it was given. The client with the least
is next (start-time fair queueing; Goyal, Vin and Cheng 1996). A client that was idle starts about
where the others are, so that idle time is not saved up. The requests of one client take turns.

A turn is a call, or a batch: items of the request whose turn it is, and items with the same key of
other requests, collected in the same order, so that a batch serves as many clients as possible.

Items of requests that use slots (`attendo.serving.scheduling.slot_runner`) do not wait for turns:
whenever slots are free, `take_for_slots` returns items, in the same order of clients.

This module knows nothing of threads, models and event loops.
"""

from __future__ import annotations

import heapq
from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

MAX_CLOCKS = 1024
"""Clocks of idle clients that are kept: the latest ones; at times twice as many."""


@dataclass(eq=False)
class Request:
    """The work of one request: items that can share batches, or one call."""

    client: str
    key: Hashable | None
    """Items with equal keys may share a batch; None is a call, which has a turn of its own."""
    payloads: Sequence[Any]
    weights: Sequence[float]
    arrived_at: float = 0.0
    num_taken: int = 0
    is_paused: bool = False
    """A call that was begun: its payload continues it."""
    slots: Any = None
    """What has the slots for the items; None if they need turns."""

    @property
    def num_waiting(self) -> int:
        """The number of items that were not taken yet."""
        return len(self.payloads) - self.num_taken


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One payload of a request."""

    request: Request
    index: int

    @property
    def payload(self) -> Any:
        """The payload."""
        return self.request.payloads[self.index]

    @property
    def weight(self) -> float:
        """The weight of the payload."""
        return self.request.weights[self.index]


class _Client:
    """The waiting requests of one client; the one whose turn is next comes first."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.last_turn = -1
        self.requests: deque[Request] = deque()

    @property
    def num_paused(self) -> int:
        return sum(request.is_paused for request in self.requests)

    def find(self, key: Hashable) -> Request | None:
        return next((one for one in self.requests if one.key == key), None)


class FairQueue:
    """The requests that wait, by client.

    Args:
        max_paused: paused calls of a client; with this many no further one is begun.

    """

    def __init__(self, *, max_paused: int = 2) -> None:
        self._max_paused = max_paused
        self._clients: dict[str, _Client] = {}
        """Clients whose requests need turns."""
        self._slot_clients: dict[str, _Client] = {}
        """Clients whose requests use slots."""
        self._engines: Counter[Any] = Counter()
        """The number of these requests by what they name as their `slots`."""
        self._keys: Counter[Hashable | None] = Counter()
        self._clocks: dict[str, float] = {}
        self._clock, self._turn = 0.0, 0

    def __bool__(self) -> bool:
        """Return whether any request waits."""
        return bool(self._clients or self._slot_clients)

    @property
    def has_turns(self) -> bool:
        """Whether a request waits for a turn."""
        return bool(self._clients)

    @property
    def num_clients(self) -> int:
        """The number of clients with waiting requests."""
        return len(self._clients.keys() | self._slot_clients.keys())

    @property
    def only_key(self) -> Hashable | None:
        """The key of all waiting requests; None if they have several, or some are calls."""
        return next(iter(self._keys)) if len(self._keys) == 1 else None

    def count_waiting(self, client: str | None = None, *, at_most: int | None = None) -> int:
        """Return the number of waiting items, of all clients or of one.

        A request counts at most `at_most` items.
        """
        return sum(
            request.num_waiting if at_most is None else min(request.num_waiting, at_most)
            for clients in (self._clients, self._slot_clients)
            for name, one in clients.items()
            if client in (None, name)
            for request in one.requests
        )

    def total_weight(self) -> float:
        """Return the weight of all items that wait for turns."""
        return sum(
            sum(request.weights[request.num_taken :])
            for client in self._clients.values()
            for request in client.requests
        )

    def add(self, request: Request) -> None:
        """Add a request; one without items is ignored."""
        if not request.num_waiting:
            return
        name = request.client
        if not self and self._clocks:  # nobody waits: the past does not matter
            self._clock = max(self._clocks.values())
            self._clocks.clear()
        clients = self._clients_of(request)
        if name not in clients:
            clients[name] = _Client(name)
            self._clocks[name] = max(self._clock, self._clocks.get(name, 0.0))
        clients[name].requests.append(request)
        if request.slots is None:
            self._keys[request.key] += 1
        else:
            self._engines[request.slots] += 1

    def remove(self, request: Request) -> None:
        """Remove a request, if it still waits."""
        client = self._clients_of(request).get(request.client)
        if client is not None and request in client.requests:
            client.requests.remove(request)
            self._forget(client, request)

    def charge(self, client: str, seconds: float) -> None:
        """Add the time of a turn to the clock of a client."""
        self._clocks[client] = self.clock_of(client) + seconds
        # New clients start later and later, so that they cannot keep the others waiting for ever.
        self._clock += seconds / (self.num_clients + 1)
        if len(self._clocks) > 2 * MAX_CLOCKS + self.num_clients:
            latest = sorted(self._clocks, key=self.clock_of)[-MAX_CLOCKS:]
            names = (*latest, *self._clients, *self._slot_clients)
            self._clocks = {name: self.clock_of(name) for name in names}

    def clock_of(self, client: str) -> float:
        """Return the clock of a client."""
        return self._clocks.get(client, self._clock)

    def peek(self) -> Request | None:
        """Return the request whose turn is next."""
        client = min(self._clients.values(), key=self._rank, default=None)
        if client is None:
            return None
        if client.num_paused >= self._max_paused:  # finish what was begun
            return next(one for one in client.requests if one.is_paused or one.key is not None)
        return client.requests[0]

    def take(
        self, max_items: int, max_weight: float, seconds_per_weight: float = 1e-4
    ) -> list[Item]:
        """Remove and return the next turn: a call, or a batch of items with the same key.

        Args:
            max_items: of a batch.
            max_weight: of a batch; the first item is returned whatever its weight.
            seconds_per_weight: about what an item costs its client, until the turn was charged.

        Returns:
            The items; none if nothing waits.

        """
        first = self.peek()
        if first is None:
            return []
        self._turn += 1
        self._clock = max(self._clock, self.clock_of(first.client))
        if first.key is None:
            return [self._take_item(self._clients[first.client], first)]
        return self._take_batch(first, max_items, max_weight, seconds_per_weight)

    def take_for_slots(
        self, num_free: Callable[[Any], int], seconds_per_weight: float = 1e-4
    ) -> list[Item]:
        """Remove and return items for free slots, one client after another.

        Args:
            num_free: returns the free slots of what requests name as their `slots`.
            seconds_per_weight: what an item is expected to cost; it is charged to the client.

        """
        free = {engine: num_free(engine) for engine in self._engines}
        taken: list[Item] = []
        if all(count <= 0 for count in free.values()):
            return taken
        clients = enumerate(self._slot_clients.values())
        order = [(*self._rank(one), index, one) for index, one in clients]
        heapq.heapify(order)
        while order:
            _, _, index, client = heapq.heappop(order)
            request = next((one for one in client.requests if free[one.slots] > 0), None)
            if request is None:
                continue
            free[request.slots] -= 1
            self._turn += 1
            self._clock = max(self._clock, self.clock_of(client.name))
            item = self._take_item(client, request)
            self.charge(client.name, item.weight * seconds_per_weight)
            taken.append(item)
            if client.requests:
                heapq.heappush(order, (*self._rank(client), index, client))
            if all(count <= 0 for count in free.values()):
                break
        return taken

    def end_slots(self, slots: Any) -> None:
        """Let the requests that use these slots take turns instead."""
        waiting = [
            request
            for client in self._slot_clients.values()
            for request in client.requests
            if request.slots is slots
        ]
        for request in waiting:
            self.remove(request)
            request.slots = None
            self.add(request)

    def _clients_of(self, request: Request) -> dict[str, _Client]:
        return self._clients if request.slots is None else self._slot_clients

    def _take_batch(
        self, first: Request, max_items: int, max_weight: float, seconds_per_weight: float
    ) -> list[Item]:
        own = self._clients[first.client]
        order = [
            (*self._rank(client), index, client)
            for index, client in enumerate(self._clients.values())
            if client is not own
        ]
        order.append((*self._rank(own), -1, own))
        heapq.heapify(order)
        batch: list[Item] = []
        weight = 0.0
        while order and len(batch) < max_items:
            clock, _, index, client = heapq.heappop(order)
            request = client.find(first.key) if batch else first
            if request is None:
                continue
            weight += request.weights[request.num_taken]
            if batch and weight > max_weight:
                break
            item = self._take_item(client, request)
            batch.append(item)
            if client.requests:
                spent = clock + item.weight * seconds_per_weight
                heapq.heappush(order, (spent, self._turn, index, client))
        return batch

    def _rank(self, client: _Client) -> tuple[float, int]:
        """Return what orders the clients: the clock, then how long ago the last turn was."""
        return self.clock_of(client.name), client.last_turn

    def _take_item(self, client: _Client, request: Request) -> Item:
        """Take the next item of a request, and move the request behind the client's others."""
        item = Item(request, request.num_taken)
        request.num_taken += 1
        client.last_turn = self._turn
        client.requests.remove(request)
        if request.num_waiting:
            client.requests.append(request)
            return item
        self._forget(client, request)
        return item

    def _forget(self, client: _Client, request: Request) -> None:
        if request.slots is None:
            self._keys[request.key] -= 1
            if not self._keys[request.key]:
                del self._keys[request.key]
        else:
            self._engines[request.slots] -= 1
            if not self._engines[request.slots]:
                del self._engines[request.slots]
        if not client.requests:
            del self._clients_of(request)[client.name]
