"""Hashes of texts, and a compact set of them.

Duplicates are detected by 64-bit hashes. A Python set would need about 70 bytes per hash;
`HashSet64` needs 8 bytes per hash plus a fixed 2 to 4 MB, 36 MB for 4 million pairs. The
probability that any two different pairs among 4 million have the same hash is 4 in 10 million.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from hashlib import blake2b

MAX_RECENT = 32_768
"""Number of hashes in the Python set before they are merged into the sorted array."""


def hash_text(text: str) -> int:
    """Hash a text into 64 bits, the same on every machine."""
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def hash_pair(src: str, tgt: str) -> int:
    """Hash two texts in order; the boundary between them matters.

    >>> hash_pair("ab", "c") == hash_pair("a", "bc")
    False
    """
    return hash_text(f"{len(src)}:{src}{tgt}")


class HashSet64:
    """A set of 64-bit hashes that only grows: a sorted array and a small set of recent ones.

    >>> seen = HashSet64()
    >>> seen.add(7), seen.add(7), len(seen)
    (True, False, 1)
    """

    def __init__(self) -> None:
        self._sorted = array("Q")
        self._recent: set[int] = set()

    def __len__(self) -> int:
        return len(self._sorted) + len(self._recent)

    def __contains__(self, value: int) -> bool:
        if value in self._recent:
            return True
        index = bisect_left(self._sorted, value)
        return index < len(self._sorted) and self._sorted[index] == value

    def add(self, value: int) -> bool:
        """Add a hash; return whether it is new."""
        if value in self:
            return False
        self._recent.add(value)
        if len(self._recent) >= MAX_RECENT:
            self._merge()
        return True

    def _merge(self) -> None:
        """Merge both parts in place: a stable sort merges two sorted runs in linear time."""
        import numpy as np  # here, since settings are checked before anything heavy is imported

        self._sorted.extend(sorted(self._recent))
        np.frombuffer(self._sorted, dtype=np.uint64).sort(kind="stable")
        self._recent.clear()
