"""Watches one corpus while it is read and cleaned, for the data check.

A probe keeps what `attendo.data.check` needs, in bounded memory: the first pairs, a random sample
of the cleaned ones, the scores of the alignment, and how often sources are repeated. It costs no
reading of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from attendo.data.alignment import AlignmentTracker
from attendo.data.cleaning import CleaningReport
from attendo.data.corpus_config import Pair
from attendo.data.findings import shorten
from attendo.text.language_guess import LanguageGuess, guess_language

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from attendo.data.corpus_config import CorpusConfig

SAMPLE_SIZE = 10_000
NUM_FIRST_PAIRS = 100
MAX_COUNTED_SOURCES = 20_000


class SourceCounter:
    """Counts the targets of sources: of all, or of a random selection by hash if there are many.

    >>> counter = SourceCounter()
    >>> for source in ("Go.", "Go.", "Stop."):
    ...     counter.add(source)
    >>> counter.repeated_share, counter.most_common
    (0.6666666666666666, ('Go.', 2))
    """

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._hash_limit = 2**32

    def add(self, source: str) -> None:
        """Count a pair with this source."""
        if crc32(source.encode("utf-8", "surrogatepass")) >= self._hash_limit:
            return
        self._counts[source] += 1
        if len(self._counts) > MAX_COUNTED_SOURCES:
            self._hash_limit //= 2
            for text in [text for text in self._counts if not self._is_selected(text)]:
                del self._counts[text]

    def _is_selected(self, source: str) -> bool:
        return crc32(source.encode("utf-8", "surrogatepass")) < self._hash_limit

    @property
    def repeated_share(self) -> float:
        """The share of the pairs whose source occurs in other pairs too."""
        repeated = sum(count for count in self._counts.values() if count > 1)
        return repeated / max(self._counts.total(), 1)

    @property
    def most_common(self) -> tuple[str, int]:
        """The source with the most targets among the counted ones."""
        return max(self._counts.items(), key=lambda item: item[1], default=("", 0))


class SideLanguages(NamedTuple):
    """A guess for each side of a corpus."""

    src: LanguageGuess
    tgt: LanguageGuess


@dataclass
class CorpusProbe:
    """What is kept of one corpus."""

    config: CorpusConfig
    report: CleaningReport = field(default_factory=CleaningReport)
    alignment: AlignmentTracker = field(default_factory=AlignmentTracker)
    first_pairs: list[Pair] = field(default_factory=list)
    sample: list[Pair] = field(default_factory=list)
    """Cleaned pairs."""
    sources: SourceCounter = field(default_factory=SourceCounter)
    _num_observed: int = 0
    _random: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311

    def watch(self, raw: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs as they are read, and keep what is needed of them."""
        if self.config.text is not None:  # both sides are the same text
            yield from raw
            return
        for pair in self.alignment.watch(raw):
            if len(self.first_pairs) < NUM_FIRST_PAIRS:
                self.first_pairs.append(pair)
            yield pair

    def observe(self, pair: Pair) -> None:
        """Sample a cleaned pair (reservoir sampling), and count its source."""
        self._num_observed += 1
        self.sources.add(pair.src)
        if len(self.sample) < SAMPLE_SIZE:
            self.sample.append(pair)
            return
        index = self._random.randrange(self._num_observed)
        if index < SAMPLE_SIZE:
            self.sample[index] = pair

    @cached_property
    def languages(self) -> SideLanguages:
        """The languages of both sides, guessed from the sample once it is complete."""
        return SideLanguages(
            *(guess_language(pair[side] for pair in self.sample) for side in (0, 1))
        )

    @property
    def example(self) -> str:
        """A pair that is longer than a word."""
        pairs = self.sample or self.first_pairs or [Pair("", "")]
        return shorten(" | ".join(next((pair for pair in pairs if len(pair.src) > 20), pairs[0])))

    @property
    def name(self) -> str:
        """The names of the files, without their folders."""
        return ", ".join(path.name for path in self.config.paths)
