"""The diagram of lesson 19: the three stacks, and what each word sees in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import LocalizedText
from attendo.lessons.chapters.ch19_relatives.visibility import measure_visibility
from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.lessons.chapters.ch19_relatives.visibility import Mask
    from attendo.lessons.diagrams.shapes import Part, Shape

prose = Prose("attendo.lessons.chapters.ch19_relatives")

WIDTH, PITCH = 98.0, 120.0
SMALL = 11.0
CELL = 20.0
OUTPUT_Y, FEED_Y, CROSS_Y, SELF_Y, INPUT_Y, GRID_Y = 44.0, 96.0, 148.0, 200.0, 262.0, 338.0
LOWER_Y = 464.0
"""Where the second grid of the last stack begins."""


def draw_relatives() -> Diagram:
    """Return the encoder alone, the decoder alone, and both together."""
    seen = measure_visibility()
    shapes: list[Shape] = [
        *_stack(0, "BERT", prose("encoder-alone"), "the ___\ndrinks milk", "cat"),
        *_stack(1, "GPT", prose("decoder-alone"), "the cat\ndrinks", "milk", is_masked=True),
        *_stack(2, "T5", prose("its-encoder"), "spell en:\n3", ""),
        *_stack(3, "", prose("its-decoder"), "<sos>", "three", is_masked=True, has_source=True),
        *_grid(0, GRID_Y, seen.encoder_only, prose("sees-all")),
        *_grid(1, GRID_Y, seen.decoder_only, prose("sees-earlier")),
        *_grid(2, GRID_Y, seen.source, prose("sees-all")),
        *_grid(3, GRID_Y, seen.target, prose("sees-earlier")),
        *_grid(3, LOWER_Y, seen.target_to_source, prose("sees-source")),
    ]
    size = len(seen.target) * CELL
    return Diagram(
        prose("diagram-title"),
        3 * PITCH + WIDTH,
        LOWER_Y + size + 22,
        shapes,
        about=prose("diagram-about"),
    )


def _stack(
    column: int,
    name: str,
    kind: Label,
    read: str,
    output: str,
    *,
    is_masked: bool = False,
    has_source: bool = False,
) -> list[Shape]:
    x = column * PITCH
    middle = x + WIDTH / 2
    masked, attention = prose("masked"), prose("attention")
    if is_masked:
        attention = LocalizedText(f"{masked.en}\n{attention.en}", f"{masked.ko}\n{attention.ko}")

    def box(y: float, height: float, text: Label, part: Part) -> Box:
        return Box(x=x, y=y, width=WIDTH, height=height, text=text, part=part, size=SMALL)

    shapes: list[Shape] = [
        Words(x=middle, y=12, text=name, style="strong"),
        Words(x=middle, y=28, text=kind, style="muted", size=SMALL),
        arrow((middle, INPUT_Y), (middle, SELF_Y + 38)),
        box(INPUT_Y, 36, read, "input"),
        box(SELF_Y, 38, attention, "attention"),
        box(FEED_Y, 28, prose("feed-forward"), "feed"),
    ]
    if has_source:
        shapes += [
            arrow((middle, SELF_Y), (middle, CROSS_Y + 38)),
            box(CROSS_Y, 38, prose("cross-attention"), "cross"),
            arrow((middle, CROSS_Y), (middle, FEED_Y + 28)),
        ]
    else:
        shapes.append(arrow((middle, SELF_Y), (middle, FEED_Y + 28)))
    if output:
        shapes += [
            arrow((middle, FEED_Y), (middle, OUTPUT_Y + 28)),
            box(OUTPUT_Y, 28, output, "output"),
        ]
    else:  # the encoder of both: its output goes to the cross-attention
        turn = x + WIDTH + (PITCH - WIDTH) / 2
        points = ((x + WIDTH, FEED_Y + 14), (turn, FEED_Y + 14), (turn, CROSS_Y + 19))
        shapes.append(arrow(*points, (x + PITCH, CROSS_Y + 19), style="memory"))
    return shapes


def _grid(column: int, top: float, seen: Mask, label: Label) -> list[Shape]:
    """Return a mask as squares, shaded where a word (row) sees another (column)."""
    left = column * PITCH + (WIDTH - len(seen) * CELL) / 2
    shapes: list[Shape] = [
        Words(x=column * PITCH + WIDTH / 2, y=top - 10, text=label, style="muted", size=SMALL)
    ]
    for row, cells in enumerate(seen):
        for index, is_seen in enumerate(cells):
            shapes.append(
                Box(
                    x=left + index * CELL,
                    y=top + row * CELL,
                    width=CELL - 2,
                    height=CELL - 2,
                    shade=0.6 if is_seen else 0.0,
                    round=3,
                )
            )
    return shapes
