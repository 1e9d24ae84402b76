"""Fonts that show Korean and English on every machine.

Attendo brings a Korean font in `font_files/`: Noto Sans KR Regular with 3,955 of the 11,172
syllables, all of KS X 1001 among them. An installed Korean font shows the rest. A character that no
font can show is replaced by □ before drawing, so that matplotlib does not warn about it.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.logs import get_logger
from attendo.plotting.style import require_matplotlib

if TYPE_CHECKING:
    from collections.abc import Iterable

    from matplotlib.figure import Figure

KOREAN_FONTS = (
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
BUNDLED_FONT = "Noto Sans KR Subset"
BUNDLED_FILE = Path(__file__).parent / "font_files" / "NotoSansKRSubset-Regular.ttf"
DEFAULT_FONT = "DejaVu Sans"
"""Comes with matplotlib."""
MISSING_GLYPH = "□"
HANGUL_PROBE = "뷁"
"""A syllable that a font of the common ones lacks."""

log = get_logger(__name__)


@cache
def font_families() -> tuple[str, ...]:
    """Return the font families for texts: Korean ones, then matplotlib's default."""
    require_matplotlib()
    korean = (_bundled_korean_font(), _installed_korean_font())
    return (*(name for name in korean if name), DEFAULT_FONT)


def replace_missing_glyphs(text: str) -> str:
    """Return the text in one line, with □ for characters that no font can show.

    >>> replace_missing_glyphs("two  words, of which one is private: " + chr(0xE000))
    'two  words, of which one is private: □'
    """
    known = _supported_code_points(font_families())
    characters = []
    for character in unicodedata.normalize("NFC", text):
        if unicodedata.category(character) == "Cf":  # format characters have no glyph
            continue
        if character.isspace():
            characters.append(" ")
        elif ord(character) in known:
            characters.append(character)
        else:
            characters.append(MISSING_GLYPH)
            _warn(is_korean=_is_hangul(character))
    return "".join(characters)


def set_fonts(figure: Figure) -> None:
    """Make every text of a finished figure printable; a dollar sign does not start mathematics.

    Tick labels are generated only when drawn, so they must be printable beforehand.
    """
    from matplotlib.text import Text

    texts = figure.findobj(Text)
    for text in texts:
        lines = text.get_text().split("\n")
        text.set_text("\n".join(map(replace_missing_glyphs, lines)))
        text.set_parse_math(False)
    families = list(font_families())
    is_korean = any(map(_is_hangul, "".join(text.get_text() for text in texts)))
    if not is_korean:
        families.insert(0, families.pop())  # matplotlib's default first
    for text in texts:
        text.set_fontfamily(families)
        if is_korean:
            text.set_fontweight("normal")  # the bundled font has no bold face


def _bundled_korean_font() -> str | None:
    from matplotlib.font_manager import fontManager

    if BUNDLED_FONT not in {entry.name for entry in fontManager.ttflist}:
        fontManager.addfont(BUNDLED_FILE)
    return BUNDLED_FONT


def _installed_korean_font() -> str | None:
    from matplotlib.font_manager import fontManager

    names = {entry.name for entry in fontManager.ttflist}
    return next(
        (name for name in KOREAN_FONTS if name in names and _has_glyph(name, HANGUL_PROBE)), None
    )


def _is_hangul(character: str) -> bool:
    return unicodedata.name(character, "").startswith("HANGUL")


def _has_glyph(name: str, character: str) -> bool:
    return ord(character) in _supported_code_points((name,))


@cache
def _supported_code_points(families: tuple[str, ...]) -> frozenset[int]:
    """Return the code points that these fonts can show."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    def read(name: str) -> Iterable[int]:
        return get_font(findfont(FontProperties(family=[name]))).get_charmap()

    return frozenset(point for name in families for point in read(name))


@cache
def _warn(*, is_korean: bool) -> None:
    """Log once which glyphs are missing."""
    if is_korean:
        log.warning(
            "the Korean font of Attendo lacks a rare syllable: plots show □ instead\n"
            "  hint: install Noto Sans CJK or Nanum (Debian, Ubuntu: apt install fonts-noto-cjk)"
        )
    else:
        log.warning(
            "no installed font has some characters: plots show □ instead\n"
            "  hint: install a font that has them, for example one of the Noto family"
        )
