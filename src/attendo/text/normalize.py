"""Unicode normalization of text: NFC, single spaces, no invisible characters."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE_CHARACTERS = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # control characters other than white space
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"  # soft hyphen, zero width, direction marks
    r"\u2060-\u206f\ufeff\ufff9-\ufffb"  # zero-width joiners and marks
    r"\ud800-\udfff\U000e0000-\U000e007f]"  # surrogates, tags
)
"""Invisible characters, except U+200C and U+200D: Persian, Hindi and emoji need them."""
BLANK_CHARACTERS = ("\u3164", "\uffa0")
"""The Hangul fillers: letters by their Unicode category, but displayed as blanks."""


def normalize(text: str) -> str:
    r"""Normalize a text to NFC, single spaces and visible characters.

    The function is idempotent: normalizing twice changes nothing more.

    Args:
        text: Any text; line breaks count as white space.

    Returns:
        The normalized text, without white space at its ends.

    >>> normalize("\ufeffCafe\u0301 \u00a0\u3000au\u200b lait\n")
    'Café au lait'

    """
    if text.isascii() and text.isprintable():  # spaces are all that can be normalized
        return " ".join(text.split()) if "  " in text else text.strip(" ")
    if not text.isprintable():  # no invisible character is printable: most texts skip the search
        text = INVISIBLE_CHARACTERS.sub("", text)
    for blank in BLANK_CHARACTERS:
        text = text.replace(blank, " ")
    # NFC comes last: an invisible character may have separated a letter from its accent.
    return " ".join(unicodedata.normalize("NFC", text).split())
