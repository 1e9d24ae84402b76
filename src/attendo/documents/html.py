"""HTML: blocks are translated with the inline tags in them; everything else is kept verbatim.

The document is split in one linear pass. The parser of the standard library, among others, takes
quadratic time on malicious input.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from html import escape
from html import unescape as unescape_references
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.message import message
from attendo.documents.document import TextDocument
from attendo.documents.markup import MarkedText, MarkupBuilder, has_words, render, trim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INLINE_TAGS = frozenset({"a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "data", "del",
                         "dfn", "em", "font", "i", "img", "ins", "label", "mark", "q", "s",
                         "small", "span", "strike", "strong", "sub", "sup", "time", "tt", "u",
                         "wbr"})  # fmt: skip
"""Elements within a sentence; every other one, also <br>, separates sentences."""
VERBATIM_TAGS = frozenset({"code", "kbd", "samp", "var"})
"""Elements within a sentence whose text is not translated."""
SENTENCE_TAGS = INLINE_TAGS | VERBATIM_TAGS
UNTRANSLATED_TAGS = frozenset({"noscript", "pre", "svg", "template", "math"})
"""Elements whose text is not translated."""
RAW_TEXT_TAGS = frozenset({"script", "style", "textarea"})
"""Elements that contain no tags except their own end tag; not translated either."""
VOID_TAGS = frozenset({"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
                  "source", "track", "wbr"})  # fmt: skip
"""Elements without an end tag."""
TAG_NAME = re.compile(r"</?([a-zA-Z][^\s/>]*)")
TAG_END_OR_QUOTE = re.compile(r""">|=\s*["']""")
ATTRIBUTE = re.compile(
    r"""\s(?:alt|title|placeholder|aria-label)\s*+=\s*+("[^"]*+"|'[^']*+')""", re.IGNORECASE
)
"""An attribute that readers see or hear."""
DESCRIPTION = re.compile(r"""\sname\s*+=\s*+["']?description\b""", re.IGNORECASE)
CONTENT = re.compile(r"""\scontent\s*+=\s*+("[^"]*+"|'[^']*+')""", re.IGNORECASE)
TRANSLATE_NO = re.compile(r"""\stranslate\s*=\s*["']?no\b""", re.IGNORECASE)
NUMBER_REFERENCE = re.compile(r"&#0*([0-9]{1,8})[0-9]*")
"""Eight digits name no character any more."""
RAW_TEXT_END = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in RAW_TEXT_TAGS}
SPACE = " \t\r\n\f\v"
MAX_INLINE_DEPTH = 30
LANG_ATTRIBUTE = re.compile(
    r"""(\s(?:xml:)?lang\s*=\s*)("[^"]*"|'[^']*'|[^\s>"']+)""", re.IGNORECASE
)
UTF_8_TAG = '<meta charset="utf-8">'
XML_ENCODING = re.compile(r"""(\bencoding\s*+=\s*+["']\s*+)[\w.:-]+""", re.IGNORECASE)
CHARSET_VALUE = re.compile(r"""(\bcharset\s*+=\s*+["']?+\s*+)[\w.:-]+""", re.IGNORECASE)


class Token(NamedTuple):
    """A part of the source: text, or one tag or comment."""

    start: int
    end: int
    text: str
    tag: str
    """The name of a tag, "" for text, "!" for other markup."""
    is_end: bool

    @property
    def is_void(self) -> bool:
        """Whether the tag has no end tag."""
        return self.tag in VOID_TAGS or self.text.endswith("/>")

    @property
    def is_inline(self) -> bool:
        """Whether the token may be within a sentence."""
        return not self.tag or self.tag in SENTENCE_TAGS


def read_html(source: str, target: str | None = None) -> TextDocument:
    """Read a page; with a target language, its tags name that language, and UTF-8.

    >>> page = read_html("<p>one <b>two</b></p> <i translate=no>three</i><p>four", "de")
    >>> [segment.text for segment in page.segments]
    ['one two', 'four']
    """
    document = TextDocument(source)
    run: list[Token] = []
    labels: list[Token] = []
    tags: list[Token] = []
    for token, is_translated in _mark_translatable(_tokens(source)):
        if _is_label(token):
            labels.append(token)
        if is_translated and token.tag and not token.is_end:
            tags.append(token)
        if is_translated and token.is_inline:
            run.append(token)
        elif run:
            _add_run(document, run)
            run = []
    _add_run(document, run)
    _add_attributes(document, tags)
    if target is not None:
        document.fixed += _relabel(labels, target)
    return document


