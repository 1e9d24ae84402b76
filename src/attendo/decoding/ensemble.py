"""Several models as one: at each step the mean of their probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.protocols import Explanation, Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel


class Memories(Memory):
    """What every encoder hands over; it reads as the first one's."""

    parts: tuple[Memory, ...]

    @classmethod
    def of(cls, parts: tuple[Memory, ...]) -> Memories:
        """Hold them together."""
        memories = cls(*parts[0])
        memories.parts = parts
        return memories


class Ensemble:
    """Keeps the contract of one model. All must read and write the same ids."""

    def __init__(self, models: Sequence[Seq2SeqModel[Any]]) -> None:
        if not models:
            raise InputError("an ensemble of no models", remedy="give at least one")
        self.models = tuple(models)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memories:
        """Read the source by every model."""
        return Memories.of(tuple(model.encode(src_ids, src_mask) for model in self.models))

    def start(self, memory: Memory) -> tuple[Any, ...]:
        """Make the state of each."""
        if not isinstance(memory, Memories):
            reason = "a memory of one model cannot start an ensemble"
            raise InputError(reason, remedy="give what the ensemble's own encode gave")
        pairs = zip(self.models, memory.parts, strict=True)
        return tuple(model.start(part) for model, part in pairs)

    def step(self, ids: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """Feed one position to each; the logits are the log of the mean probabilities."""
        pairs = [model.step(ids, own) for model, own in zip(self.models, state, strict=True)]
        return self._mean([logits for logits, _ in pairs]), tuple(own for _, own in pairs)

    def reorder(self, state: tuple[Any, ...], index: Tensor) -> tuple[Any, ...]:
        """Move the rows of each state."""
        pairs = zip(self.models, state, strict=True)
        return tuple(model.reorder(own, index) for model, own in pairs)

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Teacher forcing by each, averaged."""
        inputs = (src_ids, tgt_ids, src_mask, tgt_mask)
        return self._mean([model.forward(*inputs) for model in self.models])

    __call__ = forward

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Give the layers of all models, one model's after the other's."""
        inputs = (src_ids, tgt_ids, src_mask, tgt_mask)
        each = [model.explain(*inputs) for model in self.models]
        return Explanation(
            self._mean([one.logits for one in each]),
            *(
                tuple(weights for one in each for weights in one[kind])
                for kind in ("encoder_self", "decoder_self", "cross")
            ),
        )

    def _mean(self, logits: list[Tensor]) -> Tensor:
        sizes = sorted({one.size(-1) for one in logits})
        if len(sizes) > 1:
            reason = f"models of different vocabularies: {' and '.join(map(str, sizes))} tokens"
            raise InputError(reason, remedy="an ensemble is of models with the same tokenizer")
        log_probs = torch.stack([one.float().log_softmax(-1) for one in logits])
        return log_probs.logsumexp(0) - math.log(len(logits))
