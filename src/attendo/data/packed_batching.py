"""Batches without padding: sentences concatenated, up to a number of tokens per side.

All batches can have one fixed shape (`PackedShape`), which CUDA graphs need: the rest of each side
is then filled with sentences of padding at the end, and a batch is a random sample of the corpus.
Without a fixed shape, attention pads to the longest sentence, so a batch holds sentences of similar
length, like a padded batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attendo.core.seeding import derive_seed
from attendo.data.batching import BatchPlan, PaddingStats, Rows
from attendo.text.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.data.shards import TokenizedCorpus

CAPACITY_MARGINS = (0.0, 0.01, 0.02, 0.04, 0.08)
"""Extra capacity to try for the side with fewer tokens; the best one is used."""
SIZE_MULTIPLE = 64
"""All sizes are multiples of it, so that matrix products use whole tiles."""
Ids = np.ndarray[tuple[int], np.dtype[np.int64]]


class PackedShape(NamedTuple):
    """The shape of every batch: tokens per side, and sentences including empty ones."""

    src_tokens: int
    tgt_tokens: int
    num_sentences: int


class PackedBatch(NamedTuple):
    """A packed batch or micro-batch for teacher forcing: each side is one row."""

    src_ids: Tensor  # (1, S)
    tgt_ids: Tensor  # (1, T): each target shifted right, after the start symbol
    labels: Tensor  # (1, T): the targets
    src_cu_seqlens: Tensor  # (B + 1,) int32, as in `attendo.model.fast.packed_sequences`
    tgt_cu_seqlens: Tensor
    src_positions: Tensor  # (S,)
    tgt_positions: Tensor  # (T,)
    max_seqlens: tuple[int, int]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All fields that are tensors."""
        return self[:-1]

    @property
    def num_tokens(self) -> int:
        """Number of target tokens without padding."""
        return int(self.labels.ne(PAD_ID).sum())

    def to(self, device: torch.device) -> PackedBatch:
        """Return a copy on a device, transferred asynchronously if the memory is pinned."""
        return self._map_tensors(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> PackedBatch:
        """Return a copy in pinned memory."""
        return self._map_tensors(torch.Tensor.pin_memory)

    def _map_tensors(self, function: Callable[[Tensor], Tensor]) -> PackedBatch:
        return PackedBatch._make((*map(function, self.tensors), self.max_seqlens))


class PackedBatchPlan(BatchPlan):
    """Assigns pairs to the packed batches of an epoch.

    Args:
        corpora: Each corpus with its weight, as in `BatchPlan`.
        batch_tokens: Maximum number of tokens on the longer side; the other side gets its share.
        seed: Seed of the shuffling.
        has_fixed_shape: Give every batch the same shape, with pairs of any length.

    """

    def __init__(
        self,
        corpora: Sequence[tuple[TokenizedCorpus, float]],
        *,
        batch_tokens: int,
        seed: int,
        has_fixed_shape: bool = False,
    ) -> None:
        super().__init__(corpora, batch_tokens=batch_tokens, seed=seed)
        self.has_fixed_shape = has_fixed_shape
        self.max_seqlens = (int(self.src_lengths.max()), int(self.tgt_lengths.max()))
        self.shape = self._choose_shape()

    def epoch(self, number: int) -> list[Rows]:
        """Return the batches of an epoch, in order, each as an array of row numbers."""
        rng = np.random.default_rng(derive_seed(self.seed, "packed epoch", number))
        rows = self._sample_rows(rng)
        if self.has_fixed_shape:
            return self._make_packed_batches(rows, self.shape)
        batches = self._make_packed_batches(
            self._sort_by_length(rows, self.bucket_width), self.shape
        )
        return [batches[index] for index in rng.permutation(len(batches))]

    def padding_stats(self, batches: Sequence[Rows]) -> PaddingStats:
        """Return the fraction of padding on each side; 0 without a fixed shape."""
        if not self.has_fixed_shape:
            return PaddingStats(0.0, 0.0)
        fractions = []
        for lengths, size in (
            (self.src_lengths, self.shape.src_tokens),
            (self.tgt_lengths, self.shape.tgt_tokens),
        ):
            num_real = sum(int(lengths[rows].sum()) for rows in batches)
            fractions.append(1 - num_real / (size * len(batches)))
        return PaddingStats(*fractions)

    def read_packed(self, rows: Rows, *, is_micro_batch: bool = False) -> PackedBatch:
        """Read the pairs of these rows, grouped by corpus; a micro-batch has its own shape."""
        corpus_indices = np.searchsorted(self.corpus_offsets, rows, side="right") - 1
        order = np.argsort(corpus_indices, kind="stable")
        rows, corpus_indices = rows[order], corpus_indices[order]
        parts = [
            self.corpora[corpus_index].concatenate(
                rows[corpus_indices == corpus_index] - self.corpus_offsets[corpus_index]
            )
            for corpus_index in np.unique(corpus_indices)
        ]
        src, tgt = (np.concatenate(side) for side in zip(*parts, strict=True))
        lengths = (self.src_lengths[rows], self.tgt_lengths[rows])
        if self.has_fixed_shape and not is_micro_batch:
            return pack_pairs(src, tgt, *lengths, max_seqlens=self.max_seqlens, shape=self.shape)
        return pack_pairs(
            src, tgt, *lengths, max_seqlens=(int(lengths[0].max()), int(lengths[1].max()))
        )

    def _choose_shape(self) -> PackedShape:
        """Return the shape: all tokens for the longer side, a share and a margin for the other.

        The margin is the one that needs the fewest tokens per epoch. The number of sentences is the
        largest of any batch in a sample of the corpus.
        """
        num_pairs = len(self.src_lengths)
        if not self.has_fixed_shape:
            return PackedShape(self.batch_tokens, self.batch_tokens, num_pairs)
        rows = np.random.default_rng(0).permutation(num_pairs)[:100_000]
        candidates = [self._shape_with_margin(margin) for margin in CAPACITY_MARGINS]
        batched = [(shape, self._make_packed_batches(rows, shape)) for shape in candidates]
        shape, batches = min(
            batched, key=lambda pair: (pair[0].src_tokens + pair[0].tgt_tokens) * len(pair[1])
        )
        max_sentences = max(self._count_sentences(batch, shape) for batch in batches)
        min_sentences = 1 + self._count_sentences(rows[:0], shape)  # any one pair, and padding
        return shape._replace(num_sentences=_round_to_multiple(max(max_sentences, min_sentences)))

    def _shape_with_margin(self, margin: float) -> PackedShape:
        """Return a shape with capacity for any number of sentences."""
        means = [float(lengths.mean()) for lengths in (self.src_lengths, self.tgt_lengths)]
        max_tokens = max(self.batch_tokens, *self.max_seqlens)
        tokens = [
            min(max_tokens, max(side, round(max_tokens * mean / max(means) * (1 + margin))))
            for side, mean in zip(self.max_seqlens, means, strict=True)
        ]
        src, tgt = map(_round_to_multiple, tokens)
        return PackedShape(src, tgt, src + tgt)

    def _count_sentences(self, rows: Rows, shape: PackedShape) -> int:
        """Return the number of sentences of a batch, including sentences of padding."""
        if not self.has_fixed_shape:
            return len(rows)
        sides = zip((self.src_lengths, self.tgt_lengths), shape, self.max_seqlens, strict=False)
        return len(rows) + max(
            -(-(size - int(lengths[rows].sum())) // max_seqlen)
            for lengths, size, max_seqlen in sides
        )

    def _make_packed_batches(self, rows: Rows, shape: PackedShape) -> list[Rows]:
        """Split rows, in order, where the next pair would exceed the capacity."""
        src, tgt = (
            np.concatenate([[0], lengths[rows].astype(np.int64).cumsum()])
            for lengths in (self.src_lengths, self.tgt_lengths)
        )
        capacities = (
            min(shape.src_tokens, self.batch_tokens),
            min(shape.tgt_tokens, self.batch_tokens),
        )
        batches, start = [], 0
        while start < len(rows):
            ends = [
                int(np.searchsorted(sums, sums[start] + size, side="right")) - 1
                for sums, size in zip((src, tgt), capacities, strict=True)
            ]
            end = min(*ends, start + shape.num_sentences)
            while self._count_sentences(rows[start:end], shape) > shape.num_sentences:
                end -= 1
            batches.append(rows[start:end])
            start = end
        return batches


def _round_to_multiple(count: int) -> int:
    return -(-count // SIZE_MULTIPLE) * SIZE_MULTIPLE


def pack_pairs(
    src: Ids,
    tgt: Ids,
    src_lengths: Ids,
    tgt_lengths: Ids,
    *,
    max_seqlens: tuple[int, int],
    shape: PackedShape | None = None,
) -> PackedBatch:
    """Return the packed batch of concatenated pairs; with `shape`, add sentences of padding.

    >>> sides = (np.array([5, 6, 3, 5, 3]), np.array([7, 3, 3]))
    >>> batch = pack_pairs(*sides, np.array([3, 2]), np.array([2, 1]), max_seqlens=(3, 2))
    >>> batch.src_ids.tolist(), batch.tgt_ids.tolist(), batch.labels.tolist()
    ([[5, 6, 3, 5, 3]], [[2, 7, 2]], [[7, 3, 3]])
    >>> batch.src_cu_seqlens.tolist(), batch.tgt_positions.tolist()
    ([0, 3, 5], [0, 1, 0])
    """
    lengths = [side.astype(np.int64) for side in (src_lengths, tgt_lengths)]
    if shape is not None:
        padded_sides = zip(lengths, (shape.src_tokens, shape.tgt_tokens), max_seqlens, strict=True)
        lengths = [_add_padding_sentences(*side) for side in padded_sides]
        lengths = [np.pad(counts, (0, shape.num_sentences - len(counts))) for counts in lengths]
        src, labels = (
            np.pad(ids, (0, size - len(ids)), constant_values=PAD_ID)
            for ids, size in ((src, shape.src_tokens), (tgt, shape.tgt_tokens))
        )
    else:
        labels = tgt
    cu_seqlens = [np.concatenate([[0], counts.cumsum()]) for counts in lengths]
    positions = [
        np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        for offsets, counts in zip(cu_seqlens, lengths, strict=True)
    ]
    tgt_ids = np.concatenate([[START_ID], labels[:-1]])
    tgt_ids[positions[1] == 0] = START_ID
    tgt_ids[labels == PAD_ID] = PAD_ID
    rows = (torch.from_numpy(ids)[None] for ids in (src, tgt_ids, labels))
    offset_tensors = (torch.from_numpy(first.astype(np.int32)) for first in cu_seqlens)
    return PackedBatch._make(
        (*rows, *offset_tensors, *map(torch.from_numpy, positions), max_seqlens)
    )


def _add_padding_sentences(lengths: Ids, size: int, max_seqlen: int) -> Ids:
    """Add sentences of padding up to `size` tokens, none longer than `max_seqlen`."""
    num_full, rest = divmod(size - int(lengths.sum()), max_seqlen)
    return np.concatenate([lengths, [max_seqlen] * num_full, [rest] * (rest > 0)]).astype(np.int64)
