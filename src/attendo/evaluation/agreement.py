"""Chooses the translation of an n-best list that agrees most with a reference (Kim & Rush 2016).

A student learns more from a teacher's own words than from the reference, and most from those of its
words that agree with the reference: sequence-level interpolation. Agreement is sacreBLEU's chrF of
the sentence, counted here because sacreBLEU takes ten times as long. This module imports no tensor
library: it also runs in processes of its own, while the next batch is translated.
"""

from __future__ import annotations

from collections import Counter, deque
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ORDER, BETA_SQUARED = 6, 4.0
CHUNK_LINES = 256
"""Lines that are chosen among at once in another process."""


def sentence_chrf(hypothesis: str, reference: str) -> float:
    """Return chrF (character 6-grams, beta 2, without spaces), as sacreBLEU's sentence chrF.

    >>> round(sentence_chrf("the cat sat", "the cat sat down"), 1)
    66.0
    """
    return _score(_ngrams(hypothesis), _ngrams(reference))


def _ngrams(text: str) -> list[Counter[str]]:
    characters = "".join(text.split())
    return [
        Counter([characters[start : start + n] for start in range(len(characters) - n + 1)])
        for n in range(1, ORDER + 1)
    ]


def _score(hypothesis: list[Counter[str]], reference: list[Counter[str]]) -> float:
    precision = recall = 0.0
    count = 0
    for ours, theirs in zip(hypothesis, reference, strict=True):
        num_ours, num_theirs = ours.total(), theirs.total()
        if not num_ours or not num_theirs:
            continue
        small, large = (ours, theirs) if len(ours) < len(theirs) else (theirs, ours)
        get = large.get
        num_common = sum(min(number, get(ngram, 0)) for ngram, number in small.items())
        precision += num_common / num_ours
        recall += num_common / num_theirs
        count += 1
    if not count or not (precision or recall):
        return 0.0
    precision, recall = precision / count, recall / count
    weighted = (1 + BETA_SQUARED) * precision * recall / (BETA_SQUARED * precision + recall)
    return 100 * weighted


def choose_best(candidates: Sequence[str], reference: str) -> int:
    """Return the index of the candidate that agrees most; the first of equals.

    >>> choose_best(["a dog ran", "the cat sat", "the cat sat down"], "The cat sat down.")
    2
    """
    if len(candidates) < 2 or not reference.strip():
        return 0
    expected = _ngrams(reference)
    scores = [_score(_ngrams(candidate), expected) for candidate in candidates]
    return scores.index(max(scores))


def _choose_all(pairs: list[tuple[list[str], str]]) -> list[int]:
    return [choose_best(candidates, reference) for candidates, reference in pairs]


def choose_each(pairs: Iterable[tuple[list[str], str]], *, num_processes: int = 0) -> Iterator[int]:
    """Yield the index of the best candidate of each list, in order.

    With `num_processes`, some hundred lists are read ahead and chosen among in other processes.
    """
    if not num_processes:
        for candidates, reference in pairs:
            yield choose_best(candidates, reference)
        return
    from multiprocessing import get_context

    waiting: deque[Future[list[int]]] = deque()
    remaining = iter(pairs)
    # A forked process would copy the state of the GPU.
    with ProcessPoolExecutor(num_processes, mp_context=get_context("spawn")) as pool:
        try:
            while chunk := list(islice(remaining, CHUNK_LINES)):
                waiting.append(pool.submit(_choose_all, chunk))
                while len(waiting) > 2 * num_processes:
                    yield from waiting.popleft().result()
            while waiting:
                yield from waiting.popleft().result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
