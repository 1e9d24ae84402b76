"""Parts of a text that a translation keeps as they are.

URLs, e-mail addresses, emoji, numbers, and the placeholders of message catalogs, which a program
replaces: `%s`, `%(count)d`, `%1`, `{name}`, `{ -brand }`, `${x}`, `@name@`, `&amp;`, `<0/>`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

SpanKind = Literal["url", "email", "emoji", "placeholder", "number"]

URL = r"(?:(?:https?|ftp)://|www\.)(?:[!-z|~]|\{[!-z|~]*+\})++"
"""A placeholder in it has no spaces: `https://a.kr/{id}`, but not `www.{ $host }`."""
EMAIL = r"(?<![\w.%+-])[\w.%+-]{1,64}+@[A-Za-z0-9-]{1,63}+(?:\.[A-Za-z0-9-]{1,63}+){1,8}+"
PICTURE = (
    r"[\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a\u231b\u2328\u23cf\u23e9-\u23fa\u24c2\u25aa-\u25fe"
    r"\u2600-\u27bf\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001f1e5"
    r"\U0001f200-\U0001faff]"
)
MODIFIER = r"[\ufe0e\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
EMOJI = (
    rf"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3"
    rf"|{PICTURE}{MODIFIER}*(?:\u200d{PICTURE}{MODIFIER}*)*"
)
NUMBER = r"(?<![\w.])[+-]?[$€£¥₩]?[0-9]+(?:[.,:/-][0-9]+)*(?:%(?!%)|[‰°])?(?![A-Za-z_0-9])"
NAME = r"[A-Za-z_][\w.-]{0,63}+"
PRINTF = (
    r"%(?:[1-9][0-9]?\$)?[-+0#']{0,4}(?:[1-9][0-9]{0,3}|\*)?(?:\.(?:[0-9]{1,3}|\*))?"
    r"(?:hh|h|ll|l|L|z|j|t|I64)?(?:[dsux@]|[ioXeEfFgGaAcrpnS](?![A-Za-z]))"
)
"""Without the flag for a space: "50 % of" has no placeholder."""
DATE_PART = r"%-?[aAbBcHIjkmMpPSUVWXyYzZ](?![A-Za-z])"
ARGUMENTS, LITERAL = r"\([^(){}\n]{0,100}+\)", r'"[^"\n]{0,20}"'
"""Of Fluent: `{ NUMBER($x, minimumFractionDigits: 1) }`, `{ "{" }`."""
PLACEHOLDER = (
    rf"(?<![0-9])(?:%\({NAME}\)[-+0#]{{0,4}}[0-9]{{0,3}}(?:\.[0-9]{{1,3}})?[diouxXeEfFgGcrsa]"
    rf"|%[{{<]{NAME}[}}>](?:\.[0-9])?[diouxXeEfFgGcrsa]?|{PRINTF}|{DATE_PART}"
    r"|%[1-9][0-9]?%|%L?[1-9][0-9]?(?![0-9%]))|%%"
    rf"|[$#%]\{{{NAME}\}}|\$\({NAME}\)|\$[A-Za-z_]\w{{0,63}}+"
    r"|\{\{\s{0,4}+[$\w][\w.\[\]|$: -]{0,80}\}\}"
    rf"|\{{\s{{0,4}}+(?:-?[$\w][\w.\[\]$!:<>=%+-]{{0,80}}+(?:{ARGUMENTS})?|{LITERAL})\s{{0,4}}+\}}|\{{\}}"
    rf"|(?<![\w@])@{NAME}@|&(?:[A-Za-z][A-Za-z0-9]{{1,30}}|\#[0-9]{{1,7}}|\#x[0-9A-Fa-f]{{1,6}});"
    r"|</?[0-9]{1,3}\s?/?>"
)
"""What programs replace: printf, strftime, Python, Qt, Ruby, shell, JavaScript, Fluent, tags."""
SPAN = re.compile(
    rf"(?P<url>{URL})|(?P<email>{EMAIL})|(?P<placeholder>{PLACEHOLDER})|(?P<emoji>(?:{EMOJI})+)"
    rf"|(?P<number>{NUMBER})",
    re.ASCII,
)
SPAN_CHARACTER = re.compile(
    r"[0-9@%{$&\u20e3\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u2328\u23cf-\u23fa\u24c2"
    r"\u25aa-\u27bf\u2934-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
"""Every span but a URL has one of these characters; many texts have none."""
TRAILING_PUNCTUATION = ".,;:!?)]'\"*"
"""Belongs to the sentence, not to the URL before it."""


class CopySpan(NamedTuple):
    """A part of a text that is copied."""

    start: int
    end: int
    kind: SpanKind
    text: str


def may_have_copy_spans(text: str) -> bool:
    """Return False if neither a text nor its normalized form has a span, in a fraction of the time.

    >>> [may_have_copy_spans(text) for text in ("No numbers.", "3 o'clock", "www.a.kr")]
    [False, True, True]
    """
    return (
        SPAN_CHARACTER.search(text) is not None
        or "://" in text
        or "www." in text
        or not text.isprintable()  # an invisible character may interrupt "://"
    )


def find_copy_spans(text: str) -> list[CopySpan]:
    """Return the spans of a text, in order.

    >>> [(one.kind, one.text) for one in find_copy_spans("12,345 원: http://a.kr/b?c=1. 😀 a@b.kr")]
    [('number', '12,345'), ('url', 'http://a.kr/b?c=1'), ('emoji', '😀'), ('email', 'a@b.kr')]
    >>> find_copy_spans("GPT4, mp3, 3rd, 50% of it")
    [CopySpan(start=16, end=19, kind='number', text='50%')]
    """
    spans: list[CopySpan] = []
    if not may_have_copy_spans(text):
        return spans
    for match in SPAN.finditer(text):
        kind: SpanKind = match.lastgroup  # type: ignore[assignment] # the names of the groups
        found = match[0].rstrip(TRAILING_PUNCTUATION) if kind == "url" else match[0]
        spans.append(CopySpan(match.start(), match.start() + len(found), kind, found))
    return spans


def without_addresses(text: str) -> str:
    """Return a text without its URLs and e-mail addresses.

    >>> without_addresses("보라: http://a.kr/b 또는 a@b.kr.")
    '보라:  또는 .'
    """
    if "." not in text:
        return text
    kept, end = "", 0
    for span in find_copy_spans(text):
        if span.kind in ("url", "email"):
            kept += text[end : span.start]
            end = span.end
    return kept + text[end:]


def missing_spans(spans: Iterable[CopySpan], translation: str) -> list[CopySpan]:
    """Return the spans that do not occur in a translation as often as in the source.

    >>> spans = find_copy_spans("3 and 3")
    >>> len(missing_spans(spans, "3 und 33")), len(missing_spans(spans, "3 und 3"))
    (1, 0)
    """
    found = [span.text for span in find_copy_spans(translation)]
    missing = []
    for span in spans:
        if span.text in found:
            found.remove(span.text)
        else:
            missing.append(span)
    return missing
