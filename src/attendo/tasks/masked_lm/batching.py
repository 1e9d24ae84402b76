"""Batches for masked language modeling (Devlin et al. 2019).

In each text, exactly 15 % of the positions (at least one, never the end symbol) are predicted. Of
those, 80 % are replaced by the mask symbol, 10 % by a random token, and 10 % keep their token, so
that the model cannot trust any input token. START_ID never occurs in a source, so it serves as the
mask symbol, and tokenizers need no new one.

The mask is a function of (seed, epoch, row): it changes every epoch, and is the same however often
a run was interrupted and however a batch is split.
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
"""The increment of SplitMix64 (Steele et al. 2014)."""


class MaskedTexts(NamedTuple):
    """Masked texts and the tokens to predict."""

    input_ids: Ids  # (B, S)
    labels: Ids  # (B, S): the true ids at masked positions, PAD_ID elsewhere


def num_masked(lengths: Ids) -> Ids:
    """Return how many positions are masked in texts of these lengths, END_ID included.

    >>> num_masked(np.array([1, 2, 8, 21])).tolist()
    [0, 1, 1, 3]
    """
    num_maskable = np.maximum(lengths.astype(np.int64) - 1, 0)
    return np.minimum(
        np.maximum(np.rint(MASK_RATE * num_maskable).astype(np.int64), 1), num_maskable
    )


def mask_tokens(ids: Ids, sample_ids: Ids, *, vocab_size: int, seed: int) -> MaskedTexts:
    """Mask tokens of padded texts (B, S); `sample_ids` (B,) select the random numbers of each."""
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
    """Return three independent uniform numbers for each position of each sample: (3, B, S).

    The numbers of a position depend neither on the rest of the batch nor on the padding.
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
    """The texts of each batch of an epoch, and their masked positions.

    Row numbers continue from epoch to epoch: row r of epoch e is r + e times the number of texts,
    so that `read` knows the epoch. Texts are the sources of the corpora; targets are not read.
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
        """Return the row numbers of each batch of an epoch, in training order."""
        return [rows + number * len(self.src_lengths) for rows in super().epoch(number)]

    def read(self, rows: Rows) -> Batch:
        """Return these texts masked, with labels at the masked positions alone."""
        input_ids, labels = self.mask_rows(rows)
        decoder_ids = np.where(
            labels == PAD_ID, PAD_ID, START_ID
        )  # the input does not reveal the target
        return Batch(*map(torch.from_numpy, (input_ids, decoder_ids, labels)))

    def mask_rows(self, rows: Rows) -> MaskedTexts:
        """Return these texts, masked."""
        ids = super().read(rows % len(self.src_lengths)).src_ids.numpy()
        return mask_tokens(ids, rows, vocab_size=self.vocab_size, seed=self.seed)

    def count_labels(self, rows: Rows) -> int:
        """Return the number of masked positions of these texts."""
        return int(num_masked(self.src_lengths[rows % len(self.src_lengths)]).sum())


class PackedMaskedBatchPlan(MaskedBatchPlan, PackedBatchPlan):
    """The same without padding, and with the masked positions alone on the target side.

    No logits are computed for the 85 % of positions that are not predicted.
    """

    def read_packed(self, rows: Rows, *, is_micro_batch: bool = False) -> PackedBatch:  # noqa: ARG002
        """Return these texts concatenated; target positions are those of the masked tokens."""
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
