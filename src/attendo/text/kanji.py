"""Recognizes Japanese text without kana, as titles and names often are.

What Japanese shares with Chinese characters decides in most cases: its own simplified characters
are not Chinese, and those of mainland China are not Japanese. Where all characters are common to
both, how often each language has them decides.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

from attendo.text.kanji_weights import SIMPLIFIED, TRADITIONAL
from attendo.text.language_guess import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Mapping

CHINESE = {"gb2312": SIMPLIFIED, "big5": TRADITIONAL}
"""Encodings that have the characters of each Chinese script, and the weights against it."""
MIN_SCORE = 3
"""Natural logarithm, more than this. Chinese text has no kana; 2 % of Japanese messages of five
words have none: they are improbable before they are read."""


def has_japanese_kanji(text: str) -> bool:
    """Return whether Japanese has all Chinese characters of a text: they are in JIS X 0208."""
    return _is_encodable(_find_han(text), "shift_jis")


def is_japanese_kanji(text: str) -> bool:
    """Return whether a text of Chinese characters is Japanese rather than Chinese.

    It is if simplified Chinese (GB 2312) lacks one of its characters and traditional Chinese (Big5)
    lacks one. Otherwise it must have characters that are much more frequent in Japanese.

    >>> [is_japanese_kanji(text) for text in ("暗号化接続", "動画", "画像", "视频", "設定", "字幕")]
    [True, True, True, False, False, False]
    """
    if not has_japanese_kanji(text):
        return False
    letters = _find_han(text)
    possible = [name for name in CHINESE if _is_encodable(letters, name)]
    parts = {*letters, *(a + b for run in SCRIPTS["Han"].findall(text) for a, b in pairwise(run))}
    return all(sum(_weights(name).get(one, 0) for one in parts) > MIN_SCORE for name in possible)


def _find_han(text: str) -> str:
    return "".join(SCRIPTS["Han"].findall(text))


def _is_encodable(letters: str, codec: str) -> bool:
    try:
        letters.encode(codec)
    except UnicodeEncodeError:
        return False
    return True


@cache
def _weights(name: str) -> Mapping[str, int]:
    """Return the weight of each character and pair against a Chinese script."""
    return {part: weight for weight, parts in CHINESE[name].items() for part in parts.split()}
