"""Books (.epub): every page is translated as HTML; the table of contents too."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.archive import Archive
from attendo.documents.document import TextDocument
from attendo.documents.encoding import decode_file
from attendo.documents.html import read_html, render_html, unescape
from attendo.documents.inline import read_message
from attendo.documents.markup import has_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.documents.formats import ReadOptions
    from attendo.documents.markup import MarkedText

PAGE = re.compile(r".+\.(xhtml|html|htm)", re.IGNORECASE)
CONTENTS = re.compile(r".+\.ncx", re.IGNORECASE)
PACKAGE = re.compile(r".+\.opf", re.IGNORECASE)
LABEL = re.compile(r"(<(?:\w+:)?text>)([^<]*)(</(?:\w+:)?text>)")
TITLE = re.compile(r"(<dc:title\b[^<>]{0,200}>)([^<]*)(</dc:title>)")
LANGUAGE = re.compile(r"(<dc:language\b[^<>]{0,200}>)([^<]*)(</dc:language>)")


class Book:
    """An EPUB book."""

    def __init__(self, archive: Archive, target: str | None) -> None:
        self.archive = archive
        self.notes: list[str] = []
        self.pages: dict[str, TextDocument] = {}
        if "META-INF/container.xml" not in archive.names:
            raise InputError(
                "the file is damaged, or of another format", hint="open and save it again"
            )
        if "META-INF/encryption.xml" in archive.names:
            self.notes.append(message("the book may be protected: encrypted parts are kept"))
        for name in archive.names:
            if PAGE.fullmatch(name):
                text = decode_file(archive.read(name), is_html=True)
                self.pages[name] = read_html(text, target)
            elif CONTENTS.fullmatch(name):
                self.pages[name] = _read_contents(decode_file(archive.read(name), is_html=True))
            elif PACKAGE.fullmatch(name) and target is not None:
                self.pages[name] = _read_package(
                    decode_file(archive.read(name), is_html=True), target
                )
        self.segments: list[MarkedText] = [
            segment for page in self.pages.values() for segment in page.segments
        ]
        self.notes += dict.fromkeys(note for page in self.pages.values() for note in page.notes)
        if any(re.search(r"\.(png|jpe?g|gif|svg|webp)$", name) for name in archive.names):
            self.notes.append(message("text in pictures and embedded files is not translated"))

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Return the book; pages without a changed text keep their bytes."""
        changed: dict[str, bytes] = {}
        start = 0
        for name, page in self.pages.items():
            end = start + len(page.segments)
            made = page.write_text(translated[start:end])
            if made != page.source:
                changed[name] = made.encode()
            start = end
        return self.archive.write(changed)


def read_epub(content: bytes, options: ReadOptions) -> Book:
    """Read a book."""
    return Book(Archive(content, options.max_unpacked_bytes), options.target)


def _read_contents(source: str) -> TextDocument:
    """Read the labels of a table of contents (EPUB 2)."""
    return _read_elements(source, LABEL)


def _read_elements(source: str, pattern: re.Pattern[str]) -> TextDocument:
    """Read the texts of some elements."""
    document = TextDocument(source)
    for found in pattern.finditer(source):
        _, marked, _ = read_message(unescape(found[2]))
        if has_words(marked.text) and not marked.tags:
            document.add(*found.span(2), marked, render_html)
    return document


def _read_package(source: str, target: str) -> TextDocument:
    """Read the title of the book, and name the language of the translation."""
    document = _read_elements(source, TITLE)
    for found in LANGUAGE.finditer(source):
        document.fixed.append((*found.span(2), escape(target)))
    return document
