"""Messages of catalogs: strings with XML tags in them, as in `Click <a href="%s">here</a>`.

Character references such as `&amp;` are not decoded: they are placeholders, which are copied.
"""

from __future__ import annotations

import re
from dataclasses import replace

from attendo.documents.markup import MarkedText, MarkupBuilder, has_words, render, trim
from attendo.text.copy_spans import find_copy_spans

TAG = re.compile(
    r"<(?P<end>/?)(?P<name>[A-Za-z][\w:.-]{0,40}|[0-9]{1,3})"
    r"(?P<attributes>\s[^<>]{0,2000})?(?P<void>/?)\s?>"
)
"""<0> and </0> are the numbered tags of translation libraries; an e-mail address is not a tag."""
VERBATIM_NAMES = frozenset({"code", "kbd", "tt", "var"})
ICU = re.compile(r"\{\s*\w+\s*,\s*(?:plural|select|selectordinal)\s*,")
IDENTIFIER = re.compile(
    r"[a-z0-9]+(?:[._/:#@]+[A-Za-z0-9-]+)+|[a-z0-9]+(?:-[a-z0-9]+){2,}|[a-z]{2,3}-[A-Z]{2}"
    r"|[a-z]+(?:[A-Z][a-z0-9]*)+|[A-Z0-9]+(?:_[A-Z0-9]+)+|[\w/-]+\.[a-z][a-z0-9]{1,4}"
    r"|[#./~_@$-]\S*|\S*://\S*|\S+@\S+\.\S+"
)
"""What a program reads: `user_name`, `image/png`, `en-US`, `camelCase`, `#fff`, an address."""


def read_message(text: str) -> tuple[str, MarkedText, str]:
    """Return what is before the words of a message, the message, and what is after it.

    >>> before, marked, after = read_message("<p>Click <b>here</b></p>")
    >>> before, marked.text, after
    ('<p>', 'Click here', '</p>')
    """
    partners = _match(text)
    builder = MarkupBuilder()
    position = 0
    for found in TAG.finditer(text):
        builder.add_text(text[position : found.start()])
        position = found.end()
        partner = partners.get(found.start())
        if partner is None:
            builder.add_single(found[0])
        elif found["end"]:
            builder.close(found[0])
        else:
            builder.open(found[0], is_verbatim=found["name"].lower() in VERBATIM_NAMES)
    builder.add_text(text[position:])
    return _peel(builder.build())


def is_translatable(text: str) -> bool:
    """Return whether a value has words, and is neither an identifier nor an address."""
    if not has_words(text) or IDENTIFIER.fullmatch(text.strip()):
        return False
    rest, end = "", 0
    for span in find_copy_spans(text):
        rest += text[end : span.start]
        end = span.end
    return has_words(rest + text[end:])


def is_message_format(text: str) -> bool:
    """Return whether a message has several forms (ICU), which cannot be translated as one text.

    >>> is_message_format("{count, plural, one {# file} other {# files}}")
    True
    """
    return ICU.search(text) is not None


def _match(text: str) -> dict[int, int]:
    """Return the start of the partner of each tag that has one."""
    partners: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for found in TAG.finditer(text):
        if found["void"]:
            continue
        if not found["end"]:
            stack.append((found["name"], found.start()))
            continue
        for depth in range(len(stack) - 1, max(len(stack) - 11, -1), -1):
            if stack[depth][0] == found["name"]:
                partners |= {stack[depth][1]: found.start(), found.start(): stack[depth][1]}
                del stack[depth:]  # tags in between have no partner
                break
    return partners


def _peel(marked: MarkedText) -> tuple[str, MarkedText, str]:
    """Separate white space and the tags around all of a text from it."""
    before, after = "", ""
    while True:
        lead, marked, trail = trim(marked)
        before, after = before + lead, trail + after
        first = next(iter(marked.tags), None)
        if first is None or not _is_around(marked):
            return before, marked, after
        before, after = before + str(first.open), str(first.close) + after
        inner = (replace(tag, parent=tag.parent - 1) for tag in marked.tags[1:])
        marked = MarkedText(marked.text, tuple(inner))


def _is_around(marked: MarkedText) -> bool:
    first = marked.tags[0]
    is_only = all(tag.parent != first.parent for tag in marked.tags[1:])
    return (
        first.is_pair
        and not first.is_verbatim
        and is_only
        and (first.start == 0 and first.end == len(marked.text))
    )


def render_message(before: str, marked: MarkedText, after: str) -> str:
    """Return a message with its tags."""
    return before + render(marked) + after
