"""Batches by tokens (section 5.1): pairs of similar length together, with a token budget per side.

The plan of an epoch depends only on the corpora, the seed and the number of the epoch, so that a
run can resume at any batch, on any number of processes. Splitting a batch into micro-batches (over
processes, or to save memory) does not change its gradient: the loss is a sum over tokens, divided
by the number of tokens of the whole batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.seeding import derive_seed
from attendo.text.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.shards import TokenizedCorpus

BUCKET_WIDTHS = (1, 2, 3, 4, 6, 8, 12)
MAX_TRIAL_ROWS = 100_000
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


class Batch(NamedTuple):
    """A batch or micro-batch for teacher forcing."""

    src_ids: Tensor  # (B, S)
    tgt_ids: Tensor  # (B, T): the target shifted right, after the start symbol
    labels: Tensor  # (B, T): the target

    @property
    def num_tokens(self) -> int:
        """Number of target tokens without padding."""
        return int(self.labels.ne(PAD_ID).sum())

    def to(self, device: torch.device) -> Batch:
        """Return a copy on a device, transferred asynchronously if the memory is pinned."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))

    def pin_memory(self) -> Batch:
        """Return a copy in pinned memory."""
        return Batch(*(tensor.pin_memory() for tensor in self))


class PaddingStats(NamedTuple):
    """Fraction of the batches that is padding, per side."""

    src: float
    tgt: float

    @property
    def mean(self) -> float:
        """Mean of both sides."""
        return (self.src + self.tgt) / 2


