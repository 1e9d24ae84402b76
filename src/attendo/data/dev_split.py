"""Splits a dev set off a corpus that has none, in two streaming passes.

The first pass (`DevSelector`) selects the pairs with the smallest salted hashes, so that the choice
depends on the pairs and the seed only, not on the order of the corpus. The second pass
(`split_pairs`) assigns each pair: a selected pair goes to dev, and a pair that shares its source or
its target with dev is dropped, so that no sentence of dev is trained on. Case is ignored.

Memory is bounded: the candidates of the first pass (about 2 MB at the default size) and a table of
4 MB that estimates how common each sentence is. Common candidates such as "Yes." are avoided, since
every training pair that shares them would be dropped.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from heapq import heappush, heappushpop
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import Field

from attendo.core.config import Config, Count, Seed
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.dedup import hash_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attendo.data.cleaning import CleaningReport
    from attendo.data.corpus_config import Pair

SplitName = Literal["train", "dev", "shared"]
OVERSAMPLING = 4
"""Candidates per pair of dev."""
NUM_COUNTERS = 2**20
COMMON_THRESHOLD = 16
"""A sentence that occurs more often than this is common."""
MAX_SHARED_FRACTION = 0.5
"""The split must drop less than this fraction of the corpus."""


class DevSplitConfig(Config):
    """Size of the dev set, and which sides it must not share with train."""

    size: Count = 2000
    """Maximum number of pairs in dev."""
    share: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.05
    """Maximum fraction of the corpus that goes to dev."""
    disjoint: Literal["both", "source"] = "both"
    """Sides that dev and train must not share. If there are few distinct targets (labels), only
    the sources can be disjoint."""
    seed: Seed = 1


class _PairHashes(NamedTuple):
    pair: int
    src: int
    tgt: int


def _hash_sides(pair: Pair, seed: int) -> _PairHashes:
    src, tgt = hash_text(pair.src.casefold()), hash_text(pair.tgt.casefold())
    return _PairHashes(hash_text(f"{seed} {src} {tgt}"), src, tgt)


@dataclass(frozen=True, slots=True)
class DevSelection:
    """Which pairs belong to dev: the result of the first pass, used by the second."""

    pairs: frozenset[int]
    sources: frozenset[int]
    targets: frozenset[int]
    seed: int

    def __len__(self) -> int:
        return len(self.pairs)

    def assign(self, pair: Pair) -> SplitName:
        """Return the split of a pair; a "shared" pair is not used."""
        return self._assign(_hash_sides(pair, self.seed))

    def _assign(self, hashes: _PairHashes) -> SplitName:
        if hashes.pair in self.pairs:
            return "dev"
        return "shared" if hashes.src in self.sources or hashes.tgt in self.targets else "train"


class DevSelector:
    """The first pass: call `observe` for every pair, then `select`."""

    def __init__(self, config: DevSplitConfig) -> None:
        self.config = config
        self.num_pairs = 0
        # The candidate with the largest hash is on top, to be replaced first.
        self._heap: list[tuple[int, _PairHashes]] = []
        self._members: set[int] = set()
        self._counts = array("I", bytes(4 * NUM_COUNTERS))

    def observe(self, pair: Pair) -> None:
        """Count a pair and keep it as a candidate if its hash is among the smallest."""
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
        """Select dev among the candidates, rare sentences first, then by hash."""
        if len(self._heap) < 2:
            raise InputError(
                message(
                    "a corpus of {count} distinct pairs cannot be split", count=len(self._heap)
                ),
                hint="give more pairs, or separate dev files",
            )
        num_wanted = max(1, min(self.config.size, int(self.config.share * self.num_pairs)))
        candidates = [hashes for _, hashes in self._heap]
        candidates.sort(key=lambda hashes: (self._is_common(hashes), hashes.pair))
        selected = candidates[:num_wanted]
        self._check_overlap(selected)
        return DevSelection(
            frozenset(hashes.pair for hashes in selected),
            frozenset(hashes.src for hashes in selected),
            frozenset(hashes.tgt for hashes in selected if self.config.disjoint == "both"),
            self.config.seed,
        )

    def _side_hashes(self, hashes: _PairHashes) -> tuple[int, ...]:
        sides = (hashes.src, hashes.tgt) if self.config.disjoint == "both" else (hashes.src,)
        return tuple(side % NUM_COUNTERS for side in sides)

    def _is_common(self, hashes: _PairHashes) -> bool:
        return max(self._counts[side] for side in self._side_hashes(hashes)) > COMMON_THRESHOLD

    def _check_overlap(self, selected: list[_PairHashes]) -> None:
        """Raise an error if the split would drop half of the corpus or more."""
        counters = {side for hashes in selected for side in self._side_hashes(hashes)}
        per_pair = 2 if self.config.disjoint == "both" else 1
        num_shared = sum(self._counts[side] for side in counters) - per_pair * len(selected)
        if num_shared >= MAX_SHARED_FRACTION * self.num_pairs:
            raise InputError(
                message(
                    "a dev set of {count} pairs would share a sentence with "
                    "{share:.0%} or more of the {num_pairs:,} pairs",
                    count=len(selected),
                    share=MAX_SHARED_FRACTION,
                    num_pairs=self.num_pairs,
                ),
                hint="give separate dev files; with few distinct targets, set disjoint = 'source'",
            )


def select_dev(pairs: Iterable[Pair], config: DevSplitConfig) -> DevSelection:
    """Run the first pass over cleaned pairs."""
    selector = DevSelector(config)
    for pair in pairs:
        selector.observe(pair)
    return selector.select()


def split_pairs(
    pairs: Iterable[Pair], selection: DevSelection, report: CleaningReport | None = None
) -> Iterator[tuple[Literal["train", "dev"], Pair]]:
    """Run the second pass: yield each used pair with its split; `report` counts the rest."""
    remaining = set(selection.pairs)
    for pair in pairs:
        hashes = _hash_sides(pair, selection.seed)
        if selection._assign(hashes) == "train":
            yield "train", pair
        elif hashes.pair in remaining:  # a later duplicate is not used
            remaining.remove(hashes.pair)
            yield "dev", pair
        elif report is not None:
            report.move_to_dropped("shares a side with dev", pair)
