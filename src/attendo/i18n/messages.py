"""Localization: choose the user's language and translate messages.

Messages are written in English where they are raised or logged. `translate_message` translates a
`Message` by its template and any other text as a whole, with the gettext catalogue
`locale/<lang>.po`. A text without a translation stays English.
"""

from __future__ import annotations

import os
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import Message, message

if TYPE_CHECKING:
    from attendo.core.errors import AttendoError

Lang = Literal["en", "ko"]
LANG_VARIABLE = "ATTENDO_LANG"
"""Environment variable that overrides the locale."""
LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
LOCALE_DIR = Path(__file__).parent / "locale"
TRANSLATED_VALUES = frozenset({"detail", "subject"})
"""Values that hold words of the program or the system; other plain values are the user's words."""


def choose_language(requested: str | None = None) -> Lang:
    """Return the requested language, else that of ATTENDO_LANG, else the locale's, else English."""
    if requested is not None and requested not in ("en", "ko"):
        raise ConfigError(
            message("no language '{lang}'", lang=requested), hint=suggest(requested, ("en", "ko"))
        )
    variables = (LANG_VARIABLE, *LOCALE_VARIABLES)
    name = requested or next(filter(None, map(os.environ.get, variables)), "")
    return "ko" if name.startswith("ko") else "en"


def translate_message(text: str, lang: Lang) -> str:
    """Return `text` in a language.

    >>> translate_message(message("no lesson {number}", number=99), "ko")
    '99번 강의는 없습니다'
    >>> translate_message("internal error", "en")
    'internal error'
    """
    if lang == "en":
        return str(text)
    catalogue = load_catalogue(lang)
    if not isinstance(text, Message):
        return catalogue.get(text, text)
    values = {name: _translate_value(name, value, lang) for name, value in text.values.items()}
    return catalogue.get(text.template, text.template).format(**values)


def _translate_value(name: str, value: Any, lang: Lang) -> Any:
    is_text = isinstance(value, Message) or (name in TRANSLATED_VALUES and isinstance(value, str))
    return _TerminalText(translate_message(value, lang)) if is_text else value


class _TerminalText(str):
    """A text that is padded to a width in terminal cells: a Hangul syllable takes two."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        padded = format(str(self), spec)
        num_wide = sum(unicodedata.east_asian_width(character) in "WF" for character in self)
        num_spaces = len(padded) - len(padded.rstrip(" "))
        return padded[: len(padded) - min(num_wide, num_spaces)]


def translate_error(error: AttendoError, lang: Lang) -> str:
    """Return an error with its hint, as `str(error)` does in English."""
    if lang == "en":
        return str(error)
    reason = translate_message(error.reason, lang)
    if error.hint is None:
        return reason
    return f"{reason}\n  {translate_message('hint', lang)}: {translate_message(error.hint, lang)}"


@cache
def load_catalogue(lang: Lang) -> dict[str, str]:
    """Read the translations of a language."""
    import polib

    entries = polib.pofile(str(LOCALE_DIR / f"{lang}.po"))
    return {entry.msgid: entry.msgstr for entry in entries if entry.msgstr}
