"""Which language people are spoken to in, and how what the rooms say in English is said in Korean.

Rooms raise errors and tell their progress in English, and know no language. Where a person reads
it, in a terminal or over HTTP, `say` looks the sentence up in `attendo.core.korean` by its English
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
VARIABLE = "ATTENDO_LANG"
"""What tells the language where the locale does not."""
LOCALE = ("LC_ALL", "LC_MESSAGES", "LANG")
SAID = "said"
"""What stands in a place of this name is a sentence itself; all else is the user's, or a name."""
BULLET = "- "
DEEPEST, LONGEST = 4, 2000
"""Sentences within sentences that are looked up, and characters of a line: clients write some."""


def choose_language(given: str | None = None) -> Lang:
    """Take the language that is asked for, else ATTENDO_LANG's, else the system's, else English."""
    if given is not None and given not in ("en", "ko"):
        raise ConfigError(f"no language '{given}'", remedy=suggest(given, ("en", "ko")))
    told = given or next(filter(None, map(os.environ.get, (VARIABLE, *LOCALE))), "")
    return "ko" if told.startswith("ko") else "en"


def say(text: str, lang: Lang) -> str:
    """Say what a room has said, line by line, in a language.

    >>> say("no lesson 99", "ko")
    '99번 강의는 없습니다'
    >>> say("no lesson 99", "en")
    'no lesson 99'
    """
    return text if lang == "en" else "\n".join(map(_say_line, text.split("\n")))


def say_error(error: AttendoError, lang: Lang) -> str:
    """Word an error with its remedy, as `str` does in English."""
    if lang == "en":
        return str(error)
    remedy = "" if error.remedy is None else f"\n  해결 방법: {say(error.remedy, lang)}"
    return say(error.reason, lang) + remedy


class Phrase(NamedTuple):
    """An English sentence with places, and its Korean one."""

    parts: tuple[str, ...]
    """What stands before, between and after the places."""
    places: tuple[str, ...]
    korean: str

    @classmethod
    def parse(cls, english: str, korean: str) -> Phrase:
        """Cut a sentence at its places."""
        pieces = list(Formatter().parse(english))
        places = tuple(name for _, name, _, _ in pieces if name is not None)
        before = [literal for literal, name, _, _ in pieces if name is not None]
        last = "".join(literal for literal, name, _, _ in pieces if name is None)
        return cls((*before, last), places, korean)

    def read(self, text: str) -> dict[str, str] | None:
        """Give what stands at the places; None if it is another sentence. Takes linear time."""
        first, *between = self.parts
        if not self.places:
            return {} if text == first else None
        last = between.pop()
        begin, end = len(first), len(text) - len(last)
        if begin > end or not text.startswith(first) or not text.endswith(last):
            return None
        values = []
        for part in between:
            found = text.find(part, begin, end)
            if found < 0:
                return None
            values.append(text[begin:found])
            begin = found + len(part)
        return dict(zip(self.places, [*values, text[begin:end]], strict=True))


@lru_cache(maxsize=1)
def list_phrases() -> tuple[Phrase, ...]:
    """Give every sentence that is known; those with more words of their own come first."""
    from attendo.core.korean import KOREAN

    phrases = (Phrase.parse(english, korean) for english, korean in KOREAN.items())
    return tuple(sorted(phrases, key=lambda phrase: -len("".join(phrase.parts))))


def _say_line(line: str, depth: int = 0) -> str:
    if depth > DEEPEST or len(line) > LONGEST:
        return line
    text = line.lstrip(" ").removeprefix(BULLET)
    margin = line[: len(line) - len(text)]
    for phrase in list_phrases():
        values = phrase.read(text)
        if values is not None:
            said = {
                name: _say_line(value, depth + 1) if name.startswith(SAID) else value
                for name, value in values.items()
            }
            return margin + phrase.korean.format(**said)
    return line