def render_html(marked: MarkedText) -> str:
    """Return a marked text as HTML: the text is escaped, its tags are those of the source."""
    return render(marked, lambda text: escape(text, quote=False))


def unescape(text: str) -> str:
    """Replace references to characters; the standard library fails for numbers of many digits.

    >>> unescape("&lt;&#0065;" + "&#" + "9" * 5000)
    '<A\ufffd'
    """
    return unescape_references(NUMBER_REFERENCE.sub(r"&#\1", text))


def _tokens(source: str) -> Iterator[Token]:
    position = 0
    for text, tag, is_end in _tokenize_html(source):
        yield Token(position, position + len(text), text, tag, is_end)
        position += len(text)


def _mark_translatable(tokens: Iterator[Token]) -> Iterator[tuple[Token, bool]]:
    """Yield each token and whether it is translatable, or in a sentence that is."""
    skipped_tag, depth = "", 0
    for token in tokens:
        is_skipped = bool(skipped_tag)
        tag = token.tag
        if tag and tag not in VOID_TAGS and not token.text.endswith("/>"):
            if tag == skipped_tag:
                depth += -1 if token.is_end else 1
                skipped_tag = skipped_tag if depth else ""
            elif (
                not skipped_tag
                and not token.is_end
                and (
                    tag in UNTRANSLATED_TAGS | RAW_TEXT_TAGS
                    or (TRANSLATE_NO.search(token.text) and not token.is_inline)
                )
            ):
                skipped_tag, depth, is_skipped = tag, 1, True
        yield token, not is_skipped and tag != "!"


def _add_run(document: TextDocument, run: Sequence[Token]) -> None:
    """Add the sentences of adjacent tokens; a tag whose partner is elsewhere separates them."""
    parts = _split_unmatched(run)
    for part in parts:
        again = _split_unmatched(part)
        # The partner of a tag may be beyond another separator.
        for one in again if len(again) == 1 else [[token] for token in part if not token.tag]:
            _add_segment(document, one)


def _split_unmatched(run: Sequence[Token]) -> list[Sequence[Token]]:
    partners = _match(run)
    parts: list[Sequence[Token]] = []
    start = 0
    for index, token in enumerate(run):
        if token.tag and not token.is_void and index not in partners:
            parts.append(run[start:index])
            start = index + 1
    return [*parts, run[start:]]


def _match(run: Sequence[Token]) -> dict[int, int]:
    """Return the partner of each tag that has one; pairs are nested, and not too deeply."""
    partners: dict[int, int] = {}
    stack: list[int] = []
    for index, token in enumerate(run):
        if not token.tag or token.is_void:
            continue
        if not token.is_end:
            stack.append(index)
            if len(stack) > MAX_INLINE_DEPTH:
                stack.pop(0)
        elif stack and run[stack[-1]].tag == token.tag:
            begin = stack.pop()
            partners |= {begin: index, index: begin}
        elif stack:
            stack.clear()  # wrongly nested: what is open has no partner
    return partners


def _add_segment(document: TextDocument, run: Sequence[Token]) -> None:
    """Add one segment, without the tags around all of its text."""
    kept = _peel(run)
    if not kept:
        return
    marked = _mark(kept)
    if marked is not None:
        first, last = kept[0], kept[-1]
        lead = 0 if first.tag else len(first.text) - len(first.text.lstrip(SPACE))
        trail = 0 if last.tag else len(last.text) - len(last.text.rstrip(SPACE))
        document.add(first.start + lead, last.end - trail, marked, render_html)


