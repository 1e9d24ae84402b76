"""Model and loss as one module: a padded or packed batch in, the summed loss out."""

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
    """The loss of a batch, summed over its target tokens."""

    objective: Tensor
    """The quantity that is minimized: the loss plus R-Drop."""
    loss: Tensor
    """The smoothed loss alone, which is logged."""


class LossModule(nn.Module):
    """A model with its training loss, so that both are compiled and wrapped together.

    Args:
        model: any model; packed batches need one with `forward_packed`. Its `target_type` chooses
            the loss.
        smoothing: label smoothing.
        rdrop_weight: weight of R-Drop: every pair is read twice, and the divergence of the two
            passes is added.

    """

    def __init__(self, model: nn.Module, *, smoothing: float, rdrop_weight: float = 0.0) -> None:
        super().__init__()
        self.model = model
        self.smoothing, self.rdrop_weight = smoothing, rdrop_weight
        self.loss_fn, self.rdrop_fn, _ = objective_for(model)

    def forward(self, batch: Batch | PackedBatch) -> BatchLoss:
        """Return the loss of a batch."""
        if self.rdrop_weight:
            logits, labels = self._logits_twice(batch)
            loss = self.loss_fn(logits, labels, smoothing=self.smoothing) / 2
            divergence = self.rdrop_fn(logits, batch.labels)
            return BatchLoss(objective=loss + self.rdrop_weight * divergence, loss=loss)
        if isinstance(batch, PackedBatch):
            output = cast("nn.Linear", self.model.output)
            loss = fused_linear_cross_entropy(
                self._packed_states(batch).squeeze(0),
                output.weight,
                output.bias,
                batch.labels.squeeze(0),
                smoothing=self.smoothing,
            )
        else:
            logits = self.model(batch.src_ids, batch.tgt_ids)
            loss = self.loss_fn(logits, batch.labels, smoothing=self.smoothing)
        return BatchLoss(objective=loss, loss=loss)

    def _logits_twice(self, batch: Batch | PackedBatch) -> tuple[Tensor, Tensor]:
        """Return logits (2B, T, V) and labels (2B, T) of two passes."""
        if isinstance(batch, Batch):
            src_ids, tgt_ids, labels = (torch.cat([tensor, tensor]) for tensor in batch)
            return self.model(src_ids, tgt_ids), labels
        output = cast("nn.Linear", self.model.output)
        logits = [output(self._packed_states(batch)) for _ in range(2)]
        return torch.cat(logits), torch.cat([batch.labels, batch.labels])

    def _packed_states(self, batch: PackedBatch) -> Tensor:
        model = cast("Transformer", self.model)
        max_src, max_tgt = batch.max_seqlens
        src = Packing(batch.src_cu_seqlens, batch.src_positions, max_src)
        tgt = Packing(batch.tgt_cu_seqlens, batch.tgt_positions, max_tgt)
        return model.forward_packed(batch.src_ids, batch.tgt_ids, src, tgt)
