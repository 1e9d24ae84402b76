"""Makes a translation have every placeholder and address exactly as often as its source.

The search has copied what the model left out (`attendo.translator.copying`). Here what it added is
removed, what it changed is replaced, and what is still missing is inserted.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from attendo.text.copy_spans import CopySpan, find_copy_spans, missing_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

VERBATIM_KINDS = ("url", "email", "emoji", "placeholder")
"""Practically never translated."""
BRACKETS = frozenset(
    ("()", "[]", '""', "''", "``", "“”", "‘’", "„“", "«»", "»«", "<>", "「」", "『』")
)
QUOTES = re.compile(r"[\"'`“”‘’„«»「」『』]")
WORD = re.compile(r"\S+")
NEAR = 4
"""Characters in which a neighboring sign is searched, across white space."""
MAX_COMPARED = 10_000
"""Pairs of a span of the source and one of the translation whose neighbors are compared."""


class Repair(NamedTuple):
    """A translation with the placeholders of its source."""

    text: str
    is_changed: bool


class Neighbors(NamedTuple):
    """What is around a span: the nearest signs, and the nearest spans."""

    left: str
    right: str
    span_before: str
    span_after: str

    def similarity(self, other: Neighbors) -> int:
        """Return how many of the neighbors are the same."""
        return sum(one == two for one, two in zip(self, other, strict=True))


def find_verbatim_spans(text: str) -> list[CopySpan]:
    """Return the spans that a translation must have as often as its source."""
    return [one for one in find_copy_spans(text) if one.kind in VERBATIM_KINDS]


def has_same_spans(source: str, text: str) -> bool:
    """Return whether a translation has every placeholder and address as often as its source.

    >>> has_same_spans("Delete {name}?", "{name} löschen?")
    True
    """
    expected, found = find_verbatim_spans(source), find_verbatim_spans(text)
    return Counter(one.text for one in expected) == Counter(one.text for one in found)


def list_differences(source: str, text: str) -> list[str]:
    """Return the placeholders and addresses that one of two texts has more often.

    >>> list_differences("%s of %d", "%s von %s")
    ['%d', '%s']
    """
    expected = Counter(one.text for one in find_verbatim_spans(source))
    found = Counter(one.text for one in find_verbatim_spans(text))
    return sorted((expected - found) | (found - expected))


def repair_spans(source: str, text: str) -> Repair:
    """Return a translation that has every placeholder and address as often as its source.

    Of several copies those stay whose neighbors are most similar to those in the source. What is
    missing is inserted at its relative position. An empty translation is the source.

    >>> repair_spans("Delete {name}?", "{name} {name} löschen?")
    Repair(text='{name} löschen?', is_changed=True)
    >>> repair_spans("Cannot read %s: %d", "%s kann nicht aus '%s' gelesen werden: %d").text
    '%s kann nicht aus gelesen werden: %d'
    """
    if not text.strip():
        return Repair(source, is_changed=bool(source.strip()))
    expected, found = find_verbatim_spans(source), find_verbatim_spans(text)
    if Counter(one.text for one in expected) == Counter(one.text for one in found):
        return Repair(text, is_changed=False)
    made = _replace_surplus(source, text, expected, found)
    for span in missing_spans(expected, made):
        made = _insert(made, span.text, span.start / max(len(source), 1))
    return Repair(made, is_changed=True)


def _replace_surplus(
    source: str, text: str, expected: Sequence[CopySpan], found: Sequence[CopySpan]
) -> str:
    """Replace what the source does not have by what is missing, or remove it."""
    missing = missing_spans(expected, text)
    kept = _choose_kept(source, text, expected, found)
    made, end = "", 0
    for index, span in enumerate(found):
        if index in kept:
            continue
        similar = _most_similar(span, missing)
        if similar is not None:
            missing.remove(similar)
            made += text[end : span.start] + similar.text
            end = span.end
            continue
        start, last = _widen(text, span, found[index - 1].end if index else None, end)
        made += text[end:start].rstrip(" ")
        end = last
    return (made + text[end:]).strip(" ")


def _choose_kept(
    source: str, text: str, expected: Sequence[CopySpan], found: Sequence[CopySpan]
) -> set[int]:
    """Return the indices of the spans of a translation that are those of the source."""
    src_neighbors, tgt_neighbors = _neighbors(source, expected), _neighbors(text, found)
    kept: set[int] = set()
    for value in {one.text for one in found}:
        origins = [src_neighbors[n] for n, one in enumerate(expected) if one.text == value]
        copies = [n for n, one in enumerate(found) if one.text == value]
        if 0 < len(origins) < len(copies) and len(origins) * len(copies) <= MAX_COMPARED:
            copies = _choose_in_order(origins, copies, tgt_neighbors)
        kept |= set(copies[: len(origins)])
    return kept


def _choose_in_order(
    origins: Sequence[Neighbors], copies: Sequence[int], neighbors: Sequence[Neighbors]
) -> list[int]:
    """Return one copy for each origin, in order, with the most similar neighbors in all."""
    # best[n]: the similarity and the copies for the first n origins; the earliest of equal ones.
    best: list[tuple[int, list[int]] | None] = [(0, []), *[None] * len(origins)]
    for copy in copies:
        for number in range(len(origins), 0, -1):
            before, now = best[number - 1], best[number]
            if before is None:
                continue
            score = before[0] + origins[number - 1].similarity(neighbors[copy])
            if now is None or score > now[0]:
                best[number] = (score, [*before[1], copy])
    chosen = best[-1]
    return [] if chosen is None else chosen[1]


def _neighbors(text: str, spans: Sequence[CopySpan]) -> list[Neighbors]:
    names = ["", *(one.text for one in spans), ""]
    return [
        Neighbors(
            _sign(text[max(span.start - NEAR, 0) : span.start].rstrip()[-1:]),
            _sign(text[span.end : span.end + NEAR].lstrip()[:1]),
            names[number],
            names[number + 2],
        )
        for number, span in enumerate(spans)
    ]


def _sign(character: str) -> str:
    """Return a punctuation mark, one for all quotes and one for all letters and digits."""
    return "a" if character.isalnum() else QUOTES.sub('"', character)


def _widen(text: str, span: CopySpan, end_before: int | None, limit: int) -> tuple[int, int]:
    """Return what is removed with a span: quotes or brackets around it, or the sign before it.

    The sign is one that joins it to the span before, which ends at `end_before`: "%d.%d".
    """
    start, end = span.start, span.end
    if end_before is not None and end_before >= limit and start - end_before == 1:
        sign = text[end_before]
        if not (sign.isspace() or sign.isalnum() or sign + text[end : end + 1] in BRACKETS):
            return end_before, end
    while start > limit and text[start - 1] + text[end : end + 1] in BRACKETS:
        start, end = start - 1, end + 1
    return start, end


def _most_similar(span: CopySpan, missing: Sequence[CopySpan]) -> CopySpan | None:
    """Return which missing placeholder a changed one was; a name may be in other letters."""
    alike = [one for one in missing if one.text.casefold() == span.text.casefold()]
    same_kind = [one for one in missing if one.kind == span.kind]
    return next(iter(alike or same_kind), None)


def _insert(text: str, span: str, share: float) -> str:
    """Insert a placeholder before the word that is nearest to a relative position."""
    starts = [*(word.start() for word in WORD.finditer(text)), len(text)]
    position = min(starts, key=lambda one: abs(one - share * len(text)))
    if position == len(text):
        return f"{text} {span}" if text else span
    return f"{text[:position]}{span} {text[position:]}"
