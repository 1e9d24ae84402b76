"""OpenDocument texts (.odt): paragraphs and headings are translated, with their spans and links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.archive import Archive
from attendo.documents.mixed_content import MixedElement, read_mixed
from attendo.documents.xml_parts import local_name, parse_xml, write_xml

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.documents.formats import ReadOptions
    from attendo.documents.markup import MarkedText
    from attendo.documents.mixed_content import Role

TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
PARTS = ("content.xml", "styles.xml")
"""The second one has the headers and footers."""
PARAGRAPHS = (f"{{{TEXT}}}p", f"{{{TEXT}}}h")
SKIPPED = frozenset({"tracked-changes", "table-of-content", "alphabetical-index", "user-index",
                     "illustration-index", "table-index", "object-index"})  # fmt: skip
PAIRS = frozenset({"span", "a", "ruby-base"})
SEPARATORS = frozenset({"tab", "line-break"})


class OpenDocument:
    """An OpenDocument text."""

    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.segments: list[MarkedText] = []
        self.notes: list[str] = []
        self.roots: dict[str, tuple[Any, bytes]] = {}
        self.elements: list[tuple[str, MixedElement]] = []
        has_index = False
        for name in PARTS:
            if name not in archive.names:
                continue
            content = archive.read(name)
            root = parse_xml(content)
            self.roots[name] = root, content
            for element in root.iter(*PARAGRAPHS):
                skipped = {local_name(one) for one in element.iterancestors()} & SKIPPED
                has_index = has_index or bool(skipped - {"tracked-changes"})
                if skipped:
                    continue
                found = read_mixed(element, _classify, self.segments, collapse=True)
                if found is not None:
                    self.elements.append((name, found))
        if "content.xml" not in self.roots:
            raise InputError(
                "the file is damaged, or of another format", hint="open and save it again"
            )
        if has_index:
            self.notes.append(
                message(
                    "tables of contents and indexes are kept: update them in the word processor"
                )
            )
        if any(name.startswith(("Pictures/", "Object ")) for name in archive.names):
            self.notes.append(message("text in pictures and embedded files is not translated"))

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Return the document; parts without a changed paragraph keep their bytes."""
        changed = set()
        for name, element in self.elements:
            if element.is_changed(self.segments, translated):
                changed.add(name)
                element.rebuild(translated)
        return self.archive.write({name: write_xml(*self.roots[name]) for name in changed})


def read_opendocument(content: bytes, options: ReadOptions) -> OpenDocument:
    """Read an OpenDocument text."""
    return OpenDocument(Archive(content, options.max_unpacked_bytes))


def _classify(element: Any) -> Role:
    name = local_name(element)
    if name in PAIRS:
        return "pair"
    return "separator" if name in SEPARATORS else "single"
