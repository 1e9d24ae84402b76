"""The diagram of lesson 22: a layer of the paper next to a layer as it is common today."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from attendo.lessons.blocks import Label
    from attendo.lessons.diagrams.shapes import Part, Shape

prose = Prose("attendo.lessons.chapters.ch22_since_2017")

COLUMN, BOX_WIDTH, WIDTH = 238.0, 176.0, 456.0
GAP, BOX_HEIGHT, CIRCLE, TOP = 22.0, 38.0, 28.0, 48.0

Step = tuple[str, "Label", "Part"]


def draw_layers(_: Mapping[str, Any]) -> Diagram:
    """Return both layers, the input at the bottom; a residual connection goes around each part."""
    attention: tuple[Label, Label] = (prose("box-attention"), prose("box-grouped-attention"))
    network: tuple[Label, Label] = (prose("box-network"), prose("box-gated-network"))
    post: list[Step] = [
        ("part", attention[0], "attention"),
        ("add", "+", "norm"),
        ("norm", prose("box-layer-norm"), "norm"),
        ("part", network[0], "feed"),
        ("add", "+", "norm"),
        ("norm", prose("box-layer-norm"), "norm"),
    ]
    pre: list[Step] = [
        ("norm", "RMSNorm", "norm"),
        ("part", attention[1], "attention"),
        ("add", "+", "norm"),
        ("norm", "RMSNorm", "norm"),
        ("part", network[1], "feed"),
        ("add", "+", "norm"),
    ]
    shapes: list[Shape] = []
    for column, (title, steps) in enumerate(((prose("box-2017"), post), (prose("box-today"), pre))):
        shapes += _draw_column(column * COLUMN, title, steps, "norm" if steps is post else "add")
    height = TOP + sum(_step_height(step) + GAP for step in post) + 30
    return Diagram(prose("diagram"), WIDTH, height, shapes, about=prose("diagram-about"))


def _step_height(step: Step) -> float:
    return CIRCLE if step[0] == "add" else BOX_HEIGHT


def _draw_column(left: float, title: Label, steps: list[Step], last: str) -> list[Shape]:
    """Return one layer; `last` is the kind of step that each residual connection begins after."""
    center, around = left + 30 + BOX_WIDTH / 2, left + 14
    y = TOP + sum(_step_height(step) + GAP for step in steps)  # the top of what is drawn already
    branch = y - GAP / 2  # where the next residual connection begins
    shapes: list[Shape] = [
        Words(x=center, y=14, text=title, style="strong"),
        Words(x=center, y=y + 16, text="x", style="muted"),
        arrow((center, TOP), (center, TOP - 22)),
    ]
    for kind, text, part in steps:
        height = _step_height((kind, text, part))
        width = CIRCLE if kind == "add" else BOX_WIDTH
        size, corner = (16.0, CIRCLE / 2) if kind == "add" else (11.0, 5.0)
        top = y - GAP - height
        shapes += [
            arrow((center, y), (center, top + height)),
            Box(x=center - width / 2, y=top, width=width, height=height, text=text, part=part,
                round=corner, size=size),
        ]  # fmt: skip
        if kind == "add":
            middle = top + height / 2
            shapes.append(
                arrow((center, branch), (around, branch), (around, middle),
                      (center - CIRCLE / 2, middle), style="residual")
            )  # fmt: skip
        y = top
        if kind == last:
            branch = y - GAP / 2
    return shapes
