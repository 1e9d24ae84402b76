"""Which requests may proceed: rate limits, API keys, and attempts to guess a key."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import TYPE_CHECKING

from attendo.serving.scheduling.clients import current_client
from attendo.serving.strict_json import MAX_BYTES_ON_LOOP
from attendo.serving.transport.api_keys import ApiKeys
from attendo.serving.transport.rate_limit import MAX_CLIENTS, RateLimiter, client_key
from attendo.serving.transport.request_body import RequestRejectedError

if TYPE_CHECKING:
    from starlette.types import Scope

    from attendo.serving.config import ServeConfig

READS_PER_POST = 10
"""GET requests that a client may send per POST request."""
WRITE_METHODS = ("POST", "DELETE")
"""Methods that are limited as POST requests are."""
WRONG_KEYS_PER_MINUTE = 20
"""Wrong keys per address, whatever the rate limit."""
REJECTIONS_PER_MINUTE = 60
"""Rejected requests per address that are answered at once."""
REJECTION_SECONDS = 1.0
"""When the others are answered, so that they cost the server nothing."""
UNLIMITED_PATHS, UNLIMITED_PREFIX = ("/", "/docs", "/favicon.ico", "/health"), "/app/"
"""The web page and the health check, which cost nothing."""


class Authorization:
    """Checks the rate and the key of every request."""

    def __init__(self, config: ServeConfig) -> None:
        per_minute = math.ceil(config.requests_per_minute / config.workers)
        self._posts = RateLimiter(per_minute)
        self._reads = RateLimiter(READS_PER_POST * per_minute)
        self._wrong_keys = RateLimiter(WRONG_KEYS_PER_MINUTE)
        self._rejections = RateLimiter(REJECTIONS_PER_MINUTE)
        self._api_keys = ApiKeys(config.api_keys)
        self._known: OrderedDict[tuple[str, int], None] = OrderedDict()

    async def check(self, scope: Scope, body: bytes) -> None:
        """Raise a `RequestRejectedError` if a request may not proceed."""
        address = client_address(scope)
        try:
            await self._check(scope, body, address)
        except RequestRejectedError as rejected:
            rejected.delay = self.count_rejection(address)
            raise

    def count_rejection(self, address: str) -> float:
        """Count a rejected request, and return the seconds until it may be answered."""
        return REJECTION_SECONDS if self._rejections.acquire(address) else 0.0

    async def _check(self, scope: Scope, body: bytes, address: str) -> None:
        has_penalty = self._rejections.peek(address) > 0
        is_searched = not has_penalty or len(body) <= MAX_BYTES_ON_LOOP
        key = await self._api_keys.read(scope, body if is_searched else b"")
        index = self._api_keys.index(key)
        self._check_guesses(address, key, index)
        client = address if index is None else f"key {index}"
        current_client.set(client)
        self._check_rate(scope, client)
        if not self._api_keys.allows(scope, key):
            if key:
                self._wrong_keys.acquire(address)
            reason = "Invalid API key" if key else "an API key is required"
            raise RequestRejectedError(403, reason, WWW_Authenticate="Bearer")

    def _check_guesses(self, address: str, key: bytes, index: int | None) -> None:
        """Reject keys from an address that has sent too many wrong ones, the right ones too.

        Otherwise the response would still tell a right key from a wrong one. Keys that were used
        from this address before are accepted: others may share it.
        """
        if not key:
            return
        if index is None or (address, index) not in self._known:
            _reject_if(self._wrong_keys.peek(address))
        if index is not None:
            self._known[address, index] = None
            self._known.move_to_end((address, index))
            if len(self._known) > MAX_CLIENTS:
                self._known.popitem(last=False)

    def _check_rate(self, scope: Scope, client: str) -> None:
        if scope["method"] in WRITE_METHODS:
            _reject_if(self._posts.acquire(client))
            return
        path: str = scope["path"]
        if path not in UNLIMITED_PATHS and not path.startswith(UNLIMITED_PREFIX):
            _reject_if(self._reads.acquire(client))


def client_address(scope: Scope) -> str:
    """Return the address that a request comes from, as the key of its limits."""
    return client_key((scope.get("client") or ("unknown", 0))[0])


def _reject_if(wait: float) -> None:
    if wait:
        raise RequestRejectedError(429, "too many requests", Retry_After=str(math.ceil(wait)))
