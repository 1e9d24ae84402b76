"""Batches without padding: sentences end to end, up to a number of tokens on each side.

All batches can be given one shape (`Sizes`), which a GPU needs to repeat the same work without
asking: what is left of each side then belongs to sentences of padding at the end. There a batch is
a fair draw of the corpus, in no order. Elsewhere attention is computed over rows of one sentence
each, so a batch is of similar lengths, as a padded one is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from attendo.core.seeding import derive_seed
from attendo.data.batching import BatchPlan, Rows, Waste
from attendo.data.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.data.shards import TokenizedCorpus

MARGINS = (0.0, 0.01, 0.02, 0.04, 0.08)
"""Room for the side that has fewer tokens on average, beyond its share: the best is found."""
MULTIPLE = 64
"""Sizes are multiples of it: whole tiles of a matrix product."""
Ids = np.ndarray[tuple[int], np.dtype[np.int64]]


class Sizes(NamedTuple):
    """The shape of every batch: tokens of each side, and sentences, empty ones counted."""

    src: int
    tgt: int
    sentences: int


class PackedBatch(NamedTuple):
    """One piece of a batch for teacher forcing: both sides in one row each."""

    src_ids: Tensor  # (1, S)
    tgt_ids: Tensor  # (1, T): each target shifted right, behind the start symbol
    labels: Tensor  # (1, T): the targets
    src_starts: Tensor  # (B + 1,) int32, as in `attendo.model.packing`
    tgt_starts: Tensor
    src_places: Tensor  # (S,)
    tgt_places: Tensor  # (T,)
    longest: tuple[int, int]

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """Give all but the numbers."""
        return self[:-1]

    @property
    def num_tokens(self) -> int:
        """Count the target tokens that are scored."""
        return int(self.labels.ne(PAD_ID).sum())

    def to(self, device: torch.device) -> PackedBatch:
        """Move to a device, without waiting where the memory is pinned."""
        return self._each(lambda tensor: tensor.to(device, non_blocking=True))

    def pin_memory(self) -> PackedBatch:
        """Move to memory that a GPU can read by itself."""
        return self._each(torch.Tensor.pin_memory)

    def _each(self, change: Callable[[Tensor], Tensor]) -> PackedBatch:
        return PackedBatch._make((*map(change, self.tensors), self.longest))


class PackedPlan(BatchPlan):
    """Which pairs make up each batch of an epoch, where none is padded.

    `batch_tokens` is the most tokens on the side that has more of them; the other gets its share.
    `is_fixed` gives every batch one shape, and pairs of any length.
    """

    def __init__(
        self,
        corpora: Sequence[tuple[TokenizedCorpus, float]],
        *,
        batch_tokens: int,
        seed: int,
        is_fixed: bool = False,
    ) -> None:
        super().__init__(corpora, batch_tokens=batch_tokens, seed=seed)
        self.is_fixed = is_fixed
        self.longest = (int(self.src_lengths.max()), int(self.tgt_lengths.max()))
        self.sizes = self._choose_sizes()

    def epoch(self, number: int) -> list[Rows]:
        """Plan an epoch: the row numbers of each batch, in the order of training."""
        generator = np.random.default_rng(derive_seed(self.seed, "packed epoch", number))
        rows = self._draw(generator)
        if self.is_fixed:
            return self._fill(rows, self.sizes)
        batches = self._fill(self._by_length(rows, self.band), self.sizes)
        return [batches[place] for place in generator.permutation(len(batches))]

    def waste(self, batches: Sequence[Rows]) -> Waste:
        """Measure the share of each side that is left empty where all batches have one shape."""
        if not self.is_fixed:
            return Waste(0.0, 0.0)
        shares = []
        for lengths, size in (
            (self.src_lengths, self.sizes.src),
            (self.tgt_lengths, self.sizes.tgt),
        ):
            real = sum(int(lengths[rows].sum()) for rows in batches)
            shares.append(1 - real / (size * len(batches)))
        return Waste(*shares)

    def pack(self, rows: Rows, *, is_part: bool = False) -> PackedBatch:
        """Read these pairs, those of one corpus together; a part has a shape of its own."""
        homes = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(homes, kind="stable")
        rows, homes = rows[order], homes[order]
        parts = [
            self.corpora[home].join(rows[homes == home] - self.starts[home])
            for home in np.unique(homes)
        ]
        src, tgt = (np.concatenate(side) for side in zip(*parts, strict=True))
        lengths = (self.src_lengths[rows], self.tgt_lengths[rows])
        if self.is_fixed and not is_part:
            return pack(src, tgt, *lengths, longest=self.longest, sizes=self.sizes)
        return pack(src, tgt, *lengths, longest=(int(lengths[0].max()), int(lengths[1].max())))

    def _choose_sizes(self) -> Sizes:
        """Give the longer side all tokens, the other its share and the margin that wastes least.

        There is room for as many sentences as a batch had in a draw of the corpus.
        """
        every = len(self.src_lengths)
        if not self.is_fixed:
            return Sizes(self.batch_tokens, self.batch_tokens, every)
        rows = np.random.default_rng(0).permutation(every)[:100_000]
        found = [self._sizes_with(margin) for margin in MARGINS]
        filled = [(sizes, self._fill(rows, sizes)) for sizes in found]
        sizes, batches = min(filled, key=lambda way: (way[0].src + way[0].tgt) * len(way[1]))
        most = max(self._count_sentences(batch, sizes) for batch in batches)
        least = 1 + self._count_sentences(rows[:0], sizes)  # any one pair, and padding
        return sizes._replace(sentences=_round_up(max(most, least)))

    def _sizes_with(self, margin: float) -> Sizes:
        """Give sizes with room for any number of sentences."""
        means = [float(lengths.mean()) for lengths in (self.src_lengths, self.tgt_lengths)]
        largest = max(self.batch_tokens, *self.longest)
        tokens = [
            min(largest, max(side, round(largest * mean / max(means) * (1 + margin))))
            for side, mean in zip(self.longest, means, strict=True)
        ]
        src, tgt = map(_round_up, tokens)
        return Sizes(src, tgt, src + tgt)

    def _count_sentences(self, rows: Rows, sizes: Sizes) -> int:
        """Count those of a batch, and those that its padding is cut into where it has any."""
        if not self.is_fixed:
            return len(rows)
        both = zip((self.src_lengths, self.tgt_lengths), sizes, self.longest, strict=False)
        return len(rows) + max(
            -(-(size - int(lengths[rows].sum())) // longest) for lengths, size, longest in both
        )

    def _fill(self, rows: Rows, sizes: Sizes) -> list[Rows]:
        """Cut rows, in their order, where the next pair would be too much."""
        src, tgt = (
            np.concatenate([[0], lengths[rows].astype(np.int64).cumsum()])
            for lengths in (self.src_lengths, self.tgt_lengths)
        )
        room = (min(sizes.src, self.batch_tokens), min(sizes.tgt, self.batch_tokens))
        batches, begin = [], 0
        while begin < len(rows):
            ends = [
                int(np.searchsorted(sums, sums[begin] + size, side="right")) - 1
                for sums, size in zip((src, tgt), room, strict=True)
            ]
            end = min(*ends, begin + sizes.sentences)
            while self._count_sentences(rows[begin:end], sizes) > sizes.sentences:
                end -= 1
            batches.append(rows[begin:end])
            begin = end
        return batches


def _round_up(count: int) -> int:
    return -(-count // MULTIPLE) * MULTIPLE


def pack(
    src: Ids,
    tgt: Ids,
    src_lengths: Ids,
    tgt_lengths: Ids,
    *,
    longest: tuple[int, int],
    sizes: Sizes | None = None,
) -> PackedBatch:
    """Make a batch of pairs that lie end to end; with `sizes`, add sentences of padding.

    >>> sides = (np.array([5, 6, 3, 5, 3]), np.array([7, 3, 3]))
    >>> batch = pack(*sides, np.array([3, 2]), np.array([2, 1]), longest=(3, 2))
    >>> batch.src_ids.tolist(), batch.tgt_ids.tolist(), batch.labels.tolist()
    ([[5, 6, 3, 5, 3]], [[2, 7, 2]], [[7, 3, 3]])
    >>> batch.src_starts.tolist(), batch.tgt_places.tolist()
    ([0, 3, 5], [0, 1, 0])
    """
    lengths = [side.astype(np.int64) for side in (src_lengths, tgt_lengths)]
    if sizes is not None:
        room = zip(lengths, (sizes.src, sizes.tgt), longest, strict=True)
        lengths = [_fill_up(*side) for side in room]
        lengths = [np.pad(counts, (0, sizes.sentences - len(counts))) for counts in lengths]
        src, labels = (
            np.pad(ids, (0, size - len(ids)), constant_values=PAD_ID)
            for ids, size in ((src, sizes.src), (tgt, sizes.tgt))
        )
    else:
        labels = tgt
    starts = [np.concatenate([[0], counts.cumsum()]) for counts in lengths]
    places = [
        np.arange(first[-1]) - np.repeat(first[:-1], counts)
        for first, counts in zip(starts, lengths, strict=True)
    ]
    tgt_ids = np.concatenate([[START_ID], labels[:-1]])
    tgt_ids[places[1] == 0] = START_ID
    tgt_ids[labels == PAD_ID] = PAD_ID
    rows = (torch.from_numpy(ids)[None] for ids in (src, tgt_ids, labels))
    cuts = (torch.from_numpy(first.astype(np.int32)) for first in starts)
    return PackedBatch._make((*rows, *cuts, *map(torch.from_numpy, places), longest))


def _fill_up(lengths: Ids, size: int, longest: int) -> Ids:
    """Add sentences of padding, none longer than any other may be."""
    whole, rest = divmod(size - int(lengths.sum()), longest)
    return np.concatenate([lengths, [longest] * whole, [rest] * (rest > 0)]).astype(np.int64)
