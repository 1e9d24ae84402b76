"""The key-value cache: what the decoder keeps of the positions that it has seen.

Keys and values of an earlier position never change, since no position looks ahead (section 3.1). So
a step computes one position and reads the others from here. States are values: a step makes a new
one, and an old one stays good for another beam.
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
        """Begin with the projected memory and no target position yet."""
        return cls(cross_keys[:, :, :0], cross_values[:, :, :0], cross_keys, cross_values)

    def append(self, keys: Tensor, values: Tensor, *, width: int | None = None) -> LayerCache:
        """Add new positions; drop those that left the neighbourhood of restricted attention."""
        first = 0 if width is None else -(width // 2 + 1)
        return self._replace(
            keys=torch.cat((self.keys, keys), dim=2)[:, :, first:],
            values=torch.cat((self.values, values), dim=2)[:, :, first:],
        )

    def reorder(self, index: Tensor) -> LayerCache:
        """Take the rows `index` (N',) of every tensor."""
        return LayerCache(*(tensor.index_select(0, index) for tensor in self))


class DecoderState(NamedTuple):
    """What the next step needs: one cache a layer, the source mask, the position to fill."""

    layers: tuple[LayerCache, ...]
    cross_mask: Tensor  # (N, 1, S)
    position: int

    def reorder(self, index: Tensor) -> DecoderState:
        """Row i becomes row `index[i]`: beams are copied, moved and dropped so."""
        layers = tuple(layer.reorder(index) for layer in self.layers)
        return DecoderState(layers, self.cross_mask.index_select(0, index), self.position)
