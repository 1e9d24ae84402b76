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
from attendo.data.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.shards import TokenizedCorpus

BANDS = (1, 2, 3, 4, 6, 8, 12)
LARGEST_TRIAL = 100_000
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


class Waste(NamedTuple):
    """How much of the batches is padding."""

    src: float
    tgt: float

    @property
    def total(self) -> float:
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
        self.starts = np.cumsum([0, *(len(corpus) for corpus in self.corpora)])
        self._check()
        self.band = self._choose_band()

    def _check(self) -> None:
        if not len(self.src_lengths):
            raise InputError("the training corpus is empty", remedy="give at least one pair")
        longest = int(max(self.src_lengths.max(), self.tgt_lengths.max()))
        if longest > self.batch_tokens:
            raise InputError(
                f"a sentence of {longest} tokens exceeds batch_tokens {self.batch_tokens}",
                remedy="raise train.batch_tokens or lower data.max_tokens",
            )

    def epoch(self, number: int) -> list[Rows]:
        """Plan an epoch: the row numbers of each batch, in the order of training."""
        generator = np.random.default_rng(derive_seed(self.seed, "epoch", number))
        rows = self._draw(generator)
        batches = self._cut(self._by_length(rows, self.band))
        return [batches[place] for place in generator.permutation(len(batches))]

    def _by_length(self, rows: Rows, band: int) -> Rows:
        """Order by bands of target length, and within one by source length, up and down in turns.

        Neighbours are then alike on both sides also where a band ends. Pairs of equal lengths stay
        in their shuffled order: the sort is stable.
        """
        src, tgt = self.src_lengths[rows].astype(np.int64), self.tgt_lengths[rows] // band
        return rows[np.lexsort((np.where(tgt % 2 == 0, src, -src), tgt))]

    def _choose_band(self) -> int:
        """Find the width of a band that wastes least: wide ones suit batches of many pairs."""
        rows = np.arange(len(self.src_lengths))[:: 1 + len(self.src_lengths) // LARGEST_TRIAL]

        def measure(band: int) -> float:
            return self._padding(self._cut(self._by_length(rows, band))).total

        return min(BANDS, key=measure)

    def _draw(self, generator: np.random.Generator) -> Rows:
        """Take each pair as often as its corpus's weight says, shuffled."""
        taken = []
        for start, corpus, weight in zip(self.starts, self.corpora, self.weights, strict=False):
            whole, part = divmod(weight, 1.0)
            taken += [np.arange(len(corpus)) + start] * int(whole)
            if part:
                count = max(1, round(part * len(corpus)))
                taken.append(generator.permutation(len(corpus))[:count] + start)
        rows: Rows = generator.permutation(np.concatenate(taken))
        return rows

    def _cut(self, rows: Rows) -> list[Rows]:
        """Fill batches greedily from pairs sorted by length."""
        src_lengths, tgt_lengths = self.src_lengths[rows].tolist(), self.tgt_lengths[rows].tolist()
        batches, begin, longest_src, longest_tgt = [], 0, 0, 0
        for place, (src, tgt) in enumerate(zip(src_lengths, tgt_lengths, strict=True)):
            wider_src, wider_tgt = max(longest_src, src), max(longest_tgt, tgt)
            if (place - begin + 1) * max(wider_src, wider_tgt) > self.batch_tokens:
                batches.append(rows[begin:place])
                begin, wider_src, wider_tgt = place, src, tgt
            longest_src, longest_tgt = wider_src, wider_tgt
        batches.append(rows[begin:])
        return batches

    def waste(self, batches: Sequence[Rows]) -> Waste:
        """Measure the share of padding on each side."""
        return self._padding(batches)

    def _padding(self, batches: Sequence[Rows]) -> Waste:
        shares = []
        for lengths in (self.src_lengths, self.tgt_lengths):
            real = sum(int(lengths[rows].sum()) for rows in batches)
            padded = sum(len(rows) * int(lengths[rows].max()) for rows in batches)
            shares.append(1 - real / padded)
        return Waste(*shares)

    def count_labels(self, rows: Rows) -> int:
        """Count the target tokens that are scored: the loss of a batch is their mean."""
        return int(self.tgt_lengths[rows].sum())

    def read(self, rows: Rows) -> Batch:
        """Read these pairs and pad them."""
        homes = np.searchsorted(self.starts, rows, side="right") - 1
        pairs = [
            self.corpora[home].pair(int(row - self.starts[home]))
            for home, row in zip(homes, rows, strict=True)
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
    for place, row in enumerate(rows):
        padded[place, : len(row)] = row
    return torch.from_numpy(padded)


def share_rows(rows: Rows, rank: int, num_processes: int) -> Rows:
    """Give the part of a batch that belongs to one process: together they are the batch, once.

    >>> [share_rows(np.arange(5), rank, 2).tolist() for rank in range(2)]
    [[0, 2, 4], [1, 3]]
    """
    return rows[rank::num_processes]


def split_rows(rows: Rows, num_pieces: int) -> list[Rows]:
    """Cut a process's part into pieces that fit into memory, empty ones left out."""
    return [piece for piece in np.array_split(rows, num_pieces) if len(piece)]
