"""Unicode normalization of text: NFC, single spaces, no invisible characters."""

from __future__ import annotations

import re
import unicodedata

INVISIBLE_CHARACTERS = re.compile(
    r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"  # controls that are no white space
    r"\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e"  # soft hyphen, zero width, direction marks
    r"\u2060-\u206f\ufeff\ufff9-\ufffb"  # joiners and marks without width
    r"\ud800-\udfff\U000e0000-\U000e007f]"  # halves of characters, tags
)
"""Invisible characters. U+200C and U+200D stay: Persian, Hindi and emoji are spelt with them."""
BLANK_CHARACTERS = ("\u3164", "\uffa0")
"""The Hangul fillers: letters by their class, blanks to the eye."""


def normalize(text: str) -> str:
    r"""Bring a text to NFC, single spaces and visible characters; doing it twice changes nothing.

    >>> normalize("\ufeffCafe\u0301 \u00a0\u3000au\u200b lait\n")
    'Café au lait'
    """
    if not text.isprintable():  # none of the junk is printable: most texts need no search
        text = INVISIBLE_CHARACTERS.sub("", text)
    for blank in BLANK_CHARACTERS:
        text = text.replace(blank, " ")
    # NFC comes after: where junk has parted a letter from its accent, they meet only now.
    return " ".join(unicodedata.normalize("NFC", text).split())
