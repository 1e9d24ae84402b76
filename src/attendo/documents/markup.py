"""Text with inline tags: what every document format is read into, and written from.

The tags form a tree. `Tag.open` and `Tag.close` belong to the format: strings in text formats, XML
elements in others. Everything here, and the projection onto a translation, works on positions only,
so that the result is well-formed in every format.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

NO_PARENT = -1
WHITE_SPACE = re.compile(r"[ \t\r\n\f\v]+")
"""Without the no-break space, which is part of a text."""


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag at `start`, or a pair of tags around `text[start:end]`."""

    start: int
    end: int
    open: Any
    close: Any = None
    is_pair: bool = True
    is_verbatim: bool = False
    """Whether the text in it, for example a file name or code, is not translated."""
    parent: int = NO_PARENT
    """The index of the pair that it is in."""

    def moved(self, offset: int, num_tags: int) -> Tag:
        """Return the tag in a text with `offset` more characters and `num_tags` tags before it."""
        parent = self.parent + (num_tags if self.parent != NO_PARENT else 0)
        return replace(self, start=self.start + offset, end=self.end + offset, parent=parent)


class MarkedText(NamedTuple):
    """A text, and its tags in the order of the document: a pair before what is in it."""

    text: str
    tags: tuple[Tag, ...] = ()


class Event(NamedTuple):
    """A part of a marked text: a piece of text, or a tag."""

    kind: Literal["text", "open", "close", "single"]
    text: str
    tag: Tag | None


def traverse(marked: MarkedText) -> Iterator[Event]:
    """Yield the pieces of text and the tags in order; every pair that is opened is closed."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    for index, tag in enumerate(marked.tags):
        children[tag.parent].append(index)
    position = 0
    stack = [(NO_PARENT, iter(children[NO_PARENT]))]
    while stack:
        index, remaining = stack[-1]
        child = next(remaining, None)
        if child is None:
            end = len(marked.text) if index == NO_PARENT else marked.tags[index].end
        else:
            end = marked.tags[child].start
        if position < end:
            yield Event("text", marked.text[position:end], None)
            position = end
        if child is not None:
            tag = marked.tags[child]
            yield Event("open" if tag.is_pair else "single", "", tag)
            if tag.is_pair:
                stack.append((child, iter(children[child])))
        else:
            stack.pop()
            if index != NO_PARENT:
                yield Event("close", "", marked.tags[index])


def render(marked: MarkedText, escape: Callable[[str], str] = str) -> str:
    """Return a marked text whose tags are strings.

    >>> render(MarkedText("a b", (Tag(2, 3, "<b>", "</b>"),)))
    'a <b>b</b>'
    """
    parts = []
    for event in traverse(marked):
        if event.tag is None:
            parts.append(escape(event.text))
        else:
            parts.append(str(event.tag.close if event.kind == "close" else event.tag.open))
    return "".join(parts)


class MarkupBuilder:
    """Builds a marked text from its pieces in order.

    Args:
        collapse: replace white space by single spaces, as in HTML.

    """

    def __init__(self, *, collapse: bool = False) -> None:
        self._collapse = collapse
        self._parts: list[str] = []
        self._length = 0
        self._tags: list[Tag] = []
        self._open: list[int] = []
        self._after_single = False

    def add_text(self, text: str) -> None:
        """Append a piece of text."""
        if self._collapse:
            text = WHITE_SPACE.sub(" ", text)
            is_spaced = not self._parts or self._parts[-1].endswith(" ")
            if text.startswith(" ") and is_spaced and not self._after_single:
                text = text[1:]
        if text:
            self._after_single = False
            self._parts.append(text)
            self._length += len(text)

    def add_single(self, tag: Any) -> None:
        """Append a tag without content."""
        self._after_single = True
        self._add(Tag(self._length, self._length, tag, is_pair=False, parent=self._parent))

    def open(self, tag: Any, *, is_verbatim: bool = False) -> None:
        """Begin a pair."""
        index = len(self._tags)
        self._add(Tag(self._length, -1, tag, is_verbatim=is_verbatim, parent=self._parent))
        self._open.append(index)

    def close(self, tag: Any = None) -> None:
        """End the pair that was begun last."""
        index = self._open.pop()
        self._tags[index] = replace(self._tags[index], end=self._length, close=tag)

    def build(self) -> MarkedText:
        """Return the marked text."""
        while self._open:
            self.close()
        return MarkedText("".join(self._parts), tuple(self._tags))

    @property
    def _parent(self) -> int:
        return self._open[-1] if self._open else NO_PARENT

    def _add(self, tag: Tag) -> None:
        self._tags.append(tag)


def has_words(text: str) -> bool:
    """Return whether a text has anything to translate."""
    return any(letter.isalpha() for letter in text)


def translated_text(marked: MarkedText) -> str:
    """Return a text without its verbatim parts."""
    kept, end = "", 0
    for tag in marked.tags:
        if tag.is_verbatim and tag.start >= end:
            kept += marked.text[end : tag.start]
            end = tag.end
    return kept + marked.text[end:]


def split_marked(marked: MarkedText, positions: Sequence[int]) -> list[MarkedText]:
    """Split a marked text at positions; a pair that is cut is closed, and opened again.

    >>> parts = split_marked(MarkedText("ab", (Tag(0, 2, "<i>", "</i>"),)), [1])
    >>> [render(part) for part in parts]
    ['<i>a</i>', '<i>b</i>']
    """
    parts = []
    ends = [*positions, len(marked.text)]
    for start, end in zip([0, *positions], ends, strict=True):
        is_last = end == len(marked.text)
        kept: dict[int, int] = {NO_PARENT: NO_PARENT}
        tags: list[Tag] = []
        for index, tag in enumerate(marked.tags):
            if not _is_in_part(tag, start, end, is_last=is_last):
                continue
            kept[index] = len(tags)
            tags.append(
                replace(
                    tag,
                    start=min(max(tag.start, start), end) - start,
                    end=min(max(tag.end, start), end) - start,
                    parent=kept.get(tag.parent, NO_PARENT),
                )
            )
        parts.append(MarkedText(marked.text[start:end], tuple(tags)))
    return parts


def _is_in_part(tag: Tag, start: int, end: int, *, is_last: bool) -> bool:
    if tag.start == tag.end:
        return start <= tag.start < end or (is_last and tag.start == end)
    return tag.start < end and tag.end > start


def trim(marked: MarkedText) -> tuple[str, MarkedText, str]:
    """Return the white space before a text, the text without it, and the white space after it."""
    text = marked.text.strip()
    lead = len(marked.text) - len(marked.text.lstrip())
    tags = tuple(
        replace(
            tag,
            start=min(max(tag.start - lead, 0), len(text)),
            end=min(max(tag.end - lead, 0), len(text)),
        )
        for tag in marked.tags
    )
    trail = marked.text[lead + len(text) :]
    return marked.text[:lead], MarkedText(text, tags), trail
