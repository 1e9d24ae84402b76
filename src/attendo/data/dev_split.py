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
from attendo.data.seen_hashes import hash_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attendo.data.cleaning import CleaningReport
    from attendo.data.pair import Pair

Route = Literal["train", "dev", "shared"]
OVERSAMPLING = 4
"""Candidates for each place in dev."""
NUM_COUNTERS = 2**20
COMMON = 16
"""A sentence that occurs more often than this is a common one."""
MAX_SHARED = 0.5
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


class _Keys(NamedTuple):
    pair: int
    src: int
    tgt: int


def _keys_of(pair: Pair, seed: int) -> _Keys:
    src, tgt = hash_text(pair.src.casefold()), hash_text(pair.tgt.casefold())
    return _Keys(hash_text(f"{seed} {src} {tgt}"), src, tgt)


@dataclass(frozen=True, slots=True)
class DevSelection:
    """Which pairs are dev: the outcome of the first pass, all that the second needs."""

    pairs: frozenset[int]
    sources: frozenset[int]
    targets: frozenset[int]
    seed: int

    def __len__(self) -> int:
        return len(self.pairs)

    def route(self, pair: Pair) -> Route:
        """Say where a pair goes; "shared" ones are used nowhere."""
        return self._route(_keys_of(pair, self.seed))

    def _route(self, keys: _Keys) -> Route:
        if keys.pair in self.pairs:
            return "dev"
        return "shared" if keys.src in self.sources or keys.tgt in self.targets else "train"


class DevChooser:
    """The first pass: show it every pair with `observe`, then `choose`."""

    def __init__(self, config: DevSplitConfig) -> None:
        self.config = config
        self.num_pairs = 0
        self._heap: list[tuple[int, _Keys]] = []  # the largest key on top, to be replaced first
        self._members: set[int] = set()
        self._counts = array("I", bytes(4 * NUM_COUNTERS))

    def observe(self, pair: Pair) -> None:
        """Count a pair and take it as a candidate if its key is among the smallest."""
        keys = _keys_of(pair, self.config.seed)
        self.num_pairs += 1
        self._counts[keys.src % NUM_COUNTERS] += 1
        self._counts[keys.tgt % NUM_COUNTERS] += 1
        if keys.pair in self._members:
            return
        if len(self._heap) < OVERSAMPLING * self.config.size:
            self._members.add(keys.pair)
            heappush(self._heap, (-keys.pair, keys))
        elif keys.pair < -self._heap[0][0]:
            self._members.add(keys.pair)
            self._members.remove(-heappushpop(self._heap, (-keys.pair, keys))[0])

    def choose(self) -> DevSelection:
        """Choose dev out of what was observed, rare sentences first, then by key."""
        if len(self._heap) < 2:
            raise InputError(
                f"a corpus of {len(self._heap)} distinct pairs cannot be split",
                remedy="give more pairs, or files for dev",
            )
        wanted = max(1, min(self.config.size, int(self.config.share * self.num_pairs)))
        candidates = (keys for _, keys in self._heap)
        chosen = sorted(candidates, key=lambda keys: (self._is_common(keys), keys.pair))[:wanted]
        self._check_cost(chosen)
        return DevSelection(
            frozenset(keys.pair for keys in chosen),
            frozenset(keys.src for keys in chosen),
            frozenset(keys.tgt for keys in chosen if self.config.disjoint == "both"),
            self.config.seed,
        )

    def _sides(self, keys: _Keys) -> tuple[int, ...]:
        sides = (keys.src, keys.tgt) if self.config.disjoint == "both" else (keys.src,)
        return tuple(side % NUM_COUNTERS for side in sides)

    def _is_common(self, keys: _Keys) -> bool:
        return max(self._counts[side] for side in self._sides(keys)) > COMMON

    def _check_cost(self, chosen: list[_Keys]) -> None:
        """Refuse a split that would drop half of the corpus or more."""
        touched = {side for keys in chosen for side in self._sides(keys)}
        per_pair = 2 if self.config.disjoint == "both" else 1
        shared = sum(self._counts[side] for side in touched) - per_pair * len(chosen)
        if shared >= MAX_SHARED * self.num_pairs:
            raise InputError(
                f"a dev set of {len(chosen)} pairs would share a sentence with "
                f"{MAX_SHARED:.0%} or more of the {self.num_pairs:,} pairs",
                remedy="give files for dev; with few distinct targets, set disjoint = 'source'",
            )


def choose_dev(pairs: Iterable[Pair], config: DevSplitConfig) -> DevSelection:
    """Do the whole first pass over cleaned pairs."""
    chooser = DevChooser(config)
    for pair in pairs:
        chooser.observe(pair)
    return chooser.choose()


def split(
    pairs: Iterable[Pair], selection: DevSelection, report: CleaningReport | None = None
) -> Iterator[tuple[Literal["train", "dev"], Pair]]:
    """Do the second pass: give each pair that is used, and its route; `report` counts the rest."""
    waiting = set(selection.pairs)
    for pair in pairs:
        keys = _keys_of(pair, selection.seed)
        if selection._route(keys) == "train":
            yield "train", pair
        elif keys.pair in waiting:  # an equal pair that comes later is not used
            waiting.remove(keys.pair)
            yield "dev", pair
        elif report is not None:
            report.take_back("shares a side with dev", pair)
