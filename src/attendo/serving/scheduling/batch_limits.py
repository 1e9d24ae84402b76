"""How heavy a batch may be, so that it takes no longer than a slice.

The time of a batch depends on the model, the engine and the machine. The limit is therefore learned
from the batches themselves: one that took too long lowers it at once, and one near the limit that
took less than half of the time doubles it. Fixed costs of small batches do not disturb that.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Hashable

NEAR_LIMIT = 0.5
"""The share of the limit from which a batch says that the limit could be higher."""


class BatchLimits:
    """The largest weight of a batch, for each kind of work.

    Args:
        smallest: the limit is never lower, whatever the time.
        largest: it is never higher; it starts in the middle (geometrically).
        seconds: the time that a batch should take at most.

    """

    def __init__(self, *, smallest: float, largest: float, seconds: float) -> None:
        self._smallest, self._largest = min(smallest, largest), largest
        self._seconds = seconds
        self._limits: dict[Hashable, float] = {}
        self._rates: dict[Hashable, float] = {}

    def get(self, kind: Hashable) -> float:
        """Return the largest weight of a batch of this kind."""
        return self._limits.get(kind, math.sqrt(self._smallest * self._largest))

    def seconds_per_weight(self, kind: Hashable) -> float:
        """Return the rate of the last batch of this kind."""
        return self._rates.get(kind, self._seconds / self._largest)

    def record(self, kind: Hashable, weight: float, seconds: float) -> None:
        """Learn from the time that a batch took."""
        self._rates[kind] = seconds / max(weight, 1.0)
        limit = self.get(kind)
        if seconds > self._seconds:
            limit = min(limit, weight * self._seconds / seconds)
        elif seconds < self._seconds / 2 and weight >= NEAR_LIMIT * limit:
            limit *= 2
        self._limits[kind] = min(max(limit, self._smallest), self._largest)
