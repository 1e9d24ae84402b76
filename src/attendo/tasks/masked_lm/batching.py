"""Batches for masked-token pre-training (Devlin et al. 2019): some words hidden, to be guessed.

Of each text 15 % of the positions are asked for, exactly and at least one, but never the end
symbol. Of those 80 % are hidden behind the mask symbol, 10 % behind a random piece, and 10 % stand
as they are, so that a model trusts no word blindly. START_ID never stands in a source, so it is the
mask symbol, and tokenizers need no new one.

What is hidden is a function of (seed, epoch, row): another draw each epoch, the same however often
a run was interrupted and however a batch is cut into pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from attendo.core.seeding import derive_seed
from attendo.data.batching import Batch, BatchPlan, Rows
from attendo.data.packed_batching import PackedBatch, PackedBatchPlan
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.shards import TokenizedCorpus

MASK_ID = START_ID
MASK_RATE = 0.15
MASK_TOKEN_RATE, RANDOM_TOKEN_RATE = 0.8, 0.1
NUM_SPECIAL_IDS = 4
Ids = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Uniforms = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
SPLITMIX64_INCREMENT = 0x9E3779B97F4A7C15
"""What SplitMix64 counts by (Steele et al. 2014)."""


class MaskedTexts(NamedTuple):
    """Texts with hidden positions: what is shown, and what is asked for."""

    input_ids: Ids  # (B, S)
    labels: Ids  # (B, S): the true ids at hidden positions, PAD_ID elsewhere


def num_masked(lengths: Ids) -> Ids:
    """Tell how many positions are hidden in texts of so many ids, END_ID included.

    >>> count_hidden(np.array([1, 2, 8, 21])).tolist()
    [0, 1, 1, 3]
    """
    num_maskable = np.maximum(lengths.astype(np.int64) - 1, 0)
    return np.minimum(
        np.maximum(np.rint(MASK_RATE * num_maskable).astype(np.int64), 1), num_maskable
    )


def mask_tokens(ids: Ids, sample_ids: Ids, *, vocab_size: int, seed: int) -> MaskedTexts:
    """Hide some of the padded texts (B, S), each by its own draw (B,)."""
    is_maskable = (ids != PAD_ID) & (ids != END_ID)
    uniforms = _position_uniforms(seed, sample_ids, ids.shape[1])
    ranks = np.where(is_maskable, uniforms[0], 2.0).argsort(axis=1).argsort(axis=1)
    is_masked = ranks < num_masked((ids != PAD_ID).sum(1))[:, None]  # (B, S)
    random_ids = NUM_SPECIAL_IDS + (uniforms[2] * (vocab_size - NUM_SPECIAL_IDS)).astype(np.int64)
    action = uniforms[1]
    replacements = np.where(
        action < MASK_TOKEN_RATE,
        MASK_ID,
        np.where(action < MASK_TOKEN_RATE + RANDOM_TOKEN_RATE, random_ids, ids),
    )
    return MaskedTexts(np.where(is_masked, replacements, ids), np.where(is_masked, ids, PAD_ID))


def _position_uniforms(seed: int, sample_ids: Ids, length: int) -> Uniforms:
    """Give three independent numbers between 0 and 1 for each position of each draw: (3, B, S).

    A position's numbers do not depend on what stands beside it in the batch, nor on its padding.
    """
    keys = [derive_seed(seed, "mask", sample_id) for sample_id in sample_ids.tolist()]
    rows = np.array(keys, dtype=np.uint64)[None, :, None]
    streams = np.arange(3, dtype=np.uint64)[:, None, None]
    positions = np.arange(length, dtype=np.uint64)[None, None, :]
    mixed = rows + (positions * np.uint64(3) + streams + np.uint64(1)) * np.uint64(
        SPLITMIX64_INCREMENT
    )
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53


class MaskedBatchPlan(BatchPlan):
    """Which texts make up each batch of an epoch, and what is hidden in them.

    Row numbers count on from epoch to epoch: row r of epoch e is r + e times the number of texts,
    and so `read` knows the epoch. Texts are the sources of the corpora; targets are not read.
    """

    def __init__(
        self,
        corpora: Sequence[tuple[TokenizedCorpus, float]],
        *,
        batch_tokens: int,
        seed: int,
        vocab_size: int,
    ) -> None:
        super().__init__(corpora, batch_tokens=batch_tokens, seed=seed)
        self.vocab_size = vocab_size
        self.tgt_lengths = self.src_lengths

    def epoch(self, number: int) -> list[Rows]:
        """Plan an epoch: the row numbers of each batch, in the order of training."""
        return [rows + number * len(self.src_lengths) for rows in super().epoch(number)]

    def read(self, rows: Rows) -> Batch:
        """Read these texts, hide some of their words, and ask for those alone."""
        input_ids, labels = self.mask_rows(rows)
        decoder_ids = np.where(labels == PAD_ID, PAD_ID, START_ID)  # nothing of the target is told
        return Batch(*map(torch.from_numpy, (input_ids, decoder_ids, labels)))

    def mask_rows(self, rows: Rows) -> MaskedTexts:
        """Read these texts and hide some of their words."""
        ids = super().read(rows % len(self.src_lengths)).src_ids.numpy()
        return mask_tokens(ids, rows, vocab_size=self.vocab_size, seed=self.seed)

    def count_labels(self, rows: Rows) -> int:
        """Count the hidden positions of these texts."""
        return int(num_masked(self.src_lengths[rows % len(self.src_lengths)]).sum())


class PackedMaskedBatchPlan(MaskedBatchPlan, PackedBatchPlan):
    """The same without padding, and with hidden positions alone on the target side.

    So no logits are made of the 85 % of positions that nobody asks for.
    """

    def read_packed(self, rows: Rows, *, is_micro_batch: bool = False) -> PackedBatch:  # noqa: ARG002
        """Read these texts end to end; each target token's place is that of a hidden position."""
        input_ids, masked_labels = self.mask_rows(rows)
        is_real, is_masked = input_ids != PAD_ID, masked_labels != PAD_ID
        lengths = is_real.sum(1)
        max_seqlen = int(lengths.max())
        labels = masked_labels[is_masked]
        cu_seqlens = (
            np.concatenate([[0], counts.cumsum()]) for counts in (lengths, is_masked.sum(1))
        )
        ids = (input_ids[is_real], np.full_like(labels, START_ID), labels)
        tensors = (
            *(torch.from_numpy(row)[None] for row in ids),
            *(torch.from_numpy(offsets.astype(np.int32)) for offsets in cu_seqlens),
            *(torch.from_numpy(side.nonzero()[1]) for side in (is_real, is_masked)),
        )
        return PackedBatch._make((*tensors, (max_seqlen, max_seqlen)))
