"""Tells the host which sentences are done, without holding a GPU up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class CompletionPoller:
    """Looks at `is_done` (B,) after each step; on a GPU it sees what was so one look earlier.

    The next step is on its way by then, so that the GPU never waits for the host's answer. It costs
    one step too many at the end.
    """

    def __init__(self, is_done: Tensor) -> None:
        self.is_done, self.num_polls = is_done, 0
        self.is_async = is_done.is_cuda
        if self.is_async:
            self.host_flags = torch.zeros(2, *is_done.shape, dtype=torch.bool, pin_memory=True)
            self.events = (torch.cuda.Event(), torch.cuda.Event())

    def poll(self) -> Tensor | None:
        """Give the flags on the host, or None where nothing is known yet."""
        if not self.is_async:
            return self.is_done
        current, previous = self.num_polls % 2, (self.num_polls + 1) % 2
        self.host_flags[current].copy_(self.is_done, non_blocking=True)
        self.events[current].record()
        self.num_polls += 1
        if self.num_polls == 1:
            return None
        self.events[previous].synchronize()
        return self.host_flags[previous]
