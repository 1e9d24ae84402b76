"""The diagram of lesson 21: where the six parts are, with the broken one marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow, line
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from attendo.lessons.blocks import Label
    from attendo.lessons.diagrams.shapes import Part, Shape, Style

prose = Prose("attendo.lessons.chapters.ch21_break_it")

LEFT, BOX_WIDTH, BOX_HEIGHT, GAP, TOP = 24.0, 168.0, 36.0, 20.0, 12.0
MARK_X = LEFT + BOX_WIDTH + 26
WIDTH = 430.0


class Stage(NamedTuple):
    """A box of the drawing, and the parts that are inside of it."""

    text: Label
    part: Part
    inside: tuple[str, ...]


STAGES = (
    Stage(prose("stage-loss"), "output", ("smoothing",)),
    Stage(prose("stage-network"), "feed", ()),
    Stage(prose("stage-add"), "norm", ("residuals",)),
    Stage(prose("stage-attention"), "attention", ("scaling", "heads", "mask")),
    Stage(prose("stage-embedding"), "input", ("positions",)),
)
"""From the top of the drawing to its bottom."""


def draw_parts(values: Mapping[str, Any]) -> Diagram:
    """Return the way through a layer, from bottom to top, and its parts."""
    center = LEFT + BOX_WIDTH / 2
    tops = [TOP + index * (BOX_HEIGHT + GAP) for index in range(len(STAGES))]
    shapes: list[Shape] = []
    for stage, top in zip(STAGES, tops, strict=True):
        shapes.append(
            Box(x=LEFT, y=top, width=BOX_WIDTH, height=BOX_HEIGHT, text=stage.text,
                part=stage.part, size=11.0)
        )  # fmt: skip
        if top != tops[-1]:
            shapes.append(arrow((center, top + BOX_HEIGHT + GAP), (center, top + BOX_HEIGHT)))
        shapes += _mark_parts(stage, top, values["part"])
    branch = tops[-1] - GAP / 2  # the residual connection begins below the attention
    middle = tops[2] + BOX_HEIGHT / 2
    shapes.append(
        arrow((center, branch), (8, branch), (8, middle), (LEFT, middle),
              style="dashed" if values["part"] == "residuals" else "residual")
    )  # fmt: skip
    height = tops[-1] + BOX_HEIGHT + 8
    return Diagram(prose("diagram"), WIDTH, height, shapes, about=prose("diagram-about"))


def _mark_parts(stage: Stage, top: float, broken: str) -> list[Shape]:
    """Return the names of the parts of a stage; the broken one has a cross."""
    first = top + BOX_HEIGHT / 2 + 4 - 8 * (len(stage.inside) - 1)
    shapes: list[Shape] = []
    for index, part in enumerate(stage.inside):
        y = first + 16 * index
        is_broken = part == broken
        if index == 0:
            at = top + BOX_HEIGHT / 2
            shapes.append(line((LEFT + BOX_WIDTH, at), (MARK_X - 16, at), style="muted"))
        mark = "✕" if is_broken else "•"
        style: Style = "negative" if is_broken else "muted"
        shapes.append(Words(x=MARK_X - 6, y=y, text=mark, style=style, size=12.0))
        shapes.append(
            Words(x=MARK_X + 6, y=y, text=prose(f"part-{part}"), anchor="start",
                  style="strong" if is_broken else "", size=11.0)
        )  # fmt: skip
    return shapes
