"""Puts the tags of a source onto its translation, at the words that are aligned with theirs.

A sentence is translated as plain text, whole. A pair of tags then spans the target words whose
attention is on the words that it spans in the source; a single tag is placed at the word that is
aligned with its neighbor. Pairs never overlap and never leave the pair that they are in: the
result is well-formed whatever the alignment is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import replace
from difflib import SequenceMatcher

from attendo.documents.markup import NO_PARENT, MarkedText, Tag, traverse
from attendo.documents.word_links import (
    Span,
    WordLinks,
    join_placeholders,
    join_words,
    link_by_position,
    words_of,
)
from attendo.text.glossary import HANGUL_CHARACTERS, is_particle_suffix
from attendo.translator.span_repair import find_verbatim_spans

PUNCTUATION = ".,;:!?…。、，！？；：)]}\"'”’»」』）"
"""Not part of a span at its end, unless the span of the source ends with punctuation too."""
OPENERS = "([{\"'“‘„«「『（¿¡"
MIN_SHARE = 0.5
"""A target word belongs to a span if this much of its attention is on it."""
SAME_WORD = 1.0
"""What is added to the weight between a word and its copy."""
MAX_ALIGNED_TAGS = 100
"""In a text with more tags or characters, tags are moved by their positions alone."""
MAX_ALIGNED_CHARACTERS = 10_000
MAX_COPIES = 20
"""Occurrences of a name that are compared."""
MAX_PARTICLE = 12
MIN_SIMILARITY = 0.5
"""A word that is less similar to a name or code is not a misspelling of it."""


def project(marked: MarkedText, text: str, links: WordLinks | None = None) -> MarkedText:
    """Return a translation with the tags of its source.

    Args:
        marked: the source.
        text: the translation of `marked.text`.
        links: how their words are aligned; by their positions if it is not known.

    Returns:
        The translation with every tag of the source exactly once, in a well-formed order; the text
        of verbatim tags is that of the source.

    >>> marked = MarkedText("the red card", (Tag(4, 7, "<b>", "</b>"),))
    >>> project(marked, "die rote Karte").tags[0].start
    4

    """
    if not marked.tags:
        return MarkedText(text)
    if len(marked.tags) > MAX_ALIGNED_TAGS or len(text) > MAX_ALIGNED_CHARACTERS:
        return _scale(marked, text)
    links = join_placeholders(
        links or link_by_position(marked.text, text),
        find_verbatim_spans(marked.text),
        find_verbatim_spans(text),
    )
    return _Projection(marked, text, links).run()


def _scale(marked: MarkedText, text: str) -> MarkedText:
    """Move tags by their positions: a monotonic function keeps them well-formed."""
    _, words = join_words(words_of(text), find_verbatim_spans(text))
    starts = [0, *(word.start for word in words), len(text)]
    ratio = len(text) / max(len(marked.text), 1)

    def move(position: int) -> int:
        if position == len(marked.text):
            return len(text)
        return starts[max(bisect_right(starts, position * ratio) - 1, 0)]

    tags = (replace(tag, start=move(tag.start), end=move(tag.end)) for tag in marked.tags)
    return MarkedText(text, tuple(tags))


class _Projection:
    def __init__(self, marked: MarkedText, text: str, links: WordLinks) -> None:
        self.marked, self.text, self.links = marked, text, links
        self.spans: dict[int, Span] = {NO_PARENT: Span(0, len(text))}
        """The range of each tag that was placed."""
        self.taken: dict[int, list[Span]] = {}
        """The ranges of the pairs that were placed in each pair."""
        self.used: dict[int, set[int]] = {}
        """The words in these ranges."""
        self.src_ends = [word.end for word in links.src]
        self.tgt_starts = [word.start for word in links.tgt]
        self.tgt_ends = [word.end for word in links.tgt]
        self.inserted: dict[int, str] = {}
        """The text of verbatim tags that the translation lacks."""
        self.placeholders = find_verbatim_spans(text)
        self.rows: list[dict[int, float]] = []
        self.totals: list[float] = []
        self.columns: dict[int, dict[int, float]] = {}
        copies = self._copied_words()
        for index, row in enumerate(links.rows):
            total = sum(row.values()) or 1.0
            weights = {word: weight / total for word, weight in row.items()}
            for word in copies.get(index, ()):
                weights[word] = weights.get(word, 0.0) + SAME_WORD
            self.rows.append(weights)
            self.totals.append(sum(weights.values()) or 1.0)
            for word, weight in weights.items():
                self.columns.setdefault(word, {})[index] = weight

    def _copied_words(self) -> dict[int, list[int]]:
        """Return the source words that are the same as a target word, if each occurs once."""
        links = self.links
        src = [_bare(self.marked.text[start:end]) for start, end in links.src]
        tgt = [_bare(self.text[start:end]) for start, end in links.tgt]
        indices_of: dict[str, list[int]] = {}
        for index, word in enumerate(src):
            indices_of.setdefault(word, []).append(index)
        counts: dict[str, int] = {}
        for word in tgt:
            counts[word] = counts.get(word, 0) + 1
        return {
            index: indices_of[word]
            for index, word in enumerate(tgt)
            if word and counts[word] == 1 and len(indices_of.get(word, ())) == 1
        }

    def run(self) -> MarkedText:
        tags = self.marked.tags
        inside = self._inside_verbatim()
        # Long spans first: what they leave is searched for the shorter ones.
        for parent in [NO_PARENT, *(index for index, tag in enumerate(tags) if tag.is_pair)]:
            if parent in inside or (parent != NO_PARENT and tags[parent].is_verbatim):
                continue
            children = [index for index, tag in enumerate(tags) if tag.parent == parent]
            pairs = [index for index in children if tags[index].is_pair]
            for index in sorted(pairs, key=lambda one: tags[one].start - tags[one].end):
                self._add_pair(index)
            for index in children:
                if not tags[index].is_pair:
                    self._add_single(index)
        return self._assemble(inside)

    def _inside_verbatim(self) -> dict[int, int]:
        """Return the verbatim tag around each tag that is in one."""
        inside: dict[int, int] = {}
        for index, tag in enumerate(self.marked.tags):
            if tag.parent != NO_PARENT:
                if tag.parent in inside:
                    inside[index] = inside[tag.parent]
                elif self.marked.tags[tag.parent].is_verbatim:
                    inside[index] = tag.parent
        return inside

    def _add_pair(self, index: int) -> None:
        tag = self.marked.tags[index]
        content = self.marked.text[tag.start : tag.end]
        span = self._find_span(tag, content) if content.strip() else None
        if span is None:
            position = self._find_position(tag)
            span = Span(position, position)
            if tag.is_verbatim and content.strip():
                self.inserted[index] = content
        elif tag.is_verbatim and self.text[span.start : span.end] != content.strip():
            found = self.text[span.start : span.end]
            if SequenceMatcher(None, found, content, autojunk=False).ratio() < MIN_SIMILARITY:
                span = Span(span.start, span.start)
            self.inserted[index] = content.strip()
        self.spans[index] = span
        self.taken.setdefault(tag.parent, []).append(span)
        if span.start < span.end:
            self.used.setdefault(tag.parent, set()).update(self._words_in(span))

    def _find_span(self, tag: Tag, content: str) -> Span | None:
        parent = self.spans[tag.parent]
        if self._is_whole(tag) and not self.taken.get(tag.parent):
            return parent
        allowed = self._allowed_words(tag.parent)
        inner = self._source_words(tag)
        best = self._best_words(allowed, inner)
        if found := self._find_copy(content.strip(), tag.parent, best):
            return found
        if best is None and allowed and not tag.is_verbatim:
            # No word is aligned: a link on a word nearby is better than one without a text.
            share = tag.start / max(len(self.marked.text), 1)
            wanted = share * len(self.text)
            best = min((word for _, word in allowed), key=lambda one: abs(one.start - wanted))
        return self._trim(best, content) if best else None

    def _is_whole(self, tag: Tag) -> bool:
        """Return whether a pair spans all words of the pair that it is in."""
        outer = self.marked.tags[tag.parent] if tag.parent != NO_PARENT else None
        start, end = (outer.start, outer.end) if outer else (0, len(self.marked.text))
        around = self.marked.text[start : tag.start] + self.marked.text[tag.end : end]
        return not any(letter.isalnum() for letter in around) and not around.strip()

    def _allowed_words(self, parent: int) -> list[tuple[int, Span]]:
        """Return the target words in a pair that no other pair in it has, cut to the pair."""
        outer, allowed = self.spans[parent], []
        used = self.used.get(parent, ())
        for index in self._words_in(outer):
            if index not in used:
                start, end = self.links.tgt[index]
                allowed.append((index, Span(max(start, outer.start), min(end, outer.end))))
        return allowed

    def _words_in(self, span: Span) -> range:
        """Return the target words that a range overlaps."""
        first = bisect_right(self.tgt_ends, span.start)
        return range(first, max(bisect_left(self.tgt_starts, span.end), first))

    def _source_words(self, tag: Tag) -> dict[int, float]:
        """Return the source words of a pair, and which part of each is in it."""
        parts = {}
        first = bisect_right(self.src_ends, tag.start)
        for index in range(first, len(self.links.src)):
            start, end = self.links.src[index]
            if start >= tag.end:
                break
            overlap = min(end, tag.end) - max(start, tag.start)
            if overlap > 0:
                letters = len(_bare(self.marked.text[start:end])) or end - start
                parts[index] = min(overlap / letters, 1.0)
        largest = max(parts.values(), default=1.0)
        return {index: part / largest for index, part in parts.items()}

    def _best_words(self, allowed: list[tuple[int, Span]], inner: dict[int, float]) -> Span | None:
        """Return the range of adjacent words with the most attention on the words of a pair."""
        best: tuple[float, Span] | None = None
        start, total, previous = -1, 0.0, -2
        for index, word in allowed:
            row = self.rows[index]
            inside = sum(weight * inner[one] for one, weight in row.items() if one in inner)
            share = inside / self.totals[index] - MIN_SHARE
            if index != previous + 1 or total <= 0.0:
                start, total = word.start, 0.0
            total += share
            previous = index
            if total > 0.0 and (best is None or total > best[0]):
                best = total, Span(start, word.end)
        if best is not None:
            return best[1]
        # No word has most of its attention there: the one that has more than the others.
        weights = [
            (sum(self.rows[index].get(one, 0.0) for one in inner), word) for index, word in allowed
        ]
        largest = max(weights, key=lambda one: one[0], default=(0.0, Span(0, 0)))
        return largest[1] if largest[0] > 0.0 else None

    def _find_copy(self, content: str, parent: int, near: Span | None) -> Span | None:
        """Return where the text of a pair occurs in the translation as it is."""
        if len(content) < 2 and not content.isdigit():
            return None
        outer, found = self.spans[parent], []
        start = self.text.find(content, outer.start, outer.end)
        for _ in range(MAX_COPIES):
            if start < 0:
                break
            span = Span(start, start + len(content))
            is_free = not any(
                span.start < other.end and other.start < span.end
                for other in self.taken.get(parent, ())
            )
            is_free = is_free and not any(
                one.start < edge < one.end for one in self.placeholders for edge in span
            )
            if is_free and _is_word(self.text, span):
                found.append(span)
            start = self.text.find(content, start + 1, outer.end)
        if not found:
            return None
        wanted = near.start if near else outer.start
        return min(found, key=lambda one: abs(one.start - wanted))

    def _trim(self, span: Span, content: str) -> Span:
        start, end = span
        if content.rstrip()[-1:] not in PUNCTUATION:
            end = self._trim_end(end, start + 1)
        if content.lstrip()[:1] not in OPENERS:
            closed = {one.start for one in self.placeholders}
            while start < end - 1 and self.text[start] in OPENERS and start not in closed:
                start += 1
        return Span(start, end)

    def _trim_end(self, end: int, limit: int) -> int:
        """Return the end without punctuation; the end of a placeholder, as `}`, is none."""
        closed = {one.end for one in self.placeholders}
        while end > limit and self.text[end - 1] in PUNCTUATION and end not in closed:
            end -= 1
        return end

    def _add_single(self, index: int) -> None:
        tag = self.marked.tags[index]
        position = self._find_position(tag)
        self.spans[index] = Span(position, position)
        source = self.marked.text
        is_apart = source[tag.start - 1 : tag.start].isspace() and source[tag.start :][:1].isspace()
        if is_apart and self.text[position : position + 1].isalnum():
            self.inserted[index] = " "

    def _find_position(self, tag: Tag) -> int:
        """Return where a tag without words belongs: at the word that its neighbor is aligned with.

        A tag that is attached to the word before it, such as the mark of a footnote, stays so.
        """
        outer = self.spans[tag.parent]
        source, position = self.marked.text, tag.start
        before, after = source[:position], source[position:]
        is_attached = bool(before) and not before[-1].isspace()
        is_followed = bool(after) and after[0].isalnum()
        if not any(letter.isalnum() for letter in self._within(tag, before=True)):
            return outer.start
        if not any(letter.isalnum() for letter in self._within(tag, before=False)):
            end = outer.end
            if is_attached and after and after[0] in PUNCTUATION:
                end = self._trim_end(end, outer.start)
            return self._outside_pairs(end, tag.parent)
        if is_attached and not is_followed:
            words = [i for i, word in enumerate(self.links.src) if word.start < position]
            found = self._aligned(words[-1], outer) if words else None
            if found is not None:
                end = found.end
                if before[-1] not in PUNCTUATION:
                    end = self._trim_end(end, found.start + 1)
                return self._outside_pairs(end, tag.parent)
        words = [i for i, word in enumerate(self.links.src) if word.end > position]
        found = self._aligned(words[0], outer) if words else None
        if found is None:
            share = position / max(len(source), 1)
            wanted = round(share * len(self.text))
            starts = [word.start for word in self.links.tgt if word.start >= outer.start]
            starts = [start for start in starts if start <= outer.end] or [outer.start]
            return self._outside_pairs(min(starts, key=lambda one: abs(one - wanted)), tag.parent)
        return self._outside_pairs(found.start, tag.parent)

    def _within(self, tag: Tag, *, before: bool) -> str:
        """Return the text before or after a tag, in the pair that it is in."""
        outer = self.marked.tags[tag.parent] if tag.parent != NO_PARENT else None
        start, end = (outer.start, outer.end) if outer else (0, len(self.marked.text))
        return self.marked.text[start : tag.start] if before else self.marked.text[tag.end : end]

    def _aligned(self, word: int, outer: Span) -> Span | None:
        column = self.columns.get(word, {})
        best, largest = None, 0.0
        for index, weight in column.items():
            start, end = self.links.tgt[index]
            cut = Span(max(start, outer.start), min(end, outer.end))
            if cut.start < cut.end and weight > largest:
                best, largest = cut, weight
        return best

    def _outside_pairs(self, position: int, parent: int) -> int:
        """Return the nearest position that is not within a pair next to a tag."""
        for start, end in self.taken.get(parent, ()):
            if start < position < end:
                return start if position - start < end - position else end
        return position

    def _assemble(self, inside: dict[int, int]) -> MarkedText:
        """Return the translation with the tags in the order of their new positions."""
        tags = self.marked.tags
        order: list[int] = []
        children: dict[int, list[int]] = {}
        for index, tag in enumerate(tags):
            children.setdefault(tag.parent, []).append(index)
        stack = [iter(self._sorted(children.get(NO_PARENT, ()), inside))]
        while stack:
            child = next(stack[-1], None)
            if child is None:
                stack.pop()
                continue
            order.append(child)
            stack.append(iter(self._sorted(children.get(child, ()), inside)))
        return self._insert_verbatim(order, inside)

    def _sorted(self, indices: list[int] | tuple[int, ...], inside: dict[int, int]) -> list[int]:
        return sorted(
            indices, key=lambda one: (0, 0, one) if one in inside else (*self.spans[one], one)
        )

    def _insert_verbatim(self, order: list[int], inside: dict[int, int]) -> MarkedText:
        """Return the tags in order; the text of verbatim ones is that of the source."""
        outer = [index for index in order if index not in inside]
        writer = _VerbatimWriter(self, outer)
        numbers = {NO_PARENT: NO_PARENT} | {index: number for number, index in enumerate(order)}
        made = []
        for index in order:
            tag = self.marked.tags[index]
            span = writer.spans[index] if index not in inside else self._span_in(
                tag, inside[index], writer.spans[inside[index]]
            )  # fmt: skip
            made.append(replace(tag, start=span.start, end=span.end, parent=numbers[tag.parent]))
        return MarkedText(writer.text, tuple(made))

    def _span_in(self, tag: Tag, around: int, limit: Span) -> Span:
        """Return where a tag in a verbatim one is: its text is that of the source."""
        verbatim = self.marked.tags[around]
        content = self.marked.text[verbatim.start : verbatim.end]
        base = limit.start - verbatim.start - (len(content) - len(content.lstrip()))
        start = min(max(tag.start + base, limit.start), limit.end)
        return Span(start, min(max(tag.end + base, start), limit.end))


class _VerbatimWriter:
    """Writes the translation again, with the text of verbatim tags."""

    def __init__(self, projection: _Projection, outer: list[int]) -> None:
        self.text = ""
        self.spans: dict[int, Span] = {}
        self.inserted = projection.inserted
        numbers = {NO_PARENT: NO_PARENT} | {index: number for number, index in enumerate(outer)}
        tags = []
        for index in outer:
            start, end = projection.spans[index]
            tag = projection.marked.tags[index]
            tags.append(replace(tag, start=start, end=end, open=index, parent=numbers[tag.parent]))
        starts: dict[int, int] = {}
        position, replaced = 0, NO_PARENT
        for event in traverse(MarkedText(projection.text, tuple(_nest(tags)))):
            if event.tag is None:
                position += len(event.text)
                self.text += event.text if replaced == NO_PARENT else ""
                continue
            index = event.tag.open
            following = projection.text[position : position + 1]
            if event.kind == "close":
                self.spans[index] = Span(starts[index], len(self.text))
                if replaced == index:
                    replaced = NO_PARENT
                    self.text += " " * (event.tag.start == event.tag.end and following.isalnum())
                continue
            content = self.inserted.get(index, "")
            if content and event.tag.is_pair:
                is_glued = event.tag.start == event.tag.end and self.text[-1:].strip() != ""
                self.text += " " * is_glued
                replaced = index
            starts[index] = len(self.text)
            if event.kind == "single":
                self.spans[index] = Span(len(self.text), len(self.text))
            self.text += content


def _nest(tags: list[Tag]) -> list[Tag]:
    """Return tags that are cut to the pairs that they are in, and follow each other."""
    nested: list[Tag] = []
    ends: dict[int, int] = {}
    for tag in tags:
        outer = nested[tag.parent] if tag.parent != NO_PARENT else None
        low = max(ends.get(tag.parent, 0), outer.start if outer else 0)
        high = outer.end if outer else None
        start = max(tag.start, low)
        start = start if high is None else min(start, high)
        end = max(tag.end, start)
        end = end if high is None else min(end, high)
        nested.append(replace(tag, start=start, end=end))
        ends[tag.parent] = end
    return nested


def _bare(word: str) -> str:
    return word.strip(PUNCTUATION + OPENERS)


def _is_word(text: str, span: Span) -> bool:
    """Return whether a range is a word, or words, of a text; a Korean particle may follow."""
    first, last = text[span.start], text[span.end - 1]
    before, after = text[span.start - 1 : span.start], text[span.end : span.end + 1]
    if first.isalnum() and before.isalnum():
        return False
    if not (last.isalnum() and after.isalnum()):
        return True
    end = span.end
    while end < min(len(text), span.end + MAX_PARTICLE) and HANGUL_CHARACTERS.match(text[end]):
        end += 1
    return end > span.end and is_particle_suffix(text[span.end : end])
