"""Fonts that show Korean and English, if one is installed.

A character that no installed font can show is replaced by □ before drawing, so that matplotlib
does not warn about it.
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
FONT_FILE_PREFIXES = (
    "notosanscjk",
    "notosanskr",
    "nanum",
    "malgun",
    "applesd",
    "applegothic",
    "sourcehan",
)
"""Prefixes of the file names of these fonts, in lower case."""
DEFAULT_FONT = "DejaVu Sans"
"""Comes with matplotlib."""
MISSING_GLYPH = "□"
HANGUL_PROBE = "한"

log = get_logger(__name__)


@cache
def font_families() -> tuple[str, ...]:
    """Return the font families for texts: a Korean one if installed, then matplotlib's default."""
    korean = _installed_korean_font() or _new_korean_font()
    return (korean, DEFAULT_FONT) if korean else (DEFAULT_FONT,)


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
            _warn(is_korean=unicodedata.name(character, "").startswith("HANGUL"))
    return "".join(characters)


def set_fonts(figure: Figure) -> None:
    """Make every text of a finished figure printable; a dollar sign does not start mathematics.

    Tick labels are generated only when drawn, so they must be printable beforehand.
    """
    from matplotlib.text import Text

    families = list(font_families())
    for text in figure.findobj(Text):
        if isinstance(text, Text):
            text.set_text(
                "\n".join(replace_missing_glyphs(line) for line in text.get_text().split("\n"))
            )
            text.set_fontfamily(families)
            text.set_parse_math(False)


def _installed_korean_font() -> str | None:
    require_matplotlib()
    from matplotlib.font_manager import fontManager

    names = {entry.name for entry in fontManager.ttflist}
    return next(
        (name for name in KOREAN_FONTS if name in names and _has_glyph(name, HANGUL_PROBE)), None
    )


def _new_korean_font() -> str | None:
    """Add fonts that were installed after matplotlib cached its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    paths = [
        path for path in findSystemFonts() if Path(path).name.lower().startswith(FONT_FILE_PREFIXES)
    ]
    for path in sorted(paths):
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError):  # a broken font must not prevent drawing
            continue
    return _installed_korean_font() if paths else None


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
            "no Korean font is installed: plots show □ instead of Hangul\n"
            "  hint: install Noto Sans CJK or Nanum (Debian, Ubuntu: apt install fonts-noto-cjk)"
        )
    else:
        log.warning(
            "no installed font has some characters: plots show □ instead\n"
            "  hint: install a font that has them, for example one of the Noto family"
        )