def _add_attributes(document: TextDocument, tags: Sequence[Token]) -> None:
    """Add the attributes that readers see; those of tags within a sentence stay, with a note."""
    sentences = sorted((edit.start, edit.end) for edit in document.edits)
    starts = [start for start, _ in sentences]
    has_kept = False
    for token in tags:
        if TRANSLATE_NO.search(token.text):
            continue
        is_description = token.tag == "meta" and DESCRIPTION.search(token.text)
        for found in (CONTENT if is_description else ATTRIBUTE).finditer(token.text):
            start, end = found.start(1) + 1, found.end(1) - 1
            marked = _read_attribute(token.text[start:end])
            if marked is None:
                continue
            index = bisect_right(starts, token.start) - 1
            if index >= 0 and token.start < sentences[index][1]:
                has_kept = True
            else:
                document.add(token.start + start, token.start + end, marked, _render_attribute)
    if has_kept:
        document.notes.append(
            message("attributes of tags within sentences are not translated: alt, title ...")
        )


def _read_attribute(value: str) -> MarkedText | None:
    builder = MarkupBuilder(collapse=True)
    builder.add_text(unescape(value))
    marked = trim(builder.build())[1]
    return marked if has_words(marked.text) else None


def _render_attribute(marked: MarkedText) -> str:
    return escape(marked.text, quote=True)


def _peel(run: Sequence[Token]) -> Sequence[Token]:
    """Return tokens without white space, single tags and pairs that are around all others."""
    partners = _match(run)
    first, last = 0, len(run) - 1
    while first <= last:
        if _is_blank(run[first]) and (not run[first].tag or run[first].is_void):
            first += 1
        elif _is_blank(run[last]) and (not run[last].tag or run[last].is_void):
            last -= 1
        elif partners.get(first) == last and not _is_verbatim(run[first]):
            first, last = first + 1, last - 1
        else:
            break
    return run[first : last + 1]


def _mark(tokens: Sequence[Token]) -> MarkedText | None:
    """Return the text and the tags of tokens; None if nothing in them is translated."""
    builder = MarkupBuilder(collapse=True)
    num_verbatim = 0
    is_translated = False
    for token in tokens:
        if not token.tag:
            text = unescape(token.text)
            builder.add_text(text)
            is_translated = is_translated or (not num_verbatim and has_words(text))
        elif token.is_void:
            builder.add_single(token.text)
        elif token.is_end:
            builder.close(token.text)
            num_verbatim -= bool(num_verbatim)
        else:
            is_verbatim = _is_verbatim(token)
            num_verbatim += is_verbatim or bool(num_verbatim)
            builder.open(token.text, is_verbatim=is_verbatim)
    return trim(builder.build())[1] if is_translated else None


def _is_blank(token: Token) -> bool:
    return bool(token.tag) or not token.text.strip(SPACE)


def _is_verbatim(token: Token) -> bool:
    return token.tag in VERBATIM_TAGS or bool(token.tag and TRANSLATE_NO.search(token.text))


def _is_label(token: Token) -> bool:
    """Return whether a token may name the language or the encoding of a page, or where they go."""
    is_declaration = token.tag == "!" and token.text.startswith("<?xml")
    return is_declaration or (token.tag in ("html", "head", "meta") and not token.is_end)


def _relabel(labels: Sequence[Token], lang: str) -> list[tuple[int, int, str]]:
    """Return the tags that change; UTF-8 is named after <head> or <html> if no tag names it."""
    texts = [_relabel_tag(token, lang) for token in labels]
    is_named = any(token.tag == "meta" and CHARSET_VALUE.search(token.text) for token in labels)
    is_xml = any("xmlns" in one.text or one.text.startswith("<?xml") for one in labels)
    if not is_named and not is_xml:  # XML is UTF-8, and a <meta> without an end is not XML
        tags = [token.tag for token in labels]
        before = next((name for name in ("head", "html") if name in tags), None)
        if before is not None:  # a part of a page has neither
            texts[tags.index(before)] += UTF_8_TAG
    return [
        (token.start, token.end, text)
        for token, text in zip(labels, texts, strict=True)
        if text != token.text
    ]


def _relabel_tag(token: Token, lang: str) -> str:
    tag = token.text
    if token.tag == "html":
        value = escape(lang)
        relabelled, count = LANG_ATTRIBUTE.subn(lambda match: f'{match[1]}"{value}"', tag)
        return relabelled if count else f'{tag[:5]} lang="{value}"{tag[5:]}'
    if token.tag == "meta":
        return CHARSET_VALUE.sub(r"\1utf-8", tag)
    return XML_ENCODING.sub(r"\1utf-8", tag) if token.tag == "!" else tag


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
