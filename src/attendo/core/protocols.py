"""The protocol of every sequence-to-sequence model.

Training, decoding, evaluation, inspection and serving use a model only through `Seq2SeqModel`,
which the Transformer and all other architectures implement. Ids and tensors only: text is handled
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor

AttentionKind = Literal["encoder_self", "decoder_self", "cross"]
StateT = TypeVar("StateT")


class Memory(NamedTuple):
    """The encoder's output for the decoder."""

    states: Tensor  # (B, S, D)
    mask: Tensor  # (B, 1, S), True = may attend


@dataclass(frozen=True, slots=True)
class Explanation:
    """Every attention weight of one teacher-forced pass, by kind, layer and head.

    `explanation.cross[layer][b, head]` is a matrix of target by source positions whose rows sum to
    one over the visible positions. A kind that a model does not have is empty. In a model that
    reads source and target as one sequence (`attendo.architectures.decoder_only`), `cross` and
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
    """A model that turns source ids into scores of target ids.

    `StateT` is its decoding state, which is opaque to the caller.

    Masks are those of `attendo.model.masks.padding_mask`, (B, 1, length) with True = may attend; by
    default they are derived from the ids. `tgt_ids` is the decoder's input: it begins with the
    start symbol. A time-series model (`attendo.architectures.time_series`) takes rows of numbers
    (B, S, F) instead of source ids, NaN where one is missing; its `target_type` is labels or
    numbers.
    """

    def encode(self, src_ids: Tensor, src_mask: Tensor | None = None) -> Memory:
        """Encode the source (B, S)."""
        ...

    def start(self, memory: Memory) -> StateT:
        """Return the decoding state before the first target position."""
        ...

    def step(self, ids: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Feed one target position, ids (N,); return the next logits (N, V) and the new state."""
        ...

    def reorder(self, state: StateT, index: Tensor) -> StateT:
        """Return the state whose row i is row `index[i]` of the given one, for beam search."""
        ...

    def forward(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Tensor:
        """Teacher forcing: return the logits (B, T, V) of all target positions."""
        ...

    def explain(
        self,
        src_ids: Tensor,
        tgt_ids: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
    ) -> Explanation:
        """Run the same forward pass and keep all attention weights."""
        ...
