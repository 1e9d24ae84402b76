"""The protocols between a model and what uses it.

Training, decoding, evaluation, inspection and serving use a model only through `Seq2SeqModel`,
which the Transformer and all other architectures implement. Ids and tensors only: text is handled
elsewhere. A model that also implements `SupportsStaticDecoding` can be searched by
`attendo.decoding.static.search`: decoder steps on tensors of fixed shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeVar,
    runtime_checkable,
)

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


class StaticDecoderProtocol(Protocol):
    """The decoder side of a batch of B sources with `width` hypotheses each, N = B x width rows."""

    num_sentences: int
    width: int
    src_length: int
    max_length: int
    position: Tensor
    """The target position (1,) that the next step writes; the caller increments it."""
    num_bytes: int
    """The memory that the buffers occupy."""

    def set_sources(self, src_ids: Tensor) -> None:
        """Store the sources (B', S'); unused rows repeat the last source."""
        ...

    def start(self) -> None:
        """Encode the stored sources, read the weights and clear all target positions."""
        ...

    def prepack_weights(self, num_steps: int) -> None:
        """Prepare the weights for about `num_steps` steps on a CPU; call it after `start`."""
        ...

    def step(self, ids: Tensor, *, window: int) -> Tensor:
        """Feed ids (N,), attend to `window` positions, and return the input of `project` (N, D)."""
        ...

    def project(self, x: Tensor) -> Tensor:
        """Return the logits (N', V) of any rows of the output of `step`."""
        ...

    def reorder_beams(self, parents: Tensor) -> None:
        """Continue each hypothesis from the one in slot `parents` (B, width) of its sentence."""
        ...

    def copy_rows_from(self, other: Self, rows: Tensor, *, num_steps: int) -> None:
        """Copy the sentences `rows` (B,) of another decoder after `num_steps` steps."""
        ...

    def resize(self, *, num_sentences: int, width: int, src_length: int, max_length: int) -> Self:
        """Return a decoder of another shape that shares the weights."""
        ...

    def weights_unchanged(self) -> bool:
        """Return whether the model's weights still have the same addresses."""
        ...


class SlotDecoderProtocol(StaticDecoderProtocol, Protocol):
    """A static decoder whose sentences occupy slots and are at positions (B,) of their own.

    There is one slot more than asked for, which nobody uses.
    """

    slots: Tensor
    """The indices (B,) of the slots."""

    def first(self, num_slots: int, src_length: int) -> Self:
        """Return a view of the first slots, with the first positions of their sources."""
        ...

    def refresh(self) -> None:
        """Read the weights of the model."""
        ...

    def admit(self, src_ids: Tensor, slots: Tensor) -> None:
        """Encode sources (M, S') into the slots (M,), where they are at their first positions."""
        ...

    def move(self, sources: Tensor, targets: Tensor, *, window: int) -> None:
        """Move sentences, of at most `window` positions, from slots `sources` to `targets`."""
        ...

    def clear(self, slots: Tensor) -> None:
        """Forget the keys and values of slots."""
        ...


@runtime_checkable
class SupportsSlotDecoding(Protocol):
    """A model that can make decoders whose sentences begin at different times."""

    decoding_cache: dict[Any, Any]
    tgt_vocab_size: int

    def supports_static_decoding(self, max_length: int) -> bool:
        """Return whether static steps equal `step`, for up to `max_length` positions."""
        ...

    def make_slot_decoder(
        self, *, num_slots: int, width: int, src_length: int, max_length: int
    ) -> SlotDecoderProtocol:
        """Return a decoder with this many slots."""
        ...


@runtime_checkable
class SupportsStaticDecoding(Protocol):
    """A model that can make static decoders."""

    decoding_cache: dict[Any, Any]
    """Belongs to this model object; copies of the model start with an empty one."""
    tgt_vocab_size: int

    def supports_static_decoding(self, max_length: int) -> bool:
        """Return whether static steps equal `step`, for up to `max_length` positions."""
        ...

    def make_static_decoder(
        self, *, num_sentences: int, width: int, src_length: int, max_length: int
    ) -> StaticDecoderProtocol:
        """Return a decoder for a batch of this shape."""
        ...