class BatchPlan:
    """Assigns the pairs of the (weighted) corpora to the batches of an epoch.

    Args:
        corpora: Each corpus with its weight: how often its pairs occur in an epoch. The fractional
            part of a weight selects a random part of the corpus.
        batch_tokens: Maximum number of tokens, padding included, on each side of a batch.
        seed: Seed of the shuffling.

    Raises:
        InputError: If the corpora are empty or a sentence is longer than `batch_tokens`.

    """

    def __init__(
        self, corpora: Sequence[tuple[TokenizedCorpus, float]], *, batch_tokens: int, seed: int
    ) -> None:
        self.corpora = [corpus for corpus, _ in corpora]
        self.weights = [weight for _, weight in corpora]
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.src_lengths = np.concatenate([corpus.src_lengths for corpus in self.corpora])
        self.tgt_lengths = np.concatenate([corpus.tgt_lengths for corpus in self.corpora])
        self.corpus_offsets = np.cumsum([0, *(len(corpus) for corpus in self.corpora)])
        self._validate()
        self.bucket_width = self._choose_bucket_width()

    def _validate(self) -> None:
        if not len(self.src_lengths):
            raise InputError("the training corpus is empty", hint="give at least one pair")
        longest = int(max(self.src_lengths.max(), self.tgt_lengths.max()))
        if longest > self.batch_tokens:
            raise InputError(
                message(
                    "a sentence of {longest} tokens exceeds batch_tokens {batch_tokens}",
                    longest=longest,
                    batch_tokens=self.batch_tokens,
                ),
                hint="raise train.batch_tokens or lower data.max_tokens",
            )

    def epoch(self, number: int) -> list[Rows]:
        """Return the batches of an epoch, in order, each as an array of row numbers."""
        rng = np.random.default_rng(derive_seed(self.seed, "epoch", number))
        rows = self._sample_rows(rng)
        batches = self._make_batches(self._sort_by_length(rows, self.bucket_width))
        return [batches[index] for index in rng.permutation(len(batches))]

    def _sort_by_length(self, rows: Rows, bucket_width: int) -> Rows:
        """Sort by buckets of target length, and within a bucket by source length.

        The source length ascends and descends in turn, so that neighbors are similar on both sides
        even across buckets. Pairs of equal lengths keep their shuffled order (stable sort).
        """
        src, tgt = self.src_lengths[rows].astype(np.int64), self.tgt_lengths[rows] // bucket_width
        return rows[np.lexsort((np.where(tgt % 2 == 0, src, -src), tgt))]

    def _choose_bucket_width(self) -> int:
        """Return the bucket width with the least padding; wide buckets suit large batches."""
        rows = np.arange(len(self.src_lengths))[:: 1 + len(self.src_lengths) // MAX_TRIAL_ROWS]

        def padding_for(bucket_width: int) -> float:
            return self._compute_padding(
                self._make_batches(self._sort_by_length(rows, bucket_width))
            ).mean

        return min(BUCKET_WIDTHS, key=padding_for)

    def _sample_rows(self, rng: np.random.Generator) -> Rows:
        """Return every row as often as the weight of its corpus requires, shuffled."""
        sampled = []
        for start, corpus, weight in zip(
            self.corpus_offsets, self.corpora, self.weights, strict=False
        ):
            num_repeats, fraction = divmod(weight, 1.0)
            sampled += [np.arange(len(corpus)) + start] * int(num_repeats)
            if fraction:
                count = max(1, round(fraction * len(corpus)))
                sampled.append(rng.permutation(len(corpus))[:count] + start)
        rows: Rows = rng.permutation(np.concatenate(sampled))
        return rows

    def _make_batches(self, rows: Rows) -> list[Rows]:
        """Fill batches greedily with rows sorted by length."""
        src_lengths, tgt_lengths = self.src_lengths[rows].tolist(), self.tgt_lengths[rows].tolist()
        batches, start, longest_src, longest_tgt = [], 0, 0, 0
        for index, (src, tgt) in enumerate(zip(src_lengths, tgt_lengths, strict=True)):
            wider_src, wider_tgt = max(longest_src, src), max(longest_tgt, tgt)
            if (index - start + 1) * max(wider_src, wider_tgt) > self.batch_tokens:
                batches.append(rows[start:index])
                start, wider_src, wider_tgt = index, src, tgt
            longest_src, longest_tgt = wider_src, wider_tgt
        batches.append(rows[start:])
        return batches

    def padding_stats(self, batches: Sequence[Rows]) -> PaddingStats:
        """Return the fraction of padding on each side."""
        return self._compute_padding(batches)

    def _compute_padding(self, batches: Sequence[Rows]) -> PaddingStats:
        fractions = []
        for lengths in (self.src_lengths, self.tgt_lengths):
            num_real = sum(int(lengths[rows].sum()) for rows in batches)
            num_padded = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
            fractions.append(1 - num_real / num_padded)
        return PaddingStats(*fractions)

    def count_labels(self, rows: Rows) -> int:
        """Return the number of target tokens, by which the loss of a batch is divided."""
        return int(self.tgt_lengths[rows].sum())

    def read(self, rows: Rows) -> Batch:
        """Read the pairs of these rows and pad them to a batch."""
        corpus_indices = np.searchsorted(self.corpus_offsets, rows, side="right") - 1
        pairs = [
            self.corpora[corpus_index].pair(int(row - self.corpus_offsets[corpus_index]))
            for corpus_index, row in zip(corpus_indices, rows, strict=True)
        ]
        return collate(pairs)


def collate(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Batch:
    """Pad pairs of ids to a batch; END_ID is in the labels, START_ID in the decoder input.

    >>> pairs = [(np.array([5, 6, 3]), np.array([7, 3])), (np.array([5, 3]), np.array([3]))]
    >>> batch = collate(pairs)
    >>> batch.tgt_ids.tolist(), batch.labels.tolist()
    ([[2, 7], [2, 0]], [[7, 3], [3, 0]])
    """
    src_ids = _pad([src for src, _ in pairs])
    labels = _pad([tgt for _, tgt in pairs])
    shifted = torch.nn.functional.pad(labels[:, :-1], (1, 0), value=START_ID)
    return Batch(src_ids, shifted.masked_fill(labels == PAD_ID, PAD_ID), labels)


def _pad(rows: Sequence[np.ndarray]) -> Tensor:
    padded = np.full((len(rows), max(len(row) for row in rows)), PAD_ID, dtype=np.int64)
    for index, row in enumerate(rows):
        padded[index, : len(row)] = row
    return torch.from_numpy(padded)


def shard_rows(rows: Rows, rank: int, num_processes: int) -> Rows:
    """Return the rows of a batch that belong to one process.

    >>> [shard_rows(np.arange(5), rank, 2).tolist() for rank in range(2)]
    [[0, 2, 4], [1, 3]]
    """
    return rows[rank::num_processes]


def split_micro_batches(rows: Rows, num_micro_batches: int) -> list[Rows]:
    """Split rows into micro-batches, without empty ones."""
    return [
        micro_batch for micro_batch in np.array_split(rows, num_micro_batches) if len(micro_batch)
    ]
