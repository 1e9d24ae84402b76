"""Take a dev set out of a corpus that came without one, as the corpus streams by twice.

The first pass (`DevChooser`) chooses the pairs with the smallest salted hashes: which ones does not
depend on the order of the corpus, only on its pairs and the seed. The second pass (`split`) routes:
a chosen pair goes to dev, and a pair that shares its source or its target with dev is dropped, so
that no sentence of dev is ever trained on. Sentences are compared without regard to case.

Memory is fixed: the candidates of the first pass (some 2 MB at the default size) and a table of
4 MB that estimates how common each sentence is. It serves to pass over candidates such as "Yes.",
which would cost the training set every pair that shares them.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from attendo.core.config import Config, Count
from attendo.core.errors import InputError
from attendo.data.dedup import hash_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attendo.data.cleaning import CleaningReport
    from attendo.data.pair import Pair

SplitName = Literal["train", "dev", "shared"]
OVERSAMPLING = 4
"""Candidates for each place in dev."""
NUM_COUNTERS = 2**20
COMMON_THRESHOLD = 16
"""A sentence that occurs more often than this is a common one."""
MAX_SHARED_FRACTION = 0.5
"""The split may not drop as large a share of the corpus as this."""


class DevSplitConfig(Config):
    """How large dev is, and what it must not share with train."""

    size: Count = 2000
    """Most pairs in dev."""
    share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Largest share of the corpus that goes to dev."""
    disjoint: Literal["both", "source"] = "both"
    """Sides that dev and train must not share. Where few targets serve many sources (labels), only
    the sources can be kept apart."""
    seed: int = 1


class _PairHashes(NamedTuple):
    pair: int
    src: int
    tgt: int


def _hash_sides(pair: Pair, seed: int) -> _PairHashes:
    src, tgt = hash_text(pair.src.casefold()), hash_text(pair.tgt.casefold())
    return _PairHashes(hash_text(f"{seed} {src} {tgt}"), src, tgt)


@dataclass(frozen=True, slots=True)
class DevSelection:
    """Which pairs are dev: the outcome of the first pass, all that the second needs."""

    pairs: frozenset[int]
    sources: frozenset[int]
    targets: frozenset[int]
    seed: int

    def __len__(self) -> int:
        return len(self.pairs)

    def assign(self, pair: Pair) -> SplitName:
        """Say where a pair goes; "shared" ones are used nowhere."""
        return self._assign(_hash_sides(pair, self.seed))

    def _assign(self, hashes: _PairHashes) -> SplitName:
        if hashes.pair in self.pairs:
            return "dev"
        return "shared" if hashes.src in self.sources or hashes.tgt in self.targets else "train"


class DevSelector:
    """The first pass: show it every pair with `observe`, then `choose`."""

    def __init__(self, config: DevSplitConfig) -> None:
        self.config = config
        self.num_pairs = 0
        self._heap: list[
            tuple[int, _PairHashes]
        ] = []  # the largest key on top, to be replaced first
        self._members: set[int] = set()
        self._counts = array("I", bytes(4 * NUM_COUNTERS))

    def observe(self, pair: Pair) -> None:
        """Count a pair and take it as a candidate if its key is among the smallest."""
        hashes = _hash_sides(pair, self.config.seed)
        self.num_pairs += 1
        self._counts[hashes.src % NUM_COUNTERS] += 1
        self._counts[hashes.tgt % NUM_COUNTERS] += 1
        if hashes.pair in self._members:
            return
        if len(self._heap) < OVERSAMPLING * self.config.size:
            self._members.add(hashes.pair)
            heappush(self._heap, (-hashes.pair, hashes))
        elif hashes.pair < -self._heap[0][0]:
            self._members.add(hashes.pair)
            self._members.remove(-heappushpop(self._heap, (-hashes.pair, hashes))[0])

    def select(self) -> DevSelection:
        """Choose dev out of what was observed, rare sentences first, then by key."""
        if len(self._heap) < 2:
            raise InputError(
                f"a corpus of {len(self._heap)} distinct pairs cannot be split",
                hint="give more pairs, or files for dev",
            )
        num_wanted = max(1, min(self.config.size, int(self.config.share * self.num_pairs)))
        candidates = (keys for _, keys in self._heap)
        selected = sorted(candidates, key=lambda keys: (self._is_common(keys), keys.pair))[
            :num_wanted
        ]
        self._check_overlap(selected)
        return DevSelection(
            frozenset(keys.pair for keys in selected),
            frozenset(keys.src for keys in selected),
            frozenset(keys.tgt for keys in selected if self.config.disjoint == "both"),
            self.config.seed,
        )

    def _side_hashes(self, hashes: _PairHashes) -> tuple[int, ...]:
        sides = (hashes.src, hashes.tgt) if self.config.disjoint == "both" else (hashes.src,)
        return tuple(side % NUM_COUNTERS for side in sides)

    def _is_common(self, hashes: _PairHashes) -> bool:
        return max(self._counts[side] for side in self._side_hashes(hashes)) > COMMON_THRESHOLD

    def _check_overlap(self, selected: list[_PairHashes]) -> None:
        """Refuse a split that would drop half of the corpus or more."""
        num_affected = {side for keys in selected for side in self._side_hashes(keys)}
        per_pair = 2 if self.config.disjoint == "both" else 1
        shared = sum(self._counts[side] for side in num_affected) - per_pair * len(selected)
        if shared >= MAX_SHARED_FRACTION * self.num_pairs:
            raise InputError(
                f"a dev set of {len(selected)} pairs would share a sentence with "
                f"{MAX_SHARED_FRACTION:.0%} or more of the {self.num_pairs:,} pairs",
                hint="give files for dev; with few distinct targets, set disjoint = 'source'",
            )


def select_dev(pairs: Iterable[Pair], config: DevSplitConfig) -> DevSelection:
    """Do the whole first pass over cleaned pairs."""
    selector = DevSelector(config)
    for pair in pairs:
        selector.observe(pair)
    return selector.select()


def split_pairs(
    pairs: Iterable[Pair], selection: DevSelection, report: CleaningReport | None = None
) -> Iterator[tuple[Literal["train", "dev"], Pair]]:
    """Do the second pass: give each pair that is used, and its route; `report` counts the rest."""
    remaining = set(selection.pairs)
    for pair in pairs:
        hashes = _hash_sides(pair, selection.seed)
        if selection._assign(hashes) == "train":
            yield "train", pair
        elif hashes.pair in remaining:  # an equal pair that comes later is not used
            remaining.remove(hashes.pair)
            yield "dev", pair
        elif report is not None:
            report.move_to_dropped("shares a side with dev", pair)
