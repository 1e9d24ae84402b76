"""Figures between two reports of a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class ThroughputMeter:
    """Losses and tokens since the last report; losses stay on the device until asked for."""

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.tokens = 0
        self.start_time = time.perf_counter()

    def add(self, loss: Tensor, tokens: int) -> None:
        """Count a step."""
        self.losses.append(loss)
        self.tokens += tokens

    def exclude(self, seconds: float) -> None:
        """Leave time out that was not spent on training."""
        self.start_time += seconds

    @property
    def loss(self) -> float:
        """Average the steps."""
        return float(torch.stack(self.losses).mean())

    @property
    def tokens_per_second(self) -> float:
        """Give target tokens a second."""
        return self.tokens / (time.perf_counter() - self.start_time)
