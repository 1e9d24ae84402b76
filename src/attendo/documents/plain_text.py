"""Plain text: every line is a segment; line breaks and the white space around a line are kept."""

from __future__ import annotations

from attendo.documents.document import TextDocument
from attendo.documents.markup import MarkedText, has_words


def read_plain_text(source: str) -> TextDocument:
    r"""Read a plain text.

    >>> [segment.text for segment in read_plain_text("one\n\n  two\n").segments]
    ['one', 'two']
    """
    document = TextDocument(source)
    start = 0
    for line in source.splitlines(keepends=True):
        text = line.strip()
        if has_words(text):
            begin = start + line.index(text)
            document.add(begin, begin + len(text), MarkedText(text), render_line)
        start += len(line)
    return document


def render_line(marked: MarkedText) -> str:
    """Return a text on one line."""
    return " ".join(marked.text.split("\n"))
