"""BLEU and chrF of one sentence with every intermediate number, as one would compute them by hand.

The scores equal those of `attendo.evaluation.bleu`; a test checks this.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import exp, log
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_ORDER = 4
"""BLEU counts n-grams of one to four words."""
MAX_CHARACTER_ORDER = 6
"""chrF counts n-grams of one to six characters."""
BETA = 2
"""chrF counts recall twice as much as precision."""


class NgramCount(NamedTuple):
    """One n-gram of the hypothesis."""

    ngram: tuple[str, ...]
    in_hypothesis: int
    in_reference: int

    @property
    def clipped(self) -> int:
        """Return how often it counts: at most as often as the reference has it."""
        return min(self.in_hypothesis, self.in_reference)


class OrderCount(NamedTuple):
    """All n-grams of one length."""

    order: int
    ngrams: list[NgramCount]
    in_reference: int
    """The number of n-grams in the reference."""
    precision: float
    """With the smoothing of sacreBLEU if nothing matches."""

    @property
    def matches(self) -> int:
        """Return the number of n-grams that count."""
        return sum(one.clipped for one in self.ngrams)

    @property
    def total(self) -> int:
        """Return the number of n-grams in the hypothesis."""
        return sum(one.in_hypothesis for one in self.ngrams)


class HandBleu(NamedTuple):
    """BLEU and what it is made of."""

    orders: list[OrderCount]
    length: int
    reference_length: int
    brevity_penalty: float
    score: float


class HandChrf(NamedTuple):
    """chrF and what it is made of."""

    orders: list[OrderCount]
    precision: float
    recall: float
    score: float


@cache
def _tokenizer() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU().tokenizer


def tokenize(text: str) -> list[str]:
    """Return the tokens that BLEU compares: words and punctuation, by the rules "13a".

    >>> tokenize("The cat's here, at 3.5 km.")
    ['The', "cat's", 'here', ',', 'at', '3.5', 'km', '.']
    """
    tokens: list[str] = _tokenizer()(text.rstrip()).split()
    return tokens


def list_ngrams(tokens: Sequence[str], order: int) -> list[tuple[str, ...]]:
    """Return the runs of `order` tokens, from left to right.

    >>> list_ngrams(["the", "old", "tower"], 2)
    [('the', 'old'), ('old', 'tower')]
    """
    return [tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1)]


def count_ngrams(hypothesis: Sequence[str], reference: Sequence[str], order: int) -> OrderCount:
    """Return the n-grams of one length, each clipped to its count in the reference."""
    ours = Counter(list_ngrams(hypothesis, order))
    theirs = Counter(list_ngrams(reference, order))
    ngrams = [NgramCount(ngram, count, theirs[ngram]) for ngram, count in ours.items()]
    counted = OrderCount(order, ngrams, theirs.total(), 0.0)
    return counted._replace(precision=counted.matches / max(counted.total, 1))


def smooth(orders: Sequence[OrderCount]) -> list[OrderCount]:
    """Replace precisions of 0 by 1/2, 1/4, ... of one match, as sacreBLEU does ("smooth:exp")."""
    smoothed, share = [], 1.0
    has_matches = any(one.matches for one in orders)
    for one in orders:
        is_zero = has_matches and one.total and not one.matches
        share /= 2.0 if is_zero else 1.0
        smoothed.append(one._replace(precision=share / one.total) if is_zero else one)
    return smoothed


def brevity_penalty(length: int, reference_length: int) -> float:
    """Return the factor for a hypothesis that is too short: 1 if it is not.

    >>> brevity_penalty(9, 9), round(brevity_penalty(8, 10), 4)
    (1.0, 0.7788)
    """
    if length >= reference_length:
        return 1.0
    return exp(1.0 - reference_length / length) if length else 0.0


def hand_bleu(hypothesis: str, reference: str) -> HandBleu:
    """Return BLEU of one sentence, with all counts."""
    ours, theirs = tokenize(hypothesis), tokenize(reference)
    counts = [count_ngrams(ours, theirs, order) for order in range(1, MAX_ORDER + 1)]
    orders = smooth(counts)
    penalty = brevity_penalty(len(ours), len(theirs))
    score = 100.0 * penalty * geometric_mean([one.precision for one in orders])
    return HandBleu(orders, len(ours), len(theirs), penalty, score)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the n-th root of the product of n numbers.

    >>> geometric_mean([0.5, 0.5, 1.0, 1.0])
    0.7071067811865476
    """
    if not all(values):
        return 0.0
    return exp(sum(map(log, values)) / len(values))


def hand_chrf(hypothesis: str, reference: str) -> HandChrf:
    """Return chrF of one sentence, with all counts: n-grams of characters, without spaces."""
    ours, theirs = ("".join(text.split()) for text in (hypothesis, reference))
    orders = [count_ngrams(ours, theirs, order) for order in range(1, MAX_CHARACTER_ORDER + 1)]
    used = [one for one in orders if one.total and one.in_reference]
    if not any(one.matches for one in used):
        return HandChrf(orders, 0.0, 0.0, 0.0)
    precision = sum(one.precision for one in used) / len(used)
    recall = sum(one.matches / one.in_reference for one in used) / len(used)
    score = 100.0 * (1 + BETA**2) * precision * recall / (BETA**2 * precision + recall)
    return HandChrf(orders, precision, recall, score)
