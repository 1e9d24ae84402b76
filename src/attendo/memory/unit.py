"""A translation unit: a source text with the translation that a person gave it."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime
from typing import Literal, NamedTuple, get_args

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.text.languages import parse_language

Origin = Literal["correction", "import"]
ORIGINS: tuple[Origin, ...] = get_args(Origin)
MAX_TEXT_CHARACTERS = 10_000
"""Maximum characters of a source, a target or a machine output."""
MAX_NAME_CHARACTERS = 100
"""Maximum characters of the name of a person or of a model."""
MAX_LANGUAGE_CHARACTERS = 35
INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))
"""Soft hyphens and characters without width, which look like nothing."""
SPACES = re.compile(r"\s+")


class Unit(NamedTuple):
    """A source and its translation, where they come from, and when."""

    source: str
    target: str
    src_lang: str
    tgt_lang: str
    model: str | None = None
    """The model whose output was corrected."""
    output: str | None = None
    """What the model had written."""
    author: str | None = None
    """Who corrected or translated it."""
    time: int = 0
    """When, in seconds since 1970; 0 if unknown."""
    origin: Origin = "correction"
    """Whether a person corrected it here, or it comes from a file."""
    id: int = 0
    """Its number in a store; 0 outside of one."""


def normalize_source(text: str) -> str:
    r"""Return the form in which sources are compared: NFC, single spaces, nothing invisible.

    >>> normalize_source("  Two\u00a0 words\n")
    'Two words'
    """
    return SPACES.sub(" ", unicodedata.normalize("NFC", text).translate(INVISIBLE)).strip()


def check_unit(unit: Unit) -> Unit:
    """Return a unit with normalized languages; raise an `InputError` if it cannot be stored."""
    for name, text in (("source", unit.source), ("target", unit.target)):
        if not normalize_source(text):
            raise InputError(message("the {name} is empty", name=message(name)))
    texts = {"source": unit.source, "target": unit.target, "output": unit.output or ""}
    for name, text in texts.items():
        _check_length(name, text, MAX_TEXT_CHARACTERS)
    names = {"model": unit.model or "", "author": unit.author or ""}
    for name, text in names.items():
        _check_length(name, text, MAX_NAME_CHARACTERS)
    if any(_has_surrogates(text) for text in (*texts.values(), *names.values())):
        raise InputError("a text is not valid Unicode", hint="remove its lone surrogates")
    if unit.origin not in ORIGINS:
        raise InputError(message("no origin '{name}'", name=str(unit.origin)[:MAX_NAME_CHARACTERS]))
    src_lang, tgt_lang = (_check_language(one) for one in (unit.src_lang, unit.tgt_lang))
    return unit._replace(src_lang=src_lang, tgt_lang=tgt_lang)


def format_time(seconds: int) -> str | None:
    """Return a time as ISO 8601 in UTC, None if it is unknown.

    >>> format_time(1_700_000_000)
    '2023-11-14T22:13:20Z'
    """
    if not seconds:
        return None
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_time(text: str | None) -> int:
    """Return the seconds of a time in ISO 8601 or TMX notation, 0 if it is not one.

    >>> parse_time("2023-11-14T22:13:20Z") == parse_time("20231114T221320Z") == 1_700_000_000
    True
    """
    try:
        moment = datetime.fromisoformat(text or "")
    except ValueError:
        return 0
    seconds = int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    return max(seconds, 0)


def _check_length(name: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise InputError(
            message(
                "the {name} has {count} characters, at most {limit} allowed",
                name=message(name),
                count=len(text),
                limit=limit,
            )
        )


def _check_language(name: str) -> str:
    return parse_language(name[:MAX_LANGUAGE_CHARACTERS])


def _has_surrogates(text: str) -> bool:
    return not text.isascii() and any("\ud800" <= one <= "\udfff" for one in text)
