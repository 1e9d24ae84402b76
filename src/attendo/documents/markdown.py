"""Markdown: paragraphs, headings, list items and table cells are translated; the rest is kept.

markdown-it-py finds the blocks (CommonMark and tables). The inline markup is read here, by
position: emphasis, links and code become tags, and what is not translated keeps its bytes. A
translated paragraph is one line.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.core.errors import MissingExtraError
from attendo.core.message import message
from attendo.documents.document import TextDocument
from attendo.documents.html import read_html
from attendo.documents.markup import MarkupBuilder, has_words, translated_text, traverse, trim

if TYPE_CHECKING:
    from attendo.documents.markup import MarkedText

FRONT_MATTER = re.compile(r"---[ \t]*\r?\n.*?\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)
DEFINITION = re.compile(r"\[[^\]\n]{1,200}\]:\s")
LITERAL = re.compile(
    r"(?P<escape>\\[!-/:-@\[-`{-~])"
    r"|(?P<code>(?P<ticks>`{1,4})(?!`)(?:(?!(?P=ticks)).){1,2000}?(?P=ticks)(?!`))"
    r"|(?P<image>!\[[^\]\n]{0,500}\]\([^()\s]{0,2000}(?:\s\"[^\"\n]{0,500}\")?\))"
    r"|(?P<auto><(?:[a-z][a-z0-9+.-]{1,20}:[^<>\s]{1,2000}|[^<>\s@]{1,100}@[^<>\s]{1,200})>)"
    r"|(?P<html></?[A-Za-z][\w-]{0,40}(?:\s[^<>]{0,2000})?/?>|<!--.{0,2000}?-->)"
    r"|(?P<note>\[\^[^\]\s]{1,100}\])"
    r"|(?P<target>\]\([^()\s]{0,2000}(?:\([^()\s]{0,200}\)[^()\s]{0,200})?(?:\s\"[^\"\n]{0,500}\")?\)"
    r"|\]\[[^\[\]\n]{0,200}\])"
    r"|(?P<bracket>\[)"
    r"|(?P<mark>\*{1,3}|_{1,3}|~~)",
    re.DOTALL,
)
ESCAPED = re.compile(r"(?<!\w)[*_`]|[*`\[\]<\\]")
LINE_START = re.compile(r"(?=#{1,6}\s|[-+>]\s|={2,}|\|)")
MAX_SEARCHED = 20
"""Open marks in which the partner of a closing one is searched."""


def read_markdown(source: str) -> TextDocument:
    r"""Read a Markdown document.

    >>> document = read_markdown("# Title\n\nSome *nice*\ntext.\n\n    code\n")
    >>> [render_markdown(segment) for segment in document.segments]
    ['Title', 'Some *nice* text.']
    """
    try:
        markdown_it = import_module("markdown_it")
    except ImportError:
        raise MissingExtraError("markdown-it-py", "documents") from None
    parser = markdown_it.MarkdownIt("commonmark").enable("table")
    parser.disable(["inline", "reference"])
    document = TextDocument(source)
    front = FRONT_MATTER.match(source)
    skipped = front.end() if front else 0
    body = source[skipped:]
    reader = _Blocks(document, body, skipped)
    for token in parser.parse(body.replace("\x00", "\ufffd")):
        reader.add(token)
    if front:
        document.notes.append(message("the front matter is not translated"))
    if reader.num_lost:
        document.notes.append(message("{count} blocks are not translated", count=reader.num_lost))
    return document


class _Blocks:
    """Finds the text of the blocks in the source, which they give without its line prefixes."""

    def __init__(self, document: TextDocument, body: str, offset: int) -> None:
        self.document, self.offset = document, offset
        self.lines = re.split(r"(?<=\n)", body.replace("\r\n", " \n").replace("\r", "\n"))
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))
        self.body = body
        self.cursor = 0
        """Cells of a table are on the same line, one after another."""
        self.num_lost = 0

    def add(self, token: Any) -> None:
        """Add what is translated of a block."""
        if token.type == "html_block" and token.map:
            start, end = self.starts[token.map[0]], self.starts[token.map[1]]
            self._add_html(start, end)
        elif token.type == "inline" and token.map and has_words(token.content):
            self._add_text(token.content, token.map[0])

    def _add_html(self, start: int, end: int) -> None:
        page = read_html(self.body[start:end])
        for segment, edit in zip(page.segments, page.edits, strict=True):
            base = self.offset + start
            self.document.add(base + edit.start, base + edit.end, segment, edit.render)
        self.cursor = max(self.cursor, end)

    def _add_text(self, content: str, line: int) -> None:
        """Find the lines of a block; each may have a prefix such as "> "."""
        start = end = -1
        position = max(self.starts[line], self.cursor)
        for part in content.split("\n"):
            text = part.strip()
            if not text:
                continue
            found = self.body.find(text, position)
            limit = self.starts[min(line + 1, len(self.starts) - 1)]
            if found < 0 or found >= limit:
                self.num_lost += 1
                return
            start = found if start < 0 else start
            end = position = found + len(text)
            line += 1
        self.cursor = end
        if DEFINITION.match(content):
            return
        marked = read_inline(content)
        if has_words(translated_text(marked)):
            self.document.add(self.offset + start, self.offset + end, marked, render_markdown)


def read_inline(content: str) -> MarkedText:
    """Read inline markup.

    >>> marked = read_inline("See [the *guide*](a.md) or `ls`.")
    >>> marked.text
    'See the guide or ls.'
    >>> render_markdown(marked)
    'See [the *guide*](a.md) or `ls`.'
    """
    tokens = list(LITERAL.finditer(content))
    partners = _match(content, tokens)
    builder = MarkupBuilder(collapse=True)
    position = 0
    for index, found in enumerate(tokens):
        builder.add_text(content[position : found.start()])
        position = found.end()
        text = found[0]
        if index in partners:
            if partners[index] > index:
                builder.open(text)
            else:
                builder.close(text)
        elif found["escape"]:
            builder.add_text(text[1:])
        elif found["code"]:
            ticks = found["ticks"]
            builder.open(ticks, is_verbatim=True)
            builder.add_text(text[len(ticks) : -len(ticks)])
            builder.close(ticks)
        elif found["image"] or found["html"] or found["note"]:
            builder.add_single(text)
        elif found["auto"]:
            builder.open("<", is_verbatim=True)
            builder.add_text(text[1:-1])
            builder.close(">")
        else:  # a mark that is not one
            builder.add_text(text)
    builder.add_text(content[position:])
    return trim(builder.build())[1]


def _match(content: str, tokens: list[re.Match[str]]) -> dict[int, int]:
    """Return the partner of each bracket, mark of emphasis and tag that has one."""
    partners: dict[int, int] = {}
    stack: list[int] = []
    for index, found in enumerate(tokens):
        kind = found.lastgroup if found.lastgroup != "ticks" else "code"
        if kind == "bracket":
            stack.append(index)
        elif kind == "target":
            _close(partners, stack, tokens, index, lambda one: one["bracket"] is not None)
        elif kind == "mark":
            before = content[found.start() - 1 : found.start()]
            after = content[found.end() : found.end() + 1]
            opens = bool(after) and not after.isspace()
            closes = bool(before) and not before.isspace()
            if found[0][0] == "_":  # not within a word
                opens, closes = opens and not before.isalnum(), closes and not after.isalnum()
            is_closed = closes and _close(
                partners, stack, tokens, index, lambda one, text=found[0]: one[0] == text
            )
            if opens and not is_closed:
                stack.append(index)
        elif kind == "html" and not found[0].endswith("/>") and found[0][1] != "!":
            name = re.match(r"</?([\w-]+)", found[0])
            if name is None:
                continue
            if found[0][1] != "/":
                stack.append(index)
            else:
                wanted = f"<{name[1]}"
                _close(
                    partners, stack, tokens, index,
                    lambda one, wanted=wanted: one[0].startswith((wanted + ">", wanted + " ")),
                )  # fmt: skip
    return partners


def _close(
    partners: dict[int, int],
    stack: list[int],
    tokens: list[re.Match[str]],
    index: int,
    is_partner: Any,
) -> bool:
    """Pair a closing mark with the last opening one; marks in between have no partner."""
    for depth in range(len(stack) - 1, max(len(stack) - MAX_SEARCHED, 0) - 1, -1):
        if is_partner(tokens[stack[depth]]):
            partners |= {stack[depth]: index, index: stack[depth]}
            del stack[depth:]
            return True
    return False


def render_markdown(marked: MarkedText) -> str:
    """Return a marked text on one line; what would be markup in its text is escaped."""
    parts: list[str] = []
    num_verbatim = 0
    for event in traverse(marked):
        if event.tag is None:
            parts.append(event.text if num_verbatim else _escape(event.text))
            continue
        is_open = event.kind == "open" and event.tag.is_verbatim
        num_verbatim += is_open - (event.kind == "close" and event.tag.is_verbatim)
        parts.append(str(event.tag.close if event.kind == "close" else event.tag.open))
    text = " ".join("".join(parts).split("\n"))
    return "\\" + text if LINE_START.match(text) and not text[0].isdigit() else text


def _escape(text: str) -> str:
    return ESCAPED.sub(lambda found: "\\" + found[0], text)
