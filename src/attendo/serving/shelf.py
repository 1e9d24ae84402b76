"""Translated files that wait in memory for their readers, for a while and in bounded number."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Kept(NamedTuple):
    """One file."""

    content: bytes
    media_type: str
    name: str
    until: float


class Shelf:
    """Files by ids that nobody guesses; the oldest go when there is no more room."""

    def __init__(
        self,
        *,
        max_files: int,
        max_bytes: int,
        seconds: float,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._max_files, self._max_bytes = max_files, max_bytes
        self._seconds, self._clock = seconds, clock
        self._kept: OrderedDict[str, Kept] = OrderedDict()

    def put(self, content: bytes, *, media_type: str, name: str) -> str:
        """Keep a file, and give its id."""
        key = secrets.token_urlsafe(24)
        self._kept[key] = Kept(content, media_type, name, self._clock() + self._seconds)
        self._make_room()
        return key

    def get(self, key: str) -> Kept | None:
        """Give a file, if it is still there."""
        self._make_room()
        return self._kept.get(key)

    def _make_room(self) -> None:
        now = self._clock()
        total = sum(len(kept.content) for kept in self._kept.values())
        while self._kept:
            oldest = next(iter(self._kept.values()))
            is_over = len(self._kept) > self._max_files or total > self._max_bytes
            if not is_over and oldest.until > now:
                return
            total -= len(oldest.content)
            self._kept.popitem(last=False)
