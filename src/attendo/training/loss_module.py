"""Teacher forcing as one function of model and batch, padded or packed: the sum of its loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import torch
from torch import nn

from attendo.data.batching import Batch
from attendo.data.packed_batching import PackedBatch
from attendo.model.fast.packed_sequences import Packing
from attendo.training.fused_linear_cross_entropy import fused_linear_cross_entropy
from attendo.training.losses import objective_for

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.transformer import Transformer


class BatchLoss(NamedTuple):
    """What a pass over a batch gives, in sums over its target tokens."""

    objective: Tensor
    """What is made smaller."""
    loss: Tensor
    """The smoothed loss alone: what is told."""


class LossModule(nn.Module):
    """A model with the loss that it is trained by, as one module.

    So both are compiled together, and processes exchange the gradients of both.

    Args:
        model: keeps the contract; a packed batch needs one that can `pack`. What it `says` tells
            the loss.
        smoothing: of the labels.
        consistency: weight of R-Drop: every pair is read twice, and what the two passes disagree in
            is added.

    """

    def __init__(self, model: nn.Module, *, smoothing: float, rdrop_weight: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.smoothing, self.rdrop_weight = smoothing, rdrop_weight
        self.loss_fn, self.rdrop_fn, _ = objective_for(model)

    def forward(self, batch: Batch | PackedBatch) -> BatchLoss:
        """Read a batch."""
        if isinstance(batch, PackedBatch) and not self.rdrop_weight:
            return self._fused_loss(batch)
        logits, labels = self._logits_twice(batch) if self.rdrop_weight else self._logits(batch)
        loss = self.loss_fn(logits, labels, smoothing=self.smoothing)
        if not self.rdrop_weight:
            return BatchLoss(loss, loss)
        loss = loss / 2
        return BatchLoss(loss + self.rdrop_weight * self.rdrop_fn(logits, batch.labels), loss)

    def _fused_loss(self, batch: PackedBatch) -> BatchLoss:
        states = self._packed_states(batch)
        output = cast("nn.Linear", self.model.output)
        loss = fused_linear_cross_entropy(
            states.squeeze(0),
            output.weight,
            output.bias,
            batch.labels.squeeze(0),
            smoothing=self.smoothing,
        )
        return BatchLoss(loss, loss)

    def _logits(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        if isinstance(batch, PackedBatch):
            return cast("nn.Linear", self.model.output)(self._packed_states(batch)), batch.labels
        return self.model(batch.src_ids, batch.tgt_ids), batch.labels

    def _logits_twice(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """Give logits (2B, T, V), the second reading behind the first."""
        if isinstance(batch, Batch):
            return self._logits(Batch(*(torch.cat([tensor, tensor]) for tensor in batch)))
        pairs = [self._logits(batch) for _ in range(2)]
        logits, labels = zip(*pairs, strict=True)
        return torch.cat(logits), torch.cat(labels)

    def _packed_states(self, batch: PackedBatch) -> Tensor:
        model = cast("Transformer", self.model)
        src, tgt = (
            Packing(*side)
            for side in zip(
                (batch.src_cu_seqlens, batch.tgt_cu_seqlens),
                (batch.src_positions, batch.tgt_positions),
                batch.max_seqlens,
                strict=True,
            )
        )
        return model.forward_packed(batch.src_ids, batch.tgt_ids, src, tgt)
