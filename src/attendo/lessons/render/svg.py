"""Diagrams as SVG files, on a white card that suits both themes of the documentation."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from attendo.core.files import write_atomically
from attendo.lessons.blocks import localize
from attendo.lessons.diagrams.machine import Machine
from attendo.lessons.diagrams.shapes import Box, Diagram, Line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from attendo.lessons.blocks import Block, Lang
    from attendo.lessons.diagrams.shapes import Shape, Words

INK, MUTED, SURFACE = "#1f2328", "#5a636e", "#ffffff"
FONT = "system-ui, 'Noto Sans KR', 'Apple SD Gothic Neo', 'Malgun Gothic', sans-serif"
PARTS = {
    "attention": ("#fdeccd", "#b26b00"),
    "cross": ("#fbdfe4", "#b3314f"),
    "feed": ("#d9ecf9", "#1a6fa8"),
    "norm": ("#eef2c8", "#6b7a00"),
    "input": ("#e9e2f7", "#6a4bb0"),
    "output": ("#d9f0e0", "#22783f"),
    "plain": ("#f3f4f6", "#8b949e"),
    "frame": ("#f7f8fa", "#8b949e"),
}
"""Fill and border of each part."""
STROKES = {
    "": MUTED,
    "muted": "#b4bac2",
    "strong": INK,
    "residual": "#6b7a00",
    "memory": "#b3314f",
    "dashed": MUTED,
    "negative": "#b3314f",
}
POSITIVE, NEGATIVE = (31, 111, 191), (196, 64, 64)
MARGIN = 10
LINE_HEIGHT = 1.2


def save_diagrams(blocks: Sequence[Block], folder: Path, lang: Lang) -> Iterator[Path]:
    """Save the diagrams of a lesson as SVG files."""
    for block in blocks:
        diagram = block.wide if isinstance(block, Machine) else block
        if isinstance(diagram, Diagram):
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / "0-diagram.svg"
            write_atomically(path, render_diagram(diagram, lang))
            yield path


def render_diagram(diagram: Diagram, lang: Lang) -> bytes:
    """Return a diagram as an SVG file."""
    width, height = diagram.width + 2 * MARGIN, diagram.height + 2 * MARGIN
    title = escape(localize(diagram.title, lang))
    about = escape(diagram.about.localize(lang)) if diagram.about else ""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="{-MARGIN} {-MARGIN} {width:g} {height:g}" role="img" font-family="{FONT}">',
        f"<title>{title}</title><desc>{about}</desc>",
        f'<rect x="{-MARGIN}" y="{-MARGIN}" width="{width:g}" height="{height:g}" rx="8" '
        f'fill="{SURFACE}"/>',
        _markers(),
        *(_render_shape(shape, lang) for shape in diagram.shapes),
        "</svg>",
    ]
    return "\n".join(parts).encode()


def _markers() -> str:
    colors = dict.fromkeys(STROKES.values())
    heads = (
        f'<marker id="head{color[1:]}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="6.5" '
        f'markerHeight="6.5" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0L8 4L0 8z" fill="{color}"/></marker>'
        for color in colors
    )
    return f"<defs>{''.join(heads)}</defs>"


def _render_shape(shape: Shape, lang: Lang) -> str:
    if isinstance(shape, Line):
        return _render_line(shape)
    if isinstance(shape, Box):
        return _render_box(shape, lang)
    return _render_words(shape, lang)


def _render_line(line: Line) -> str:
    color = STROKES[line.style]
    dash = ' stroke-dasharray="4 3"' if line.style == "dashed" else ""
    head = f' marker-end="url(#head{color[1:]})"' if line.has_head else ""
    return (
        f'<path d="{line.path}" fill="none" stroke="{color}" '
        f'stroke-width="{line.width:g}"{dash}{head}/>'
    )


def _render_box(box: Box, lang: Lang) -> str:
    fill, stroke = PARTS[box.part]
    if box.shade is not None:
        fill, stroke = shade(box.shade), "#d0d7de"
    dash = ' stroke-dasharray="3 3"' if box.part == "frame" else ""
    numbers = " ".join(map(str, box.lessons))
    center = box.x + box.width / 2
    parts = [
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" '
        f'rx="{box.round:g}" fill="{fill}" stroke="{stroke}"{dash}/>'
    ]
    text = localize(box.text, lang)
    anchor = "middle"
    if numbers:
        center, anchor = box.x + 10, "start"
        right = box.x + box.width - 10
        parts.append(
            _text(numbers, right, box.y + box.height / 2, "end", box.size, stroke, bold=True)
        )
    parts.append(_text(text, center, box.y + box.height / 2, anchor, box.size, INK))
    return "".join(parts)


def _render_words(words: Words, lang: Lang) -> str:
    is_strong = words.style == "strong"
    color = INK if words.style in ("", "strong") else STROKES[words.style]
    if words.style == "muted":
        color = MUTED
    text = localize(words.text, lang)
    y = words.y - 0.35 * words.size  # the baseline is given, the middle is drawn
    return _text(text, words.x, y, words.anchor, words.size, color, bold=is_strong)


def _text(
    text: str, x: float, y: float, anchor: str, size: float, color: str, *, bold: bool = False
) -> str:
    """Return a text around its vertical middle, one line or several."""
    if not text:
        return ""
    lines = text.split("\n")
    first = y + 0.35 * size - (len(lines) - 1) * LINE_HEIGHT * size / 2
    weight = ' font-weight="600"' if bold else ""
    spans = "".join(
        f'<tspan x="{x:g}" y="{first + row * LINE_HEIGHT * size:g}">{escape(line)}</tspan>'
        for row, line in enumerate(lines)
    )
    return (
        f'<text text-anchor="{anchor}" font-size="{size:g}" fill="{color}"{weight}>{spans}</text>'
    )


def shade(value: float) -> str:
    """Return the color of a number from -1 to 1: red, white, blue.

    >>> shade(0.0), shade(1.0)
    ('#ffffff', '#8fb7df')
    """
    strongest = POSITIVE if value >= 0 else NEGATIVE
    part = 0.5 * min(1.0, abs(value))  # with more color the number could not be read
    mixed = (round(255 + part * (one - 255)) for one in strongest)
    return "#" + "".join(f"{one:02x}" for one in mixed)
