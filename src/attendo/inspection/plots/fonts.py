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
from attendo.inspection.plots.style import require_matplotlib

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
"""How the files of such fonts begin, in lower case."""
DEFAULT_FONT = "DejaVu Sans"
"""Comes with matplotlib."""
MISSING_GLYPH = "□"
HANGUL_PROBE = "한"

log = get_logger(__name__)


@cache
def font_families() -> tuple[str, ...]:
    """Return the fonts to set texts in: a Korean one where there is one, then matplotlib's own."""
    korean = _installed_korean_font() or _new_korean_font()
    return (korean, DEFAULT_FONT) if korean else (DEFAULT_FONT,)


def replace_missing_glyphs(text: str) -> str:
    """Make a text that the fonts can show, in one line.

    >>> replace_missing_glyphs("two  words, of which one is private: " + chr(0xE000))
    'two  words, of which one is private: □'
    """
    known = _supported_code_points(font_families())
    characters = []
    for character in unicodedata.normalize("NFC", text):
        if unicodedata.category(character) == "Cf":  # marks that have no shape of their own
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
    """Set every text of a finished figure so that it can be shown; no dollar sign is mathematics.

    What stands beside ticks is written only as it is drawn: that has to be clean before.
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
    """Look for fonts that were installed after matplotlib made its list."""
    from matplotlib.font_manager import findSystemFonts, fontManager

    paths = [
        path for path in findSystemFonts() if Path(path).name.lower().startswith(FONT_FILE_PREFIXES)
    ]
    for path in sorted(paths):
        try:
            fontManager.addfont(path)
        except (OSError, RuntimeError):  # a broken font is no reason to draw nothing
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
    """Say once what is missing."""
    if is_korean:
        log.warning(
            "no Korean font is installed, so that pictures show □ in its place\n"
            "  hint: install Noto Sans CJK or Nanum (Debian, Ubuntu: apt install fonts-noto-cjk)"
        )
    else:
        log.warning(
            "no installed font shows some characters, so that pictures show □ in their place\n"
            "  hint: install a font that has them, e.g. of the Noto family"
        )
