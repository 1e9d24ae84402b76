"""The open connections of the server: limits in all and per address.

Connections that have not sent their request are dropped first, so that no client can occupy the
server by waiting.
"""

from __future__ import annotations

import ipaddress
from collections import Counter, OrderedDict, defaultdict
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from attendo.serving.transport.rate_limit import RateLimiter, client_key

if TYPE_CHECKING:
    from attendo.serving.config import ServeConfig
    from attendo.serving.transport.protocol import HttpProtocol

MAX_HEAD_BYTES = 32_768
REFUSALS_PER_MINUTE = 60
"""Refused requests per address after which nothing more is read."""


class ConnectionLimits(NamedTuple):
    """Limits of the connections of one process."""

    max_connections: int
    max_per_address: int
    head_seconds: float
    """Time until a connection must have sent the head of a request."""
    max_request_bytes: int
    """Bytes that a request may take on the wire."""
    trusted: str = ""
    """Addresses without a limit of their own: the proxies."""

    @classmethod
    def from_config(cls, config: ServeConfig, *, max_files: int) -> ConnectionLimits:
        """Return the limits of a server that may open `max_files` files."""
        return cls(
            max_connections=min(config.max_connections, max_files),
            max_per_address=config.max_connections_per_address,
            head_seconds=config.head_timeout,
            max_request_bytes=2 * config.max_body_bytes + MAX_HEAD_BYTES,
            trusted=config.proxies,
        )


class ConnectionTable:
    """The open connections of one process, and those that wait for a request, the oldest first."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self._trusted = _parse_networks(limits.trusted)
        self._counts: Counter[str] = Counter()
        self._waiting: OrderedDict[HttpProtocol, None] = OrderedDict()
        self._waiting_by_key: defaultdict[str, OrderedDict[HttpProtocol, None]]
        self._waiting_by_key = defaultdict(OrderedDict)
        self._refusals = RateLimiter(REFUSALS_PER_MINUTE)

    def __len__(self) -> int:
        """Return the number of open connections."""
        return self._counts.total()

    def admit(self, connection: HttpProtocol, address: str) -> HTTPStatus | None:
        """Add a connection, or return the status to refuse it with.

        If there are too many, the one that has waited longest for its request is dropped instead.
        """
        key = client_key(address)
        self._counts[key] += 1
        if not self._is_trusted(address) and self._counts[key] > self.limits.max_per_address:
            status = self._drop_waiting(self._waiting_by_key[key]) or HTTPStatus.TOO_MANY_REQUESTS
        elif len(self) > self.limits.max_connections:
            status = self._drop_waiting(self._waiting) or HTTPStatus.SERVICE_UNAVAILABLE
        else:
            status = HTTPStatus.OK
        if status is not HTTPStatus.OK:
            self.remove(connection, address)
            return status
        self.mark_waiting(connection, address)
        return None

    def remove(self, connection: HttpProtocol, address: str) -> None:
        """Forget a connection."""
        key = client_key(address)
        self._counts[key] -= 1
        if self._counts[key] <= 0:
            del self._counts[key]
        self.mark_busy(connection, address)

    def mark_waiting(self, connection: HttpProtocol, address: str) -> None:
        """Record that the server waits for a request, or for the rest of it."""
        for waiting in (self._waiting, self._waiting_by_key[client_key(address)]):
            waiting[connection] = None
            waiting.move_to_end(connection)

    def mark_busy(self, connection: HttpProtocol, address: str) -> None:
        """Record that a request was received."""
        self._waiting.pop(connection, None)
        key = client_key(address)
        if key in self._waiting_by_key:
            self._waiting_by_key[key].pop(connection, None)
            if not self._waiting_by_key[key]:
                del self._waiting_by_key[key]

    def count_refusal(self, address: str) -> bool:
        """Count a refused request, and return whether the address has sent too many."""
        return self._refusals.acquire(client_key(address)) > 0

    def _drop_waiting(self, waiting: OrderedDict[HttpProtocol, None]) -> HTTPStatus | None:
        """Drop the connection that has waited longest."""
        found = next(iter(waiting), None)
        if found is None:
            return None
        self.mark_busy(found, found.address)
        found.transport.abort()
        return HTTPStatus.OK

    def _is_trusted(self, address: str) -> bool:
        if self._trusted is None:
            return True
        try:
            ip = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(ip in network for network in self._trusted)


def _parse_networks(
    addresses: str,
) -> list[ipaddress.IPv4Network | ipaddress.IPv6Network] | None:
    """Return the networks of a comma-separated list; None for "*", which is all of them."""
    names = [name.strip() for name in addresses.split(",") if name.strip()]
    if "*" in names:
        return None
    networks = []
    for name in names:
        try:
            networks.append(ipaddress.ip_network(name, strict=False))
        except ValueError:  # a name: uvicorn compares it literally
            continue
    return networks
