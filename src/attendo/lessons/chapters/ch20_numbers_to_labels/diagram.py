"""The diagram of lesson 20: a month of numbers goes in, a week of labels comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.lessons.chapters.ch20_numbers_to_labels.month import PLAIN_LABELS, month_of
from attendo.lessons.chapters.ch20_numbers_to_labels.tiny_forecaster import forecast
from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.lessons.blocks import Label
    from attendo.lessons.diagrams.shapes import Part, Shape

prose = Prose("attendo.lessons.chapters.ch20_numbers_to_labels")

LEFT, RIGHT, STACK = 0.0, 260.0, 200.0
CELL, PITCH = 44.0, 52.0
NUM_DAYS = 3
OUTPUT_Y, HEAD_Y, STACK_Y, POSITION_Y, LAYER_Y, INPUT_Y = 26.0, 84.0, 142.0, 200.0, 258.0, 320.0


def draw_series_model(values: Mapping[str, Any]) -> Diagram:
    """Return the way of a month of temperatures to the probabilities of the next days."""
    month = month_of(values["temperatures"], values["warmer"], values["missing"])
    numbers = [format_number(month[day], 1) if month[day] == month[day] else "–" for day in (0, 1)]
    last = format_number(month[-1], 1) if month[-1] == month[-1] else "–"
    probabilities = forecast(month)[:NUM_DAYS]
    shapes: list[Shape] = [
        Words(x=LEFT, y=INPUT_Y + 48, text=prose("thirty-days"), anchor="start", style="muted"),
        Words(x=RIGHT, y=INPUT_Y + 48, text=prose("days-before"), anchor="start", style="muted"),
        Words(x=RIGHT, y=14, text=prose("probability-of-typhoon"), anchor="start", style="muted"),
        *_cells(LEFT, INPUT_Y, [*numbers, "…", last], "input"),
        *_cells(RIGHT, INPUT_Y, ["<sos>", *PLAIN_LABELS, "…"], "input"),
        *_cells(RIGHT, OUTPUT_Y, [*(format_number(one, 2) for one in probabilities), "…"],
                "output"),
        *_stack(LEFT, LAYER_Y, prose("number-layer"), "attention", INPUT_Y),
        *_stack(LEFT, POSITION_Y, prose("positions"), "plain", LAYER_Y),
        *_stack(LEFT, STACK_Y, prose("encoder"), "feed", POSITION_Y),
        *_stack(RIGHT, LAYER_Y, prose("label-table"), "plain", INPUT_Y),
        *_stack(RIGHT, POSITION_Y, prose("positions"), "plain", LAYER_Y),
        *_stack(RIGHT, STACK_Y, prose("decoder"), "feed", POSITION_Y),
        *_stack(RIGHT, HEAD_Y, prose("label-head"), "attention", STACK_Y),
        arrow((RIGHT + STACK / 2, HEAD_Y), (RIGHT + STACK / 2, OUTPUT_Y + 28)),
        arrow((LEFT + STACK, STACK_Y + 14), (RIGHT, STACK_Y + 14), style="memory", width=2),
    ]  # fmt: skip
    return Diagram(
        prose("diagram-title"),
        RIGHT + STACK,
        INPUT_Y + 56,
        shapes,
        about=prose("diagram-about"),
    )


def _cells(left: float, y: float, texts: list[str], part: Part) -> list[Shape]:
    return [
        Box(x=left + index * PITCH, y=y, width=CELL, height=28, text=text, part=part, size=11)
        for index, text in enumerate(texts)
    ]


def _stack(x: float, y: float, text: Label, part: Part, below: float) -> list[Shape]:
    """Return a box and the arrow from what is below it."""
    middle = x + STACK / 2
    return [
        Box(x=x, y=y, width=STACK, height=28, text=text, part=part),
        arrow((middle, below), (middle, y + 28)),
    ]
