"""Byte-pair encoding on a corpus of a few words, with the ties broken as SentencePiece does.

A word begins with the symbol for a space, so that a piece tells where a word starts.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from attendo.text.tokenizer import SPACE_SYMBOL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Split = tuple[str, ...]


class Merge(NamedTuple):
    """One step: two neighboring pieces that have become one."""

    left: str
    right: str
    frequency: int
    """How often they were neighbors in the corpus."""
    runner_up: tuple[str, str, int] | None
    """The pair that would have been next, and its count."""
    splits: dict[str, Split]
    """Every word of the corpus after this step."""
    num_tokens: int
    """The length of the corpus in pieces after this step."""

    @property
    def piece(self) -> str:
        """The new piece."""
        return self.left + self.right


def split_characters(word: str) -> Split:
    """Return the pieces before the first merge.

    >>> split_characters("low")
    ('▁', 'l', 'o', 'w')
    """
    return (SPACE_SYMBOL, *word)


def count_words(text: str) -> Counter[str]:
    """Return how often each word occurs."""
    return Counter(text.split())


def count_pairs(splits: dict[str, Split], counts: Counter[str]) -> Counter[tuple[str, str]]:
    """Return how often each two pieces are neighbors in the corpus.

    >>> count_pairs({"hum": ("h", "u", "m")}, Counter(["hum", "hum"]))
    Counter({('h', 'u'): 2, ('u', 'm'): 2})
    """
    found: Counter[tuple[str, str]] = Counter()
    for word, split in splits.items():
        for pair in pairwise(split):
            found[pair] += counts[word]
    return found


def learn_merges(text: str, limit: int) -> list[Merge]:
    """Return the first merges of a corpus; fewer if every word is one piece before."""
    counts = count_words(text)
    splits = {word: split_characters(word) for word in counts}
    merges: list[Merge] = []
    while len(merges) < limit:
        ranked = sorted(count_pairs(splits, counts).items(), key=_rank)
        if not ranked:
            break
        (left, right), count = ranked[0]
        splits = {word: merge_pair(split, left, right) for word, split in splits.items()}
        second = (*ranked[1][0], ranked[1][1]) if len(ranked) > 1 else None
        num_tokens = sum(len(split) * counts[word] for word, split in splits.items())
        merges.append(Merge(left, right, count, second, splits, num_tokens))
    return merges


def _rank(item: tuple[tuple[str, str], int]) -> tuple[int, int, str]:
    """Return the order of pairs: the most frequent, then the shortest, then the alphabet."""
    (left, right), count = item
    return -count, len(left + right), left + right


def merge_pair(split: Sequence[str], left: str, right: str) -> Split:
    """Return a word with every neighboring `left` and `right` as one piece.

    >>> merge_pair(("n", "e", "w", "e", "s", "t"), "e", "s")
    ('n', 'e', 'w', 'es', 't')
    """
    merged: list[str] = []
    for piece in split:
        if merged and (merged[-1], piece) == (left, right):
            merged[-1] = left + right
        else:
            merged.append(piece)
    return tuple(merged)


def apply_merges(word: str, merges: Sequence[Merge]) -> Iterator[tuple[Merge, Split]]:
    """Yield the merges that change a word, seen or not, with the word after each."""
    split = split_characters(word)
    for merge in merges:
        changed = merge_pair(split, merge.left, merge.right)
        if changed != split:
            split = changed
            yield merge, split


def split_word(word: str, merges: Sequence[Merge]) -> Split:
    """Return the pieces of a word, seen or not."""
    split = split_characters(word)
    for _, split in apply_merges(word, merges):  # noqa: B007 - the last one is meant
        pass
    return split
