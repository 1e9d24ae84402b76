"""In-memory store of translated files, limited in time, number and size."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class StoredFile(NamedTuple):
    """A file that waits for its download."""

    content: bytes
    media_type: str
    name: str
    expires_at: float


class FileStore:
    """Files by unguessable id; the oldest are evicted first."""

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
        self._files: OrderedDict[str, StoredFile] = OrderedDict()

    def add(self, content: bytes, *, media_type: str, name: str) -> str:
        """Store a file and return its id."""
        key = secrets.token_urlsafe(24)
        self._files[key] = StoredFile(content, media_type, name, self._clock() + self._seconds)
        self._evict()
        return key

    def get(self, key: str) -> StoredFile | None:
        """Return a file, or None if it has expired."""
        self._evict()
        return self._files.get(key)

    def _evict(self) -> None:
        now = self._clock()
        total = sum(len(file.content) for file in self._files.values())
        while self._files:
            oldest = next(iter(self._files.values()))
            is_over = len(self._files) > self._max_files or total > self._max_bytes
            if not is_over and oldest.expires_at > now:
                return
            total -= len(oldest.content)
            self._files.popitem(last=False)
