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

    cu_seqlens: Tensor  # (B + 1,) int32: sentence b is starts[b] ... starts[b + 1] - 1
    positions: Tensor  # (N,) int64: of each token in its sentence, from 0
    max_seqlen: int
    """No sentence is longer. It may be more than the longest one, so that it seldom changes."""
    scatter_index: Tensor | None = None
    """What `with_index` has found."""

    @classmethod
    def from_lengths(cls, lengths: Tensor, *, max_seqlen: int | None = None) -> Packing:
        """Describe sentences of these lengths (B,).

        >>> packing = Packing.of(torch.tensor([2, 3]))
        >>> packing.starts.tolist(), packing.places.tolist(), packing.longest
        ([0, 2, 5], [0, 1, 0, 1, 2], 3)
        """
        cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        total = int(cu_seqlens[-1])
        positions = torch.arange(total, device=lengths.device)
        positions = positions - cu_seqlens[:-1].repeat_interleave(lengths, output_size=total)
        return cls(
            cu_seqlens.int(), positions, int(lengths.max()) if max_seqlen is None else max_seqlen
        )

    def to_padded(self, packed: Tensor) -> Tensor:
        """Give each sentence a row: (N, ...) becomes (B, longest, ...), zeros behind the ends."""
        rows = packed.new_zeros(self._num_rows * self.max_seqlen, *packed.shape[1:])
        rows = rows.index_copy(0, self._get_scatter_index(), packed)
        return rows.view(self._num_rows, self.max_seqlen, *packed.shape[1:])

    def to_packed(self, rows: Tensor) -> Tensor:
        """Put the sentences of (B, longest, ...) one behind the other again: (N, ...)."""
        return rows.flatten(0, 1).index_select(0, self._get_scatter_index())

    def padding_mask(self) -> Tensor:
        """Give the padding mask (B, 1, longest) of the rows, True = may attend."""
        lengths = self.cu_seqlens.diff()
        return (torch.arange(self.max_seqlen, device=lengths.device) < lengths[:, None])[:, None]

    @property
    def _num_rows(self) -> int:
        return self.cu_seqlens.size(0) - 1

    def with_scatter_index(self) -> Packing:
        """Find once where each token goes, for all layers that `spread` and `join`."""
        return self._replace(scatter_index=self._get_scatter_index())

    def _get_scatter_index(self) -> Tensor:
        """Give the place of each token where every sentence has a row of its own, end to end."""
        if self.scatter_index is not None:
            return self.scatter_index
        tokens = torch.arange(self.positions.size(0), device=self.positions.device)
        # the sentence of a token is the last one that begins at or before it and is not empty
        sentences = torch.searchsorted(self.cu_seqlens, tokens.int(), right=True) - 1
        return sentences * self.max_seqlen + self.positions


class PackedMask(NamedTuple):
    """Who sees whom where both sides are packed: sentence b of the queries sees b of the keys."""

    query: Packing
    key: Packing
    is_causal: bool = False
    """No token sees a later one."""
