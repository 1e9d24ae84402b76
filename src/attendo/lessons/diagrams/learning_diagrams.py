"""The diagram of lesson 17: gradient descent on the curve of a loss."""

from __future__ import annotations

from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING, Any

from attendo.lessons.diagrams.shapes import Box, Diagram, Line, Words, arrow, line
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.lessons.diagrams.shapes import Shape

prose = Prose("attendo.lessons.diagrams")

LEFT, TOP, WIDTH, HEIGHT = 48.0, 24.0, 380.0, 210.0
NUM_POINTS = 61
NUM_DRAWN = 5
DOT = 9.0


def draw_descent(values: Mapping[str, Any]) -> Diagram:
    """Return the loss as a curve over the weight, and the first steps down on it."""
    from attendo.lessons.chapters.ch17_learning.optimization import (
        INPUT,
        TARGET,
        descend,
        loss_of,
    )

    best = TARGET / INPUT
    weights = [step.weight for step in descend(values["weight"], values["rate"], NUM_DRAWN)]
    reach = 1.15 * max(1.0, *(abs(weight - best) for weight in weights))
    highest = loss_of(best + reach)

    def point_at(weight: float) -> tuple[float, float]:
        x = LEFT + WIDTH * (weight - best + reach) / (2 * reach)
        return round(x, 1), round(TOP + HEIGHT * (1 - loss_of(weight) / highest), 1)

    curve = [point_at(best + reach * (2 * one / (NUM_POINTS - 1) - 1)) for one in range(NUM_POINTS)]
    bottom = TOP + HEIGHT + 8
    shapes: list[Shape] = [
        Words(x=0, y=14, text="L(w)", anchor="start", style="strong"),
        line((LEFT, bottom), (LEFT + WIDTH, bottom), style="muted"),
        Line(path="M" + "L".join(f"{x} {y}" for x, y in curve), style="muted", width=1.6,
             has_head=False),
        line(point_at(best), (point_at(best)[0], bottom), style="dashed"),
        Words(x=point_at(best)[0], y=bottom + 18, text=f"w = {best:g}", style="strong"),
        Words(x=LEFT + WIDTH, y=bottom + 18, text=format_number(best + reach, 2), anchor="end",
              style="muted", size=11),
        Words(x=LEFT, y=bottom + 18, text=format_number(best - reach, 2), anchor="start",
              style="muted", size=11),
    ]  # fmt: skip
    points = [point_at(weight) for weight in weights]
    for start, end in pairwise(points):
        if hypot(start[0] - end[0], start[1] - end[1]) > 2 * DOT:
            share = 1 - DOT / hypot(end[0] - start[0], end[1] - start[1])  # the head is not hidden
            tip = tuple(one + share * (two - one) for one, two in zip(start, end, strict=True))
            shapes.append(arrow(start, (round(tip[0], 1), round(tip[1], 1)), style="strong"))
    for number, (x, y) in enumerate(points):
        shapes.append(
            Box(x=x - DOT / 2, y=y - DOT / 2, width=DOT, height=DOT, round=DOT / 2,
                part="attention" if number else "output")
        )  # fmt: skip
    return Diagram(
        prose("descent"), LEFT + WIDTH + 4, bottom + 24, shapes, about=prose("descent-about")
    )
