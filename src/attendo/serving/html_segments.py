"""Splits HTML into segments: visible text is translated, everything else is kept verbatim.

The document is split in one linear pass. The parser of the standard library, among others, takes
quadratic time on malicious input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UNTRANSLATED_TAGS = frozenset({"code", "kbd", "noscript", "pre", "samp", "svg", "template"})
"""Elements whose text is not translated."""
RAW_TEXT_TAGS = frozenset({"script", "style", "textarea"})
"""Elements that contain no tags except their own end tag; not translated either."""
VOID_TAGS = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
                  "source", "track", "wbr"})  # fmt: skip
"""Elements without an end tag."""
TAG_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
TAG_END_OR_QUOTE = re.compile(r""">|=\s*["']""")
TRANSLATE_NO = re.compile(r"""\stranslate\s*=\s*["']?no\b""", re.IGNORECASE)
RAW_TEXT_END = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in RAW_TEXT_TAGS}


@dataclass(frozen=True)
class SegmentedDocument:
    """A document in segments; those at `text_indices` are visible text."""

    segments: tuple[str, ...]
    text_indices: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """The texts to translate, in order, without surrounding white space."""
        return [unescape(self.segments[index].strip()) for index in self.text_indices]

    def replace_texts(self, texts: Sequence[str]) -> str:
        """Return the document with the texts replaced and escaped; white space around them is kept.

        >>> split_html("<p> a &amp; b </p><script>c</script>").replace_texts(["<x>"])
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
    """Split a document into tags and texts.

    >>> split_html("<b>one</b> <i translate=no>two</i> three").texts
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
    """Yield each segment and whether it is translatable text."""
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
    """Yield (segment, tag, is_end_tag); the tag is "" for text and "!" for other markup."""
    start, index = 0, source.find("<")
    while index >= 0:
        end, tag = _find_markup_end(source, index)
        if end < 0:  # never closed: the rest is text
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
    """Return the end of the markup at `index` (-1 if unclosed) and its tag ("" if not markup)."""
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
    """Return the index after the ">" of a tag, skipping quoted values; -1 if unclosed."""
    while match := TAG_END_OR_QUOTE.search(source, index):
        if match[0] == ">":
            return match.end()
        close = source.find(match[0][-1], match.end())
        if close < 0:
            return -1
        index = close + 1
    return -1
