"""The contract that every sequence-to-sequence model keeps.

Training, decoding, evaluation, inspection and serving speak to a model only through `Seq2SeqModel`;
the Transformer and each baseline keep it. Ids and tensors only: text stays at the edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

AttentionKind = Literal["encoder_self", "decoder_self", "cross"]
StateT = TypeVar("StateT")


class Memory(NamedTuple):
    """What the encoder hands to the decoder."""

    states: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, S), True = may attend


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every attention weight of one teacher-forced pass, by kind, layer and head.

    `explanation.cross[layer][b, head]` is a matrix of target by source positions whose rows sum to
    one over what the mask allows. A model without one of the kinds leaves it empty. In a model that
    reads source and target as one sequence (`attendo.architectures.decoder_only`) `cross` and
    `decoder_self` are two parts of one softmax: their rows sum to one together.
    """

    logits: Tensor  # (B, T, V)
    encoder_self: tuple[Tensor, ...]  # each (B, H, S, S)
    decoder_self: tuple[Tensor, ...]  # each (B, H, T, T)
    cross: tuple[Tensor, ...]  # each (B, H, T, S)

    def __getitem__(self, kind: AttentionKind) -> tuple[Tensor, ...]:
        return {
            "encoder_self": self.encoder_self,
            "decoder_self": self.decoder_self,
            "cross": self.cross,
        }[kind]


@runtime_checkable
class Seq2SeqModel(Protocol[StateT]):
    """A model that turns source ids into scores over target ids.

    `StateT` is its decoding state and its own affair.

    Masks are what `attendo.model.masks.padding_mask` gives, (B, 1, length) with True = may attend;
    when left out they are read off the ids. `tgt_ids` is the decoder's input: it starts with the
    start symbol. A model of series (`attendo.architectures.time_series`) reads rows of numbers (B, S, F) in the
    place of source ids, NaN where one is missing, and `says` whether labels or numbers come out.
    """

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Read the source (B, S) once."""
        ...

    def start(self, memory: Memory) -> StateT:
        """Make the decoding state before the first target position."""
        ...

    def step(self, ids: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed one target position, ids (N,); give the next logits (N, V) and the new state."""
        ...

    def reorder(self, state: StateT, index: Tensor) -> StateT:
        """Make row i of the new state from row `index[i]` of the old, as beams are moved."""
        ...

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Teacher forcing: logits (B, T, V) at every target position at once."""
        ...

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same pass with every attention weight kept."""
        ...
