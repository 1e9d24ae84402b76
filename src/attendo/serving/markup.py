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

SILENT = frozenset({"code", "kbd", "noscript", "pre", "samp", "svg", "template"})
"""Elements whose text is not for translating."""
RAW = frozenset({"script", "style", "textarea"})
"""Elements in which no tag begins but their own end; not for translating either."""
VOID = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
                  "source", "track", "wbr"})  # fmt: skip
"""Elements without an end."""
NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
STOP = re.compile(r""">|=\s*["']""")
UNTOUCHABLE = re.compile(r"""\stranslate\s*=\s*["']?no\b""", re.IGNORECASE)
RAW_END = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in RAW}


@dataclass(frozen=True)
class Page:
    """A page in pieces; those at `places` are text for a reader."""

    pieces: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def texts(self) -> list[str]:
        """What is to be translated, in order, without the blanks around it."""
        return [unescape(self.pieces[place].strip()) for place in self.places]

    def put(self, texts: Sequence[str]) -> str:
        """Give the page with other texts in their places, escaped, the blanks around as before.

        >>> split_page("<p> a &amp; b </p><script>c</script>").put(["<x>"])
        '<p> &lt;x&gt; </p><script>c</script>'
        """
        pieces = list(self.pieces)
        for place, text in zip(self.places, texts, strict=True):
            piece = pieces[place]
            before = piece[: len(piece) - len(piece.lstrip())]
            after = piece[len(piece.rstrip()) :]
            pieces[place] = f"{before}{escape(text, quote=False)}{after}"
        return "".join(pieces)


def split_page(source: str) -> Page:
    """Cut a page into tags and texts.

    >>> split_page("<b>one</b> <i translate=no>two</i> three").texts
    ['one', 'three']
    """
    pieces: list[str] = []
    places: list[int] = []
    for piece, is_text in _mark_silent(_cut(source)):
        if is_text and any(letter.isalnum() for letter in unescape(piece)):
            places.append(len(pieces))
        pieces.append(piece)
    return Page(tuple(pieces), tuple(places))


def _mark_silent(pieces: Iterator[tuple[str, str, bool]]) -> Iterator[tuple[str, bool]]:
    """Tell of each piece whether a reader sees it as text; what is in silent elements is none."""
    silent, depth = "", 0
    for piece, tag, is_end in pieces:
        yield piece, not tag and not silent
        if not tag or tag in VOID or piece.endswith("/>"):
            continue
        if tag == silent:
            depth += -1 if is_end else 1
            silent = silent if depth else ""
        elif not silent and not is_end and (tag in SILENT | RAW or UNTOUCHABLE.search(piece)):
            silent, depth = tag, 1


def _cut(source: str) -> Iterator[tuple[str, str, bool]]:
    """Give each piece with its tag, "" for text and "!" for neither; and whether it is an end."""
    begin, place = 0, source.find("<")
    while place >= 0:
        end, tag = _find_end(source, place)
        if end < 0:  # never closed: all the rest is text
            break
        if not tag:
            place = source.find("<", end)
            continue
        if begin < place:
            yield source[begin:place], "", False
        is_end = source.startswith("</", place)
        yield source[place:end], tag, is_end
        begin = end
        if tag in RAW and not is_end and source[end - 2] != "/":
            found = RAW_END[tag].search(source, end)
            begin = found.start() if found else len(source)
            yield source[end:begin], "!", False
        place = source.find("<", begin)
    if begin < len(source):
        yield source[begin:], "", False


def _find_end(source: str, place: int) -> tuple[int, str]:
    """Give where what begins with "<" ends, -1 for nowhere, and its tag; "" where it is none."""
    if source.startswith("<!--", place):
        end = source.find("-->", place + 4)
        return (end + 3, "!") if end >= 0 else (len(source), "!")
    if source.startswith(("<!", "<?"), place):
        end = source.find(">", place)
        return (end + 1, "!") if end >= 0 else (-1, "")
    name = NAME.match(source, place)
    if name is None:
        return place + 1, ""
    return _find_tag_end(source, name.end()), name[1].lower()


def _find_tag_end(source: str, place: int) -> int:
    """Find the > of a tag; one in a quoted value is none."""
    while found := STOP.search(source, place):
        if found[0] == ">":
            return found.end()
        close = source.find(found[0][-1], found.end())
        if close < 0:
            return -1
        place = close + 1
    return -1
