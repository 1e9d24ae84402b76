"""An ensemble: several models decode together by the mean of their probabilities."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.protocols import Explanation, Memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel


class EnsembleMemory(Memory):
    """The encoder outputs of all models; as a `Memory` it is that of the first."""

    parts: tuple[Memory, ...]

    @classmethod
    def from_parts(cls, parts: tuple[Memory, ...]) -> EnsembleMemory:
        """Combine the outputs of all encoders."""
        memory = cls(*parts[0])
        memory.parts = parts
        return memory


class Ensemble:
    """Implements `Seq2SeqModel`. All models must have the same vocabularies."""

    def __init__(self, models: Sequence[Seq2SeqModel[Any]]) -> None:
        if not models:
            raise InputError("an ensemble has no models", hint="give at least one")
        self.models = tuple(models)

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> EnsembleMemory:
        """Encode the source with every model."""
        return EnsembleMemory.from_parts(
            tuple(model.encode(src_ids, src_mask) for model in self.models)
        )

    def start(self, memory: Memory) -> tuple[Any, ...]:
        """Return the initial states of all models."""
        if not isinstance(memory, EnsembleMemory):
            reason = "the memory of one model cannot start an ensemble"
            raise InputError(reason, hint="use the memory that Ensemble.encode returns")
        pairs = zip(self.models, memory.parts, strict=True)
        return tuple(model.start(part) for model, part in pairs)

    def step(self, ids: Tensor, state: tuple[Any, ...]) -> tuple[Tensor, tuple[Any, ...]]:
        """Step every model; the logits are the logarithm of the mean probabilities."""
        pairs = [
            model.step(ids, model_state)
            for model, model_state in zip(self.models, state, strict=True)
        ]
        return self._average_logits([logits for logits, _ in pairs]), tuple(
            new_state for _, new_state in pairs
        )

    def reorder(self, state: tuple[Any, ...], index: Tensor) -> tuple[Any, ...]:
        """Reorder the rows of every state."""
        pairs = zip(self.models, state, strict=True)
        return tuple(model.reorder(model_state, index) for model, model_state in pairs)

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Return the averaged logits under teacher forcing."""
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
        """Return the attention weights of all models, one model after the other."""
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
            reason = message(
                "the vocabulary sizes differ: {names} tokens", names=" and ".join(map(str, sizes))
            )
            raise InputError(reason, hint="the models of an ensemble need the same tokenizer")
        log_probs = torch.stack([one.float().log_softmax(-1) for one in logits])
        return log_probs.logsumexp(0) - math.log(len(logits))
