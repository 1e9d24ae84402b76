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


class EnsembleMemory(Memory):
    """What every encoder hands over; it reads as the first one's."""

    parts: tuple[Memory, ...]

    @classmethod
    def from_parts(cls, parts: tuple[Memory, ...]) -> EnsembleMemory:
        """Hold them together."""
        memory = cls(*parts[0])
        memory.parts = parts
        return memory


class Ensemble:
    """Keeps the contract of one model. All must read and write the same ids."""

    def __init__(self, models: Sequence[Seq2SeqModel[Any]]) -> None:
        if not models:
            raise InputError("an ensemble of no models", hint="give at least one")
        self.models = tuple(models)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> EnsembleMemory:
        """Read the source by every model."""
        return EnsembleMemory.from_parts(
            tuple(model.encode(src_ids, src_mask) for model in self.models)
        )

    def start(self, memory: Memory) -> tuple[Any, ...]:
        """Make the state of each."""
        if not isinstance(memory, EnsembleMemory):
            reason = "a memory of one model cannot start an ensemble"
            raise InputError(reason, hint="give what the ensemble's own encode gave")
        pairs = zip(self.models, memory.parts, strict=True)
        return tuple(model.start(part) for model, part in pairs)

    def step(self, ids: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """Feed one position to each; the logits are the log of the mean probabilities."""
        pairs = [
            model.step(ids, model_state)
            for model, model_state in zip(self.models, state, strict=True)
        ]
        return self._average_logits([logits for logits, _ in pairs]), tuple(own for _, own in pairs)

    def reorder(self, state: tuple[Any, ...], index: Tensor) -> tuple[Any, ...]:
        """Move the rows of each state."""
        pairs = zip(self.models, state, strict=True)
        return tuple(model.reorder(model_state, index) for model, model_state in pairs)

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Teacher forcing by each, averaged."""
        inputs = (src_ids, tgt_ids, src_mask, tgt_mask)
        return self._average_logits([model.forward(*inputs) for model in self.models])

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
            self._average_logits([one.logits for one in each]),
            *(
                tuple(weights for one in each for weights in one[kind])
                for kind in ("encoder_self", "decoder_self", "cross")
            ),
        )

    def _average_logits(self, logits: list[Tensor]) -> Tensor:
        sizes = sorted({one.size(-1) for one in logits})
        if len(sizes) > 1:
            reason = f"models of different vocabularies: {' and '.join(map(str, sizes))} tokens"
            raise InputError(reason, hint="an ensemble is of models with the same tokenizer")
        log_probs = torch.stack([one.float().log_softmax(-1) for one in logits])
        return log_probs.logsumexp(0) - math.log(len(logits))
