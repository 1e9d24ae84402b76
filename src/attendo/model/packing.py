"""Sentences one behind the other in one row, without padding between them.

All of the model but attention and positions treats every token alike, so a batch can be one long
row (1, N). A `Packing` tells where its sentences begin, and stands where a mask would: a token sees
its own sentence alone.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Packing(NamedTuple):
    """Where the sentences of a row lie.

    The last starts may repeat the end of the row: such sentences are empty, and let batches of
    different numbers of sentences have one shape.
    """

    starts: Tensor  # (B + 1,) int32: sentence b is starts[b] ... starts[b + 1] - 1
    places: Tensor  # (N,) int64: of each token in its sentence, from 0
    longest: int
    """No sentence is longer. It may be more than the longest one, so that it seldom changes."""
    targets: Tensor | None = None
    """What `with_index` has found."""

    @classmethod
    def of(cls, lengths: Tensor, *, longest: int | None = None) -> Packing:
        """Describe sentences of these lengths (B,).

        >>> packing = Packing.of(torch.tensor([2, 3]))
        >>> packing.starts.tolist(), packing.places.tolist(), packing.longest
        ([0, 2, 5], [0, 1, 0, 1, 2], 3)
        """
        starts = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        total = int(starts[-1])
        places = torch.arange(total, device=lengths.device)
        places = places - starts[:-1].repeat_interleave(lengths, output_size=total)
        return cls(starts.int(), places, int(lengths.max()) if longest is None else longest)

    def spread(self, packed: Tensor) -> Tensor:
        """Give each sentence a row: (N, ...) becomes (B, longest, ...), zeros behind the ends."""
        rows = packed.new_zeros(self._num_rows * self.longest, *packed.shape[1:])
        rows = rows.index_copy(0, self._find_index(), packed)
        return rows.view(self._num_rows, self.longest, *packed.shape[1:])

    def join(self, rows: Tensor) -> Tensor:
        """Put the sentences of (B, longest, ...) one behind the other again: (N, ...)."""
        return rows.flatten(0, 1).index_select(0, self._find_index())

    def mask(self) -> Tensor:
        """Give the padding mask (B, 1, longest) of the rows, True = may attend."""
        lengths = self.starts.diff()
        return (torch.arange(self.longest, device=lengths.device) < lengths[:, None])[:, None]

    @property
    def _num_rows(self) -> int:
        return self.starts.size(0) - 1

    def with_index(self) -> Packing:
        """Find once where each token goes, for all layers that `spread` and `join`."""
        return self._replace(targets=self._find_index())

    def _find_index(self) -> Tensor:
        """Give the place of each token where every sentence has a row of its own, end to end."""
        if self.targets is not None:
            return self.targets
        tokens = torch.arange(self.places.size(0), device=self.places.device)
        # the sentence of a token is the last one that begins at or before it and is not empty
        sentences = torch.searchsorted(self.starts, tokens.int(), right=True) - 1
        return sentences * self.longest + self.places


class PackedMask(NamedTuple):
    """Who sees whom where both sides are packed: sentence b of the queries sees b of the keys."""

    query: Packing
    key: Packing
    is_causal: bool = False
    """No token sees a later one."""
