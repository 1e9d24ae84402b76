"""HTML: the text between the tags is translated, all else stays to the letter.

The page is cut in one pass that takes no longer than the page is: the standard library's parser,
and others, need the square of the length for pages that are made to hurt. Every piece is kept as it
was written; only text that a reader sees is replaced, and escaped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNTRANSLATED_TAGS = frozenset({"code", "kbd", "noscript", "pre", "samp", "svg", "template"})
"""Elements whose text is not for translating."""
RAW_TEXT_TAGS = frozenset({"script", "style", "textarea"})
"""Elements in which no tag begins but their own end; not for translating either."""
VOID_TAGS = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
                  "source", "track", "wbr"})  # fmt: skip
"""Elements without an end."""
TAG_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
TAG_END_OR_QUOTE = re.compile(r""">|=\s*["']""")
TRANSLATE_NO = re.compile(r"""\stranslate\s*=\s*["']?no\b""", re.IGNORECASE)
RAW_TEXT_END = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in RAW_TEXT_TAGS}


@dataclass(frozen=True)
class SegmentedDocument:
    """A page in pieces; those at `places` are text for a reader."""

    segments: tuple[str, ...]
    text_indices: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """What is to be translated, in order, without the blanks around it."""
        return [unescape(self.segments[index].strip()) for index in self.text_indices]

    def replace_texts(self, texts: Sequence[str]) -> str:
        """Give the page with other texts in their places, escaped, the blanks around as before.

        >>> split_page("<p> a &amp; b </p><script>c</script>").put(["<x>"])
        '<p> &lt;x&gt; </p><script>c</script>'
        """
        segments = list(self.segments)
        for index, text in zip(self.text_indices, texts, strict=True):
            segment = segments[index]
            before = segment[: len(segment) - len(segment.lstrip())]
            after = segment[len(segment.rstrip()) :]
            segments[index] = f"{before}{escape(text, quote=False)}{after}"
        return "".join(segments)


def split_html(source: str) -> SegmentedDocument:
    """Cut a page into tags and texts.

    >>> split_page("<b>one</b> <i translate=no>two</i> three").texts
    ['one', 'three']
    """
    segments: list[str] = []
    text_indices: list[int] = []
    for segment, is_text in _mark_translatable(_tokenize_html(source)):
        if is_text and any(letter.isalnum() for letter in unescape(segment)):
            text_indices.append(len(segments))
        segments.append(segment)
    return SegmentedDocument(tuple(segments), tuple(text_indices))


def _mark_translatable(segments: Iterator[tuple[str, str, bool]]) -> Iterator[tuple[str, bool]]:
    """Tell of each piece whether a reader sees it as text; what is in silent elements is none."""
    skipped_tag, depth = "", 0
    for segment, tag, is_end in segments:
        yield segment, not tag and not skipped_tag
        if not tag or tag in VOID_TAGS or segment.endswith("/>"):
            continue
        if tag == skipped_tag:
            depth += -1 if is_end else 1
            skipped_tag = skipped_tag if depth else ""
        elif (
            not skipped_tag
            and not is_end
            and (tag in UNTRANSLATED_TAGS | RAW_TEXT_TAGS or TRANSLATE_NO.search(segment))
        ):
            skipped_tag, depth = tag, 1


def _tokenize_html(source: str) -> Iterator[tuple[str, str, bool]]:
    """Give each piece with its tag, "" for text and "!" for neither; and whether it is an end."""
    start, index = 0, source.find("<")
    while index >= 0:
        end, tag = _find_markup_end(source, index)
        if end < 0:  # never closed: all the rest is text
            break
        if not tag:
            index = source.find("<", end)
            continue
        if start < index:
            yield source[start:index], "", False
        is_end = source.startswith("</", index)
        yield source[index:end], tag, is_end
        start = end
        if tag in RAW_TEXT_TAGS and not is_end and source[end - 2] != "/":
            match = RAW_TEXT_END[tag].search(source, end)
            start = match.start() if match else len(source)
            yield source[end:start], "!", False
        index = source.find("<", start)
    if start < len(source):
        yield source[start:], "", False


def _find_markup_end(source: str, index: int) -> tuple[int, str]:
    """Give where what begins with "<" ends, -1 for nowhere, and its tag; "" where it is none."""
    if source.startswith("<!--", index):
        end = source.find("-->", index + 4)
        return (end + 3, "!") if end >= 0 else (len(source), "!")
    if source.startswith(("<!", "<?"), index):
        end = source.find(">", index)
        return (end + 1, "!") if end >= 0 else (-1, "")
    name = TAG_NAME.match(source, index)
    if name is None:
        return index + 1, ""
    return _find_tag_end(source, name.end()), name[1].lower()


def _find_tag_end(source: str, index: int) -> int:
    """Find the > of a tag; one in a quoted value is none."""
    while match := TAG_END_OR_QUOTE.search(source, index):
        if match[0] == ">":
            return match.end()
        close = source.find(match[0][-1], match.end())
        if close < 0:
            return -1
        index = close + 1
    return -1
