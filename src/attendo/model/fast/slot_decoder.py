"""Decoding steps of sentences that begin at different times, on preallocated tensors.

`StaticDecoder` decodes a batch whose sentences are all at one position. Here each sentence occupies
a slot and has a position of its own, so that one can end while the others go on, and another take
its slot. A spare slot takes what a captured graph has to write and nobody needs.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self

import torch

from attendo.model.fast.static_decoder import StaticDecoder

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.model.transformer import Transformer


class SlotDecoder(StaticDecoder):
    """The decoder's state for `num_slots` sentences with `width` hypotheses each.

    Args:
        model: in evaluation mode; `supports_static_decoding` must be true for it.
        num_slots: sentences at a time.
        width: hypotheses per sentence.
        src_length: S, the maximum source length.
        max_length: T, the maximum number of target positions.

    """

    position: Tensor  # (B,)
    src_lengths: Tensor  # (B,)

    def __init__(
        self, model: Transformer, *, num_slots: int, width: int, src_length: int, max_length: int
    ) -> None:
        super().__init__(
            model,
            num_sentences=num_slots + 1,
            width=width,
            src_length=src_length,
            max_length=max_length,
        )
        self.position = torch.zeros(num_slots + 1, dtype=torch.long, device=self.position.device)
        self.src_lengths = torch.zeros_like(self.position)
        self.slots = torch.arange(num_slots + 1, device=self.position.device)
        self.diagonal = self.diagonal_mask[0, :, 0]  # (width, width)

    def first(self, num_slots: int, src_length: int) -> Self:
        """Return a view of the first slots, with the first positions of their sources."""
        view = copy(self)
        view.num_sentences, view.src_length = num_slots, src_length
        view.self_kv = [buffer[:num_slots] for buffer in self.self_kv]
        view.cross_kv = [
            tuple(buffer[:num_slots, :, :src_length] for buffer in pair) for pair in self.cross_kv
        ]
        view.cross_mask = self.cross_mask[:num_slots, :, :, :src_length]
        view.self_mask = self.self_mask[:num_slots]
        view.position, view.slots = self.position[:num_slots], self.slots[:num_slots]
        view.src_lengths = self.src_lengths[:num_slots]
        return view

    def admit(self, src_ids: Tensor, slots: Tensor) -> None:
        """Encode sources (M, S') into the slots (M,), where they are at their first positions."""
        embedded, mask = self._embed_sources(src_ids)
        projected = self._project_sources(self.model.encoder(embedded, mask)[0])
        length = src_ids.size(1)
        for kv, pair in zip(self.cross_kv, projected, strict=True):
            for buffer, tensor in zip(kv, pair, strict=True):
                buffer[:, :, :length].index_copy_(0, slots, tensor)
        additive = self.cross_mask.new_full((len(slots), 1, 1, length), self.masked_score)
        self.cross_mask.index_fill_(0, slots, self.masked_score)
        self.cross_mask[:, :, :, :length].index_copy_(
            0, slots, additive.masked_fill_(mask[:, None], 0.0)
        )
        self.src_lengths.index_copy_(0, slots, mask.sum((1, 2)))
        self.self_mask.index_fill_(0, slots, self.masked_score)
        self.position.index_fill_(0, slots, 0)

    def move(self, sources: Tensor, targets: Tensor, *, window: int) -> None:
        """Move sentences, of at most `window` positions, from slots `sources` to `targets`."""
        in_window = [buffer[:, :window] for buffer in self.self_kv]
        others = [buffer for pair in self.cross_kv for buffer in pair]
        masks = [self.cross_mask, self.self_mask]
        for buffer in (*in_window, *others, *masks, self.position, self.src_lengths):
            buffer.index_copy_(0, targets, buffer.index_select(0, sources))

    def clear(self, slots: Tensor) -> None:
        """Forget the keys and values of slots: NaN among them would reach the next sentences."""
        for buffer in (*self.self_kv, *(buffer for pair in self.cross_kv for buffer in pair)):
            buffer.index_fill_(0, slots, 0.0)

    def _show_new_position(self) -> None:
        self.self_mask[self.slots, :, self.position] = self.diagonal
        width = self.model.decoder.width
        if width is not None:
            is_old = self.position_ids < self.position[:, None] - width // 2  # (B, T)
            self.self_mask.masked_fill_(is_old[:, None, :, None], self.masked_score)

    def _position_vectors(self) -> Tensor:
        vectors = self.position_table.index_select(0, self.position)  # (B, D)
        return vectors.repeat_interleave(self.width, 0) if self.width > 1 else vectors

    def _store_keys_and_values(self, self_kv: Tensor, new: Tensor) -> None:
        self_kv[self.slots, self.position] = new
