"""The fast paths of the Transformer: training on packed sentences, decoding on fixed shapes.

Each computes what the methods of `attendo.model.transformer` compute; tests hold them equal. The
modules behind them are imported when a path is first taken.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.fast.packed_sequences import Packing
    from attendo.model.fast.slot_decoder import SlotDecoder
    from attendo.model.fast.static_decoder import StaticDecoder
    from attendo.model.transformer import Transformer


class FastPaths:
    """The methods of the Transformer that training and decoding call for speed."""

    @property
    def supports_packing(self) -> bool:
        """Whether `forward_packed` supports this model's options."""
        from attendo.model.fast import packed_forward

        return packed_forward.supports_packing(self._transformer)

    def forward_packed(
        self, src_ids: Tensor, tgt_ids: Tensor, src: Packing, tgt: Packing
    ) -> Tensor:
        """Return the decoder's last states (1, T, D) for packed sentences, without padding."""
        from attendo.model.fast import packed_forward

        return packed_forward.forward_packed(self._transformer, src_ids, tgt_ids, src, tgt)

    def supports_static_decoding(self, max_length: int) -> bool:
        """Return whether a static decoder is equal to `step`, up to `max_length` positions."""
        from attendo.model.fast import static_decoder

        return static_decoder.supports_static_decoding(self._transformer, max_length)

    def make_static_decoder(
        self, *, num_sentences: int, width: int, src_length: int, max_length: int
    ) -> StaticDecoder:
        """Return a decoder of fixed shapes, with `width` hypotheses per sentence."""
        from attendo.model.fast.static_decoder import StaticDecoder

        return StaticDecoder(
            self._transformer,
            num_sentences=num_sentences,
            width=width,
            src_length=src_length,
            max_length=max_length,
        )

    def make_slot_decoder(
        self, *, num_slots: int, width: int, src_length: int, max_length: int
    ) -> SlotDecoder:
        """Return a decoder of fixed shapes whose sentences begin at different times."""
        from attendo.model.fast.slot_decoder import SlotDecoder

        return SlotDecoder(
            self._transformer,
            num_slots=num_slots,
            width=width,
            src_length=src_length,
            max_length=max_length,
        )

    @cached_property
    def decoding_cache(self) -> dict[Any, Any]:
        """What searches keep with the model between calls; a copy of the model starts empty."""
        from attendo.model.fast.static_decoder import NonCopyingCache

        return NonCopyingCache()

    @property
    def _transformer(self) -> Transformer:
        return cast("Transformer", self)
