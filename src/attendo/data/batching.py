"""Batches by tokens (section 5.1): pairs of similar length together, a token budget for each side.

The plan of an epoch is a function of the corpora, the seed and the epoch alone, so that a run
resumes at any batch, on any number of processes. A batch is cut into pieces (for processes and for
memory) without changing what is learnt from it: its loss is a sum over tokens, divided by all its
tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attendo.core.errors import InputError
from attendo.core.seeding import derive_seed
from attendo.text.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.shards import TokenizedCorpus

BUCKET_WIDTHS = (1, 2, 3, 4, 6, 8, 12)
MAX_TRIAL_ROWS = 100_000
Rows = np.ndarray[tuple[int], np.dtype[np.int64]]


class Batch(NamedTuple):
    """One piece of a batch, ready for teacher forcing."""

    src_ids: Tensor  # (B, S)
    tgt_ids: Tensor  # (B, T): the target shifted right, behind the start symbol
    labels: Tensor  # (B, T): the target

    @property
    def num_tokens(self) -> int:
        """Count the target tokens that are scored."""
        return int(self.labels.ne(PAD_ID).sum())

    def to(self, device: torch.device) -> Batch:
        """Move to a device, without waiting where the memory is pinned."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))

    def pin_memory(self) -> Batch:
        """Move to memory that a GPU can read by itself."""
        return Batch(*(tensor.pin_memory() for tensor in self))


class PaddingStats(NamedTuple):
    """How much of the batches is padding."""

    src: float
    tgt: float

    @property
    def mean(self) -> float:
        """Average both sides."""
        return (self.src + self.tgt) / 2


class BatchPlan:
    """Which pairs of the (weighted) corpora make up each batch of an epoch.

    Args:
        corpora: each with its weight: how often its pairs are drawn in an epoch. A fraction takes a
            random part.
        batch_tokens: the most tokens, padding included, on either side of a batch.
        seed: of the shuffling.

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
                f"a sentence of {longest} tokens exceeds batch_tokens {self.batch_tokens}",
                hint="raise train.batch_tokens or lower data.max_tokens",
            )

    def epoch(self, number: int) -> list[Rows]:
        """Plan an epoch: the row numbers of each batch, in the order of training."""
        rng = np.random.default_rng(derive_seed(self.seed, "epoch", number))
        rows = self._sample_rows(rng)
        batches = self._make_batches(self._sort_by_length(rows, self.bucket_width))
        return [batches[index] for index in rng.permutation(len(batches))]

    def _sort_by_length(self, rows: Rows, bucket_width: int) -> Rows:
        """Order by bands of target length, and within one by source length, up and down in turns.

        Neighbours are then alike on both sides also where a band ends. Pairs of equal lengths stay
        in their shuffled order: the sort is stable.
        """
        src, tgt = self.src_lengths[rows].astype(np.int64), self.tgt_lengths[rows] // bucket_width
        return rows[np.lexsort((np.where(tgt % 2 == 0, src, -src), tgt))]

    def _choose_bucket_width(self) -> int:
        """Find the width of a band that wastes least: wide ones suit batches of many pairs."""
        rows = np.arange(len(self.src_lengths))[:: 1 + len(self.src_lengths) // MAX_TRIAL_ROWS]

        def padding_for(bucket_width: int) -> float:
            return self._compute_padding(
                self._make_batches(self._sort_by_length(rows, bucket_width))
            ).mean

        return min(BUCKET_WIDTHS, key=padding_for)

    def _sample_rows(self, rng: np.random.Generator) -> Rows:
        """Take each pair as often as its corpus's weight says, shuffled."""
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
        """Fill batches greedily from pairs sorted by length."""
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
        """Measure the share of padding on each side."""
        return self._compute_padding(batches)

    def _compute_padding(self, batches: Sequence[Rows]) -> PaddingStats:
        fractions = []
        for lengths in (self.src_lengths, self.tgt_lengths):
            num_real = sum(int(lengths[rows].sum()) for rows in batches)
            num_padded = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
            fractions.append(1 - num_real / num_padded)
        return PaddingStats(*fractions)

    def count_labels(self, rows: Rows) -> int:
        """Count the target tokens that are scored: the loss of a batch is their mean."""
        return int(self.tgt_lengths[rows].sum())

    def read(self, rows: Rows) -> Batch:
        """Read these pairs and pad them."""
        corpus_indices = np.searchsorted(self.corpus_offsets, rows, side="right") - 1
        pairs = [
            self.corpora[corpus_index].pair(int(row - self.corpus_offsets[corpus_index]))
            for corpus_index, row in zip(corpus_indices, rows, strict=True)
        ]
        return collate(pairs)


def collate(pairs: Sequence[tuple[np.ndarray, np.ndarray]]) -> Batch:
    """Pad pairs of ids; the target's end symbol is in its labels, the start symbol in its input.

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
    """Give the part of a batch that belongs to one process: together they are the batch, once.

    >>> [share_rows(np.arange(5), rank, 2).tolist() for rank in range(2)]
    [[0, 2, 4], [1, 3]]
    """
    return rows[rank::num_processes]


def split_micro_batches(rows: Rows, num_micro_batches: int) -> list[Rows]:
    """Cut a process's part into pieces that fit into memory, empty ones left out."""
    return [
        micro_batch for micro_batch in np.array_split(rows, num_micro_batches) if len(micro_batch)
    ]
