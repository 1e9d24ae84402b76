"""Sentences packed into one row, without padding between them.

All of the model except attention and positions treats every token alike, so a batch can be one long
row (1, N). A `Packing` describes where its sentences begin, as FlashAttention does. A `PackedMask`
replaces the mask: a token attends to its own sentence only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from attendo.model.fast.packed_attention import attend_packed
from attendo.model.positional_encoding import PositionIds

if TYPE_CHECKING:
    from attendo.model.attention import MultiHeadAttention


class Packing(NamedTuple):
    """The boundaries of the sentences in a packed row.

    The last entries of `cu_seqlens` may repeat the end of the row: such sentences are empty, and
    give batches of different numbers of sentences the same shape.
    """

    cu_seqlens: Tensor  # (B + 1,) int32: sentence b is cu_seqlens[b] ... cu_seqlens[b + 1] - 1
    positions: Tensor  # (N,) int64: of each token in its sentence, from 0
    max_seqlen: int
    """No sentence is longer. It may be more than the longest one, so that it rarely changes."""
    scatter_index: Tensor | None = None
    """The result of `with_scatter_index`."""

    @classmethod
    def from_lengths(cls, lengths: Tensor, *, max_seqlen: int | None = None) -> Packing:
        """Describe sentences of these lengths (B,).

        >>> packing = Packing.from_lengths(torch.tensor([2, 3]))
        >>> packing.cu_seqlens.tolist(), packing.positions.tolist(), packing.max_seqlen
        ([0, 2, 5], [0, 1, 0, 1, 2], 3)
        """
        cu_seqlens = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
        total = int(cu_seqlens[-1])
        positions = torch.arange(total, device=lengths.device)
        positions = positions - cu_seqlens[:-1].repeat_interleave(lengths, output_size=total)
        return cls(
            cu_seqlens.int(), positions, int(lengths.max()) if max_seqlen is None else max_seqlen
        )

    @property
    def position_ids(self) -> PositionIds:
        """The positions as the model's position modules take them."""
        return PositionIds(self.positions, self.max_seqlen)

    def to_padded(self, packed: Tensor) -> Tensor:
        """Return one row per sentence, padded with zeros: (N, ...) -> (B, max_seqlen, ...)."""
        rows = packed.new_zeros(self._num_rows * self.max_seqlen, *packed.shape[1:])
        rows = rows.index_copy(0, self._get_scatter_index(), packed)
        return rows.view(self._num_rows, self.max_seqlen, *packed.shape[1:])

    def to_packed(self, rows: Tensor) -> Tensor:
        """Return the sentences of padded rows as one: (B, max_seqlen, ...) -> (N, ...)."""
        return rows.flatten(0, 1).index_select(0, self._get_scatter_index())

    def padding_mask(self) -> Tensor:
        """Return the padding mask (B, 1, max_seqlen) of the padded rows, True = may attend."""
        lengths = self.cu_seqlens.diff()
        return (torch.arange(self.max_seqlen, device=lengths.device) < lengths[:, None])[:, None]

    @property
    def _num_rows(self) -> int:
        return self.cu_seqlens.size(0) - 1

    def with_scatter_index(self) -> Packing:
        """Compute the index of each token once, for all calls of `to_padded` and `to_packed`."""
        return self._replace(scatter_index=self._get_scatter_index())

    def _get_scatter_index(self) -> Tensor:
        """Return the index of each token in the padded rows, flattened."""
        if self.scatter_index is not None:
            return self.scatter_index
        tokens = torch.arange(self.positions.size(0), device=self.positions.device)
        # The sentence of a token is the last one that begins at or before it and is not empty.
        sentences = torch.searchsorted(self.cu_seqlens, tokens.int(), right=True) - 1
        return sentences * self.max_seqlen + self.positions


class PackedMask(NamedTuple):
    """Sentence b of the packed queries attends to sentence b of the packed keys.

    An `attendo.model.attention.AttentionPattern`, so it is passed in place of a mask.
    """

    query: Packing
    key: Packing
    is_causal: bool = False
    """No token sees a later one."""

    def attend(
        self, attention: MultiHeadAttention, query: Tensor, key: Tensor, value: Tensor
    ) -> Tensor:
        """Return the output (1, N, D) of an attention module for rows (1, N, D) and (1, M, D)."""
        return attend_packed(attention, query, key, value, self)
