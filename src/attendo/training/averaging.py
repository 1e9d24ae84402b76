"""Averages of weights: over the last checkpoints (section 6.1), or exponential during training."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from torch import Tensor, nn


def average_weights(states: Iterable[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the mean of several checkpoints, read one at a time and summed in float64.

    >>> average_weights([{"w": torch.tensor([1.0])}, {"w": torch.tensor([2.0])}])
    {'w': tensor([1.5000])}
    """
    sums: dict[str, Tensor] = {}
    types: dict[str, torch.dtype] = {}
    count = 0
    for count, state in enumerate(states, start=1):  # noqa: B007 - read after the loop
        for name, tensor in state.items():
            types[name] = tensor.dtype
            sums[name] = sums.get(name, torch.zeros((), dtype=torch.float64)) + tensor.double()
    return {name: (total / count).to(types[name]) for name, total in sums.items()}


class Ema:
    """An exponential moving average of the weights, updated at every step."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        self.averages = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model: nn.Module, step: int) -> None:
        """Move towards the weights; the first steps move faster, to forget the initial weights."""
        decay = min(self.decay, step / (step + 9))
        for name, parameter in model.named_parameters():
            self.averages[name].lerp_(parameter.detach(), 1 - decay)
