"""The key-value cache of the decoder.

Keys and values of an earlier position never change, since no position sees a later one
(section 3.1). So a step computes one position and reads the others from the cache. States are
immutable: a step returns a new one, and the old one stays valid for another beam.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class LayerCache(NamedTuple):
    """Keys and values of one decoder layer, split into heads: (N, H, length, K)."""

    keys: Tensor
    values: Tensor
    cross_keys: Tensor
    cross_values: Tensor

    @classmethod
    def start(cls, cross_keys: Tensor, cross_values: Tensor) -> LayerCache:
        """Return a cache of the projected memory, without any target position."""
        return cls(cross_keys[:, :, :0], cross_values[:, :, :0], cross_keys, cross_values)

    def append(self, keys: Tensor, values: Tensor, *, width: int | None = None) -> LayerCache:
        """Append new positions; drop those that restricted attention no longer sees."""
        first = 0 if width is None else -(width // 2 + 1)
        return self._replace(
            keys=torch.cat((self.keys, keys), dim=2)[:, :, first:],
            values=torch.cat((self.values, values), dim=2)[:, :, first:],
        )

    def reorder(self, index: Tensor) -> LayerCache:
        """Select the rows `index` (N',) of every tensor."""
        return LayerCache(*(tensor.index_select(0, index) for tensor in self))


class DecoderState(NamedTuple):
    """The decoding state: one cache per layer, the source mask, the next position."""

    layers: tuple[LayerCache, ...]
    cross_mask: Tensor  # (N, 1, S)
    position: int

    def reorder(self, index: Tensor) -> DecoderState:
        """Return the state whose row i is row `index[i]` of this one, as beams are reordered."""
        layers = tuple(layer.reorder(index) for layer in self.layers)
        return DecoderState(layers, self.cross_mask.index_select(0, index), self.position)
