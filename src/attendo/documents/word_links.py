"""Words of a text and of its translation, and which of them are aligned."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.copy_spans import CopySpan

WORD = re.compile(r"\S+")
NO_SPAN = -1


class Span(NamedTuple):
    """A range of characters."""

    start: int
    end: int


@dataclass(frozen=True)
class WordLinks:
    """The words of a text and of its translation, and how they are aligned."""

    src: list[Span]
    tgt: list[Span]
    rows: list[dict[int, float]]
    """For each target word the weights of the source words."""


def words_of(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """Return the words of a part of a text, separated by white space."""
    stop = len(text) if end is None else end
    return [Span(*found.span()) for found in WORD.finditer(text, start, stop)]


def link_by_position(source: str, text: str) -> WordLinks:
    """Align words by their positions, for translations whose model has no attention."""
    src, tgt = words_of(source), words_of(text)
    rows = diagonal_rows(len(src), len(tgt))
    return WordLinks(src, tgt, [dict(row) for row in rows])


def diagonal_rows(num_src: int, num_tgt: int, first: int = 0) -> list[dict[int, float]]:
    """Return weights of words that are aligned in order; source words count from `first`."""
    if not num_src:
        return [{} for _ in range(num_tgt)]
    return [
        {first + min(int((index + 0.5) * num_src / num_tgt), num_src - 1): 1.0}
        for index in range(num_tgt)
    ]


def join_placeholders(
    links: WordLinks, src_spans: Sequence[CopySpan], tgt_spans: Sequence[CopySpan]
) -> WordLinks:
    """Return links in which a placeholder with white space in it is one word.

    >>> words = words_of("Open { $file }")
    >>> links = WordLinks(words, words, [{0: 1.0}, {1: 1.0}, {2: 1.0}, {3: 1.0}])
    >>> from attendo.translator.span_repair import find_verbatim_spans
    >>> spans = find_verbatim_spans("Open { $file }")
    >>> join_placeholders(links, spans, spans).rows
    [{0: 1.0}, {1: 1.0}]
    """
    src_of, src = join_words(links.src, src_spans)
    tgt_of, tgt = join_words(links.tgt, tgt_spans)
    if len(src) == len(links.src) and len(tgt) == len(links.tgt):
        return links
    sizes = Counter(tgt_of)
    rows: list[dict[int, float]] = [{} for _ in tgt]
    for index, row in zip(tgt_of, links.rows, strict=True):
        for word, weight in row.items():
            joined = src_of[word]
            rows[index][joined] = rows[index].get(joined, 0.0) + weight / sizes[index]
    return WordLinks(src, tgt, rows)


def join_words(words: Sequence[Span], spans: Sequence[CopySpan]) -> tuple[list[int], list[Span]]:
    """Return the joined word of each word, and the joined words."""
    ends = [span.end for span in spans]
    joined: list[Span] = []
    number_of: list[int] = []
    last = NO_SPAN
    for start, end in words:
        index = bisect_right(ends, start)
        inside = index if index < len(spans) and spans[index].start < end else NO_SPAN
        if joined and inside != NO_SPAN and inside == last:
            joined[-1] = Span(joined[-1].start, end)
        else:
            joined.append(Span(start, end))
        number_of.append(len(joined) - 1)
        # The word may reach into the next placeholder: "{ $a }/{ $b }".
        index = bisect_left(ends, end)
        last = index if index < len(spans) and spans[index].start < end else NO_SPAN
    return number_of, joined
