"""Fonts that show Korean beside English, wherever one is installed.

A character that no font at hand can show becomes a □ before anything is drawn, so that matplotlib
has nothing to complain about.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.logs import get_logger
from attendo.inspection.plots.canvas import load_matplotlib

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

KOREAN = (
    "Noto Sans CJK KR",
    "Noto Sans KR",
    "Source Han Sans KR",
    "Source Han Sans K",
    "NanumGothic",
    "Nanum Gothic",
    "NanumBarunGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "Pretendard",
    "UnDotum",
    "Noto Sans CJK JP",
    "Noto Sans CJK SC",
)
"""Best first. Older matplotlib sees only the Japanese face of Noto, which has Hangul too."""
FILES = ("notosanscjk", "notosanskr", "nanum", "malgun", "applesd", "applegothic", "sourcehan")
"""How the files of such fonts begin, in lower case."""
OWN = "DejaVu Sans"
"""Comes with matplotlib."""
UNKNOWN = "□"
SYLLABLE = "한"

log = get_logger(__name__)


@cache
def find_families() -> tuple[str, ...]:
    """Give the fonts to set texts in: a Korean one where there is one, then matplotlib's own."""
    korean = _find_installed() or _find_new()
    return (korean, OWN) if korean else (OWN,)


def clean(text: str) -> str:
    """Make a text that the fonts can show, in one line.

    >>> clean("two  words, of which one is private: " + chr(0xE000))
    'two  words, of which one is private: □'
    """
    known = _find_characters(find_families())
    shown = []
    for character in unicodedata.normalize("NFC", text):
        if unicodedata.category(character) == "Cf":  # marks that have no shape of their own
            continue
        if character.isspace():
            shown.append(" ")
        elif ord(character) in known:
            shown.append(character)
        else:
            shown.append(UNKNOWN)
            _warn(is_korean=unicodedata.name(character, "").startswith("HANGUL"))
    return "".join(shown)


def set_fonts(figure: Figure) -> None:
    """Set every text of a finished figure so that it can be shown; no dollar sign is mathematics.

    What stands beside ticks is written only as it is drawn: that has to be clean before.
    """
    from matplotlib.text import Text

    families = list(find_families())
    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_text("\n".join(clean(line) for line in text.get_text().split("\n")))
            text.set_fontfamily(families)
            text.set_parse_math(False)


def _find_installed() -> str | None:
    load_matplotlib()
    from matplotlib.font_manager import fontManager

    names = {entry.name for entry in fontManager.ttflist}
    return next((name for name in KOREAN if name in names and _has(name, SYLLABLE)), None)


def _find_new() -> str | None:
    """Look for fonts that were installed after matplotlib made its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    found = [path for path in findSystemFonts() if Path(path).name.lower().startswith(FILES)]
    for path in sorted(found):
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError):  # a broken font is no reason to draw nothing
            continue
    return _find_installed() if found else None


def _has(name: str, character: str) -> bool:
    return ord(character) in _find_characters((name,))


@cache
def _find_characters(families: tuple[str, ...]) -> frozenset[int]:
    """Give the code points that these fonts can show."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    def read(name: str) -> Iterable[int]:
        return get_font(findfont(FontProperties(family=[name]))).get_charmap()

    return frozenset(point for name in families for point in read(name))


@cache
def _warn(*, is_korean: bool) -> None:
    """Say once what is missing."""
    if is_korean:
        log.warning(
            "no Korean font is installed, so that pictures show □ in its place\n"
            "  remedy: install Noto Sans CJK or Nanum (Debian, Ubuntu: apt install fonts-noto-cjk)"
        )
    else:
        log.warning(
            "no installed font shows some characters, so that pictures show □ in their place\n"
            "  remedy: install a font that has them, e.g. of the Noto family"
        )
