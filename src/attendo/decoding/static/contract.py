"""What the fast search asks of a model: steps of fixed shapes, in place.

A model that has `fix` can be searched so (`attendo.decoding.static.search`); any other is searched through
the contract alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

if TYPE_CHECKING:
    from torch import Tensor


class StaticDecoderProtocol(Protocol):
    """A batch of B sources with `width` hypotheses each, N = B x width rows."""

    num_sentences: int
    width: int
    src_length: int
    max_length: int
    position: Tensor
    """Where the next step writes, (1,); whoever steps moves it on."""
    num_bytes: int
    """The memory that they hold."""

    def set_sources(self, src_ids: Tensor) -> None:
        """Lay the sources (B', S') down; rows that are left over repeat the last one."""
        ...

    def start(self) -> None:
        """Read the sources that were put down, and the weights; forget every target position."""
        ...

    def prepack_weights(self, num_steps: int) -> None:
        """Make the weights ready for about so many steps on a CPU; after `start`."""
        ...

    def step(self, ids: Tensor, *, window: int) -> Tensor:
        """Feed ids (N,), looking at `window` positions; give what `project` takes, (N, D)."""
        ...

    def project(self, x: Tensor) -> Tensor:
        """Turn what a step gave, of any rows, into logits (N', V)."""
        ...

    def reorder_beams(self, parents: Tensor) -> None:
        """Let each hypothesis go on from the one in slot `parents` (B, width) of its sentence."""
        ...

    def copy_rows_from(self, other: Self, rows: Tensor, *, num_steps: int) -> None:
        """Go on with the sentences `rows` (B,) of another one, after `num_steps` steps."""
        ...

    def resize(self, *, num_sentences: int, width: int, src_length: int, max_length: int) -> Self:
        """Make one of other sizes over the same weights."""
        ...

    def weights_unchanged(self) -> bool:
        """Tell whether the model's weights still lie where they did."""
        ...


@runtime_checkable
class SupportsStaticDecoding(Protocol):
    """A model whose decoding can be fixed."""

    decoding_cache: dict[Any, Any]
    """Goes with the model, and not with copies of it."""
    tgt_vocab_size: int

    def supports_static_decoding(self, max_length: int) -> bool:
        """Tell whether fixed steps compute what its own do just now, up to so many positions."""
        ...

    def make_static_decoder(
        self, *, num_sentences: int, width: int, src_length: int, max_length: int
    ) -> StaticDecoderProtocol:
        """Make the steps for a batch of this shape."""
        ...
