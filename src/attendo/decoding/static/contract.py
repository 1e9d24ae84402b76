"""The interface between static search and a model: decoder steps on tensors of fixed shape.

A model that implements `SupportsStaticDecoding` can be searched by
`attendo.decoding.static.search`; every other model is searched through
`attendo.core.protocols.Seq2SeqModel`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor


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
