"""Rate limit per API key or client address: a token bucket."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_CLIENTS = 10_000
"""Maximum number of buckets; the least recently used one is evicted."""


class RateLimiter:
    """Allows `per_minute` requests per client and minute, in bursts if need be."""

    def __init__(
        self,
        per_minute: int,
        *,
        max_clients: int = MAX_CLIENTS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._capacity, self._max_clients, self._clock = float(per_minute), max_clients, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return the number of clients with a bucket."""
        return len(self._buckets)

    def acquire(self, client: str) -> float:
        """Take a token and return 0, or return the seconds until one is available."""
        if not self._capacity:
            return 0.0
        tokens = self._refill(client)
        self._buckets.pop(client, None)
        self._buckets[client] = (tokens - 1 if tokens >= 1 else tokens, self._clock())
        if len(self._buckets) > self._max_clients:
            self._buckets.popitem(last=False)
        return self._wait(tokens)

    def peek(self, client: str) -> float:
        """Return the seconds until a token is available, without taking one."""
        return self._wait(self._refill(client)) if self._capacity else 0.0

    def _refill(self, client: str) -> float:
        now = self._clock()
        tokens, last_time = self._buckets.get(client, (self._capacity, now))
        return min(self._capacity, tokens + (now - last_time) * self._capacity / 60)

    def _wait(self, tokens: float) -> float:
        return 0.0 if tokens >= 1 else (1 - tokens) * 60 / self._capacity


def client_key(address: str) -> str:
    """Return the bucket of an address: an IPv4 address, or an IPv6 /64 network.

    >>> client_key("192.0.2.7"), client_key("2001:db8::1:2:3:4")
    ('192.0.2.7', '2001:db8::/64')
    """
    try:
        ip = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(ip, ipaddress.IPv4Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((ip, 64), strict=False))
