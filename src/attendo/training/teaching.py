"""Teacher forcing as one function of model and batch, padded or packed: the sum of its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch import nn

from attendo.data.batching import Batch
from attendo.data.packed_batching import PackedBatch
from attendo.model.packing import Packing
from attendo.training.loss import find_aim
from attendo.training.projected_loss import projected_loss

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.transformer import Transformer


class Taught(NamedTuple):
    """What a pass over a batch gives, in sums over its target tokens."""

    goal: Tensor
    """What is made smaller."""
    loss: Tensor
    """The smoothed loss alone: what is told."""


class Teacher(nn.Module):
    """A model with the loss that it is trained by, as one module.

    So both are compiled together, and processes exchange the gradients of both.

    Args:
        model: keeps the contract; a packed batch needs one that can `pack`. What it `says` tells
            the loss.
        smoothing: of the labels.
        consistency: weight of R-Drop: every pair is read twice, and what the two passes disagree in
            is added.

    """

    def __init__(self, model: nn.Module, *, smoothing: float, consistency: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.smoothing, self.consistency = smoothing, consistency
        self.measure_loss, self.measure_disagreement, _ = find_aim(model)

    def forward(self, batch: Batch | PackedBatch) -> Taught:
        """Read a batch."""
        if isinstance(batch, PackedBatch) and not self.consistency:
            return self._read_states(batch)
        logits, labels = self._read_twice(batch) if self.consistency else self._read(batch)
        loss = self.measure_loss(logits, labels, smoothing=self.smoothing)
        if not self.consistency:
            return Taught(loss, loss)
        loss = loss / 2
        return Taught(
            loss + self.consistency * self.measure_disagreement(logits, batch.labels), loss
        )

    def _read_states(self, batch: PackedBatch) -> Taught:
        states = self._pack(batch)
        output = cast("nn.Linear", self.model.output)
        loss = projected_loss(
            states.squeeze(0),
            output.weight,
            output.bias,
            batch.labels.squeeze(0),
            smoothing=self.smoothing,
        )
        return Taught(loss, loss)

    def _read(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        if isinstance(batch, PackedBatch):
            return cast("nn.Linear", self.model.output)(self._pack(batch)), batch.labels
        return self.model(batch.src_ids, batch.tgt_ids), batch.labels

    def _read_twice(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """Give logits (2B, T, V), the second reading behind the first."""
        if isinstance(batch, Batch):
            return self._read(Batch(*(torch.cat([tensor, tensor]) for tensor in batch)))
        pairs = [self._read(batch) for _ in range(2)]
        logits, labels = zip(*pairs, strict=True)
        return torch.cat(logits), torch.cat(labels)

    def _pack(self, batch: PackedBatch) -> Tensor:
        model = cast("Transformer", self.model)
        src, tgt = (
            Packing(*side)
            for side in zip(
                (batch.src_starts, batch.tgt_starts),
                (batch.src_places, batch.tgt_places),
                batch.longest,
                strict=True,
            )
        )
        return model.pack(batch.src_ids, batch.tgt_ids, src, tgt)
