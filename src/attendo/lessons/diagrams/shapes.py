"""A diagram: boxes, texts and lines on a plane of pixels, without colors.

The page and the documentation choose the colors of each `part` and `style`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from rich.cells import cell_len

from attendo.lessons.blocks import Block, localize

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.blocks import Label, Lang, LocalizedText

Part = Literal["attention", "cross", "feed", "norm", "input", "output", "plain", "frame"]
Style = Literal["", "muted", "strong", "residual", "memory", "dashed", "negative"]
Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]

FONT_SIZE = 12.0
CELL_WIDTH = 0.55
"""The width of a letter in sizes of the font; a Hangul letter is two of them wide."""


def text_width(text: str, size: float = FONT_SIZE) -> float:
    """Return about how wide a text is drawn."""
    return max(map(cell_len, text.split("\n"))) * CELL_WIDTH * size


@dataclass(frozen=True, kw_only=True)
class Box:
    """A rectangle with a text in its middle, one line or several.

    `shade` colors it by a number from -1 to 1. `stage` names a part of the machine, and `lessons`
    are the numbers that it links to.
    """

    kind: ClassVar[str] = "box"
    x: float
    y: float
    width: float
    height: float
    text: Label = ""
    part: Part = "plain"
    shade: float | None = None
    stage: str = ""
    lessons: tuple[int, ...] = ()
    size: float = FONT_SIZE
    round: float = 5.0


@dataclass(frozen=True, kw_only=True)
class Words:
    """A text; its position is that of its baseline."""

    kind: ClassVar[str] = "text"
    x: float
    y: float
    text: Label
    anchor: Anchor = "middle"
    style: Style = ""
    size: float = FONT_SIZE
    role: str = ""
    """What the page writes here instead: the words of the learner's sentence."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """A path in the syntax of SVG, with an arrow head or without."""

    kind: ClassVar[str] = "line"
    path: str
    style: Style = ""
    width: float = 1.3
    has_head: bool = True
    stage: str = ""
    """The part of the machine that it leads to."""


Shape = Box | Words | Line


def arrow(*points: Point, style: Style = "", width: float = 1.3, stage: str = "") -> Line:
    """Return an arrow through some points."""
    return Line(path=_polyline(points), style=style, width=width, stage=stage)


def line(*points: Point, style: Style = "", width: float = 1.3) -> Line:
    """Return a line through some points."""
    return Line(path=_polyline(points), style=style, width=width, has_head=False)


def curve(
    start: Point, middle: Point, end: Point, *, style: Style = "", width: float = 1.3
) -> Line:
    """Return an arrow along a curve that is pulled towards its middle point."""
    (a, b), (c, d), (e, f) = start, middle, end
    return Line(path=f"M{a:g} {b:g}Q{c:g} {d:g} {e:g} {f:g}", style=style, width=width)


def _polyline(points: Sequence[Point]) -> str:
    return "M" + "L".join(f"{x:g} {y:g}" for x, y in points)


@dataclass(frozen=True)
class Diagram(Block):
    """A drawing; a terminal shows `text` instead, or nothing."""

    kind: ClassVar[str] = "diagram"
    title: Label
    width: float
    height: float
    shapes: Sequence[Shape]
    about: LocalizedText | None = None
    """What the drawing shows, for those who do not see it."""
    text: LocalizedText | None = None

    def to_dict(self, lang: Lang) -> dict[str, Any]:
        """Return the drawing as JSON in one language."""
        return {
            "kind": self.kind,
            "title": localize(self.title, lang),
            "about": self.about.localize(lang) if self.about else "",
            "width": self.width,
            "height": self.height,
            "shapes": [_shape_to_dict(shape, lang) for shape in self.shapes],
        }


def _shape_to_dict(shape: Shape, lang: Lang) -> dict[str, Any]:
    fields = {name: getattr(shape, name) for name in shape.__dataclass_fields__}
    if isinstance(shape, Box | Words):
        fields["text"] = localize(shape.text, lang)
    return {"kind": shape.kind, **fields}
