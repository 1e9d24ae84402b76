"""XML elements with text and inline elements in them, as marked text, and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from attendo.documents.markup import (
    MarkedText,
    MarkupBuilder,
    has_words,
    translated_text,
    traverse,
    trim,
)
from attendo.documents.xml_parts import local_name, shallow_copy
from attendo.text.normalize import INVISIBLE_CHARACTERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Role = Literal["pair", "verbatim", "single", "separator"]
    Classify = Callable[[Any], Role]

MAX_DEPTH = 30


@dataclass
class MixedPiece:
    """A part of an element between separators."""

    marked: MarkedText
    segment: int | None = None
    separator: Any = None
    """The element after it."""
    lead: str = ""
    trail: str = ""


@dataclass
class MixedElement:
    """An element, and the pieces of its content."""

    element: Any
    pieces: list[MixedPiece] = field(default_factory=list)

    def is_changed(self, segments: Sequence[MarkedText], translated: Sequence[MarkedText]) -> bool:
        """Return whether any of its segments has a translation."""
        return any(
            translated[piece.segment] != segments[piece.segment]
            for piece in self.pieces
            if piece.segment is not None
        )

    def rebuild(self, translated: Sequence[MarkedText]) -> None:
        """Replace the content by the translations of its segments."""
        for child in list(self.element):
            self.element.remove(child)
        self.element.text = None
        for piece in self.pieces:
            marked = piece.marked if piece.segment is None else translated[piece.segment]
            append_text(self.element, piece.lead)
            write_mixed(self.element, marked)
            append_text(self.element, piece.trail)
            if piece.separator is not None:
                piece.separator.tail = None
                self.element.append(piece.separator)


def read_mixed(
    element: Any, classify: Classify, segments: list[MarkedText], *, collapse: bool
) -> MixedElement | None:
    """Read the content of an element; return None if nothing in it is translated.

    Separators are only found at the top level; deeper ones are single tags.
    """
    found = MixedElement(element)
    builder = MarkupBuilder(collapse=collapse)
    builder.add_text(element.text or "")
    for child in element:
        if classify(child) == "separator":
            found.pieces.append(MixedPiece(builder.build(), separator=child))
            builder = MarkupBuilder(collapse=collapse)
        else:
            _add(builder, child, classify, 0)
        builder.add_text(child.tail or "")
    found.pieces.append(MixedPiece(builder.build()))
    for piece in found.pieces:
        if has_words(translated_text(piece.marked)):
            piece.lead, piece.marked, piece.trail = trim(piece.marked)
            piece.segment = len(segments)
            segments.append(piece.marked)
    return found if any(piece.segment is not None for piece in found.pieces) else None


def _add(builder: MarkupBuilder, element: Any, classify: Classify, depth: int) -> None:
    role = classify(element) if depth < MAX_DEPTH else "single"
    if role in ("single", "separator") or not local_name(element):
        builder.add_single(element)
        return
    builder.open(element, is_verbatim=role == "verbatim")
    builder.add_text(element.text or "")
    for child in element:
        _add(builder, child, classify, depth + 1)
        builder.add_text(child.tail or "")
    builder.close()


def write_mixed(parent: Any, marked: MarkedText) -> None:
    """Append a marked text to an element."""
    stack = [parent]
    for event in traverse(marked):
        if event.tag is None:
            append_text(stack[-1], event.text)
        elif event.kind == "close":
            stack.pop()
        elif event.kind == "open":
            made = shallow_copy(event.tag.open)
            stack[-1].append(made)
            stack.append(made)
        else:
            event.tag.open.tail = None
            stack[-1].append(event.tag.open)


def append_text(element: Any, text: str) -> None:
    """Append a text to the content of an element."""
    text = INVISIBLE_CHARACTERS.sub("", text) if not text.isprintable() else text
    if not text:
        return
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text
