"""Which language people are spoken to in, and how what the rooms say in English is said in Korean.

Rooms raise errors and tell their progress in English, and know no language. Where a person reads
it, in a terminal or over HTTP, `say` looks the sentence up in `attendo.i18n.korean` by its English
pattern. What is not there stays as it is: better English than nothing.
"""

from __future__ import annotations

import os
from functools import lru_cache
from string import Formatter
from typing import TYPE_CHECKING, Literal, NamedTuple

from attendo.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from attendo.core.errors import AttendoError

Lang = Literal["en", "ko"]
LANGUAGE_VARIABLE = "ATTENDO_LANG"
"""What tells the language where the locale does not."""
LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
NESTED_PREFIX = "said"
"""What stands in a place of this name is a sentence itself; all else is the user's, or a name."""
BULLET = "- "
MAX_DEPTH, MAX_LINE_LENGTH = 4, 2000
"""Sentences within sentences that are looked up, and characters of a line: clients write some."""


def choose_language(requested: str | None = None) -> Lang:
    """Take the language that is asked for, else ATTENDO_LANG's, else the system's, else English."""
    if requested is not None and requested not in ("en", "ko"):
        raise ConfigError(f"no language '{requested}'", hint=suggest(requested, ("en", "ko")))
    language_tag = requested or next(
        filter(None, map(os.environ.get, (LANGUAGE_VARIABLE, *LOCALE_VARIABLES))), ""
    )
    return "ko" if language_tag.startswith("ko") else "en"


def translate_message(text: str, lang: Lang) -> str:
    """Say what a room has said, line by line, in a language.

    >>> say("no lesson 99", "ko")
    '99번 강의는 없습니다'
    >>> say("no lesson 99", "en")
    'no lesson 99'
    """
    return text if lang == "en" else "\n".join(map(_translate_line, text.split("\n")))


def translate_error(error: AttendoError, lang: Lang) -> str:
    """Word an error with its remedy, as `str` does in English."""
    if lang == "en":
        return str(error)
    hint = "" if error.hint is None else f"\n  해결 방법: {translate_message(error.hint, lang)}"
    return translate_message(error.reason, lang) + hint


class MessageTemplate(NamedTuple):
    """An English sentence with places, and its Korean one."""

    literals: tuple[str, ...]
    """What stands before, between and after the places."""
    field_names: tuple[str, ...]
    translation: str

    @classmethod
    def parse(cls, english: str, korean: str) -> MessageTemplate:
        """Cut a sentence at its places."""
        segments = list(Formatter().parse(english))
        field_names = tuple(name for _, name, _, _ in segments if name is not None)
        before = [literal for literal, name, _, _ in segments if name is not None]
        last = "".join(literal for literal, name, _, _ in segments if name is None)
        return cls((*before, last), field_names, korean)

    def match(self, text: str) -> dict[str, str] | None:
        """Give what stands at the places; None if it is another sentence. Takes linear time."""
        first, *between = self.literals
        if not self.field_names:
            return {} if text == first else None
        last = between.pop()
        begin, end = len(first), len(text) - len(last)
        if begin > end or not text.startswith(first) or not text.endswith(last):
            return None
        values = []
        for literal in between:
            position = text.find(literal, begin, end)
            if position < 0:
                return None
            values.append(text[begin:position])
            begin = position + len(literal)
        return dict(zip(self.field_names, [*values, text[begin:end]], strict=True))


@lru_cache(maxsize=1)
def load_templates() -> tuple[MessageTemplate, ...]:
    """Give every sentence that is known; those with more words of their own come first."""
    from attendo.i18n.korean import KOREAN

    templates = (MessageTemplate.parse(english, korean) for english, korean in KOREAN.items())
    return tuple(sorted(templates, key=lambda phrase: -len("".join(phrase.literals))))


def _translate_line(line: str, depth: int = 0) -> str:
    if depth > MAX_DEPTH or len(line) > MAX_LINE_LENGTH:
        return line
    text = line.lstrip(" ").removeprefix(BULLET)
    margin = line[: len(line) - len(text)]
    for template in load_templates():
        values = template.match(text)
        if values is not None:
            translated = {
                name: _translate_line(value, depth + 1) if name.startswith(NESTED_PREFIX) else value
                for name, value in values.items()
            }
            return margin + template.translation.format(**translated)
    return line
