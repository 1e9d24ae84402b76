"""How often one key, or one address, may ask: a bucket of tokens that fills with time."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_CLIENTS = 10_000
"""Buckets that are kept; who has not come for longest is forgotten, and so starts anew."""


class RateLimit:
    """So many requests a minute for each client; all of them at once, if it likes."""

    def __init__(
        self,
        per_minute: int,
        *,
        most: int = MOST_CLIENTS,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._full, self._most, self._clock = float(per_minute), most, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Count the clients that are remembered."""
        return len(self._buckets)

    def take(self, client: str) -> float:
        """Take a token and give 0; or give the seconds until there is one."""
        if not self._full:
            return 0.0
        now = self._clock()
        tokens, before = self._buckets.pop(client, (self._full, now))
        tokens = min(self._full, tokens + (now - before) * self._full / 60)
        wait = 0.0 if tokens >= 1 else (1 - tokens) * 60 / self._full
        self._buckets[client] = (tokens - 1 if tokens >= 1 else tokens, now)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return wait


def name_address(address: str) -> str:
    """Name who asks by the address; of IPv6 by the network, whose addresses one person has.

    >>> name_address("192.0.2.7"), name_address("2001:db8::1:2:3:4")
    ('192.0.2.7', '2001:db8::/64')
    """
    try:
        number = ipaddress.ip_address(address.split("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(number, ipaddress.IPv4Address):
        return str(number)
    if number.ipv4_mapped is not None:
        return str(number.ipv4_mapped)
    return str(ipaddress.ip_network((number, 64), strict=False))
