"""Tells the host which sentences are done, without holding a GPU up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class Watch:
    """Looks at `is_done` (B,) after each step; on a GPU it sees what was so one look earlier.

    The next step is on its way by then, so that the GPU never waits for the host's answer. It costs
    one step too many at the end.
    """

    def __init__(self, is_done: Tensor) -> None:
        self.is_done, self.num_looks = is_done, 0
        self.is_late = is_done.is_cuda
        if self.is_late:
            self.seen = torch.zeros(2, *is_done.shape, dtype=torch.bool, pin_memory=True)
            self.events = (torch.cuda.Event(), torch.cuda.Event())

    def look(self) -> Tensor | None:
        """Give the flags on the host, or None where nothing is known yet."""
        if not self.is_late:
            return self.is_done
        now, before = self.num_looks % 2, (self.num_looks + 1) % 2
        self.seen[now].copy_(self.is_done, non_blocking=True)
        self.events[now].record()
        self.num_looks += 1
        if self.num_looks == 1:
            return None
        self.events[before].synchronize()
        return self.seen[before]
