"""What the readers of all formats return: the segments of a document, and how it is written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.documents.markup import MarkedText


class Document(Protocol):
    """A document that was read."""

    segments: list[MarkedText]
    """What is translated, in order: a paragraph, a cell, a message."""
    notes: list[str]
    """What is not translated, or not kept."""

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Return the document with translated segments; an unchanged segment keeps its bytes.

        The same object as in `segments` is a segment that is not translated: a format with both
        languages then has no translation of it.
        """


class Edit(NamedTuple):
    """A part of a text that is replaced."""

    start: int
    end: int
    render: Callable[[MarkedText], str]


@dataclass
class TextDocument:
    """A document in a text format: the segments are ranges of it, and the rest stays as it is."""

    source: str
    segments: list[MarkedText] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    """One per segment, in order."""
    fixed: list[tuple[int, int, str]] = field(default_factory=list)
    """Ranges with a new text that is not a translation, such as the name of the language."""
    on_change: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    """By segment: a range that gets a new text when the segment is translated, such as flags."""
    notes: list[str] = field(default_factory=list)
    bom: bool = False
    is_bilingual: bool = False
    """Whether the source is kept too: a translation is written even if it equals its source."""

    def add(
        self, start: int, end: int, marked: MarkedText, render: Callable[[MarkedText], str]
    ) -> None:
        """Add a segment."""
        self.segments.append(marked)
        self.edits.append(Edit(start, end, render))

    def write_text(self, translated: Sequence[MarkedText]) -> str:
        """Return the text of the translated document."""
        changes = list(self.fixed)
        pairs = zip(self.edits, self.segments, translated, strict=True)
        for index, (edit, before, after) in enumerate(pairs):
            if after != before or (self.is_bilingual and after is not before):
                changes.append((edit.start, edit.end, edit.render(after)))
                if index in self.on_change:
                    changes.append(self.on_change[index])
        parts, end = [], 0
        for start, stop, text in sorted(changes, key=lambda one: one[:2]):
            if start < end:
                continue  # in a range that was replaced
            parts += [self.source[end:start], text]
            end = stop
        return "".join([*parts, self.source[end:]])

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Return the translated document in UTF-8."""
        return self.write_text(translated).encode("utf-8-sig" if self.bom else "utf-8")
