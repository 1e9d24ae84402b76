"""The diagram in the text of each lesson, drawn from the numbers of its inputs."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.lessons.blocks import Block, Note, Paragraph
from attendo.lessons.chapters.ch19_relatives.diagram import draw_relatives
from attendo.lessons.chapters.ch20_numbers_to_labels.diagram import draw_series_model
from attendo.lessons.diagrams import attention_diagrams, layer_diagrams, sequence_diagrams
from attendo.lessons.diagrams.learning_diagrams import draw_descent
from attendo.lessons.diagrams.machine import draw_machine
from attendo.lessons.diagrams.subword_diagrams import draw_merges

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Values = Mapping[str, Any]


def _draw_of_chapter(chapter: str, name: str, values: Values) -> Block:
    """Return a diagram that is defined next to its lesson."""
    module = import_module(f"attendo.lessons.chapters.{chapter}.diagram")
    drawn: Block = getattr(module, name)(values)
    return drawn


DIAGRAMS: dict[int, Callable[[Values], Block]] = {
    1: lambda _: sequence_diagrams.draw_bottleneck(),
    2: lambda _: layer_diagrams.draw_lookup(),
    3: lambda _: layer_diagrams.draw_clocks(),
    4: attention_diagrams.draw_one_word,
    5: lambda _: attention_diagrams.draw_saturation(),
    6: attention_diagrams.draw_heads,
    7: lambda _: attention_diagrams.draw_masks(),
    8: layer_diagrams.draw_add_and_norm,
    9: layer_diagrams.draw_chain_rule,
    10: layer_diagrams.draw_feed_forward,
    11: lambda _: replace(draw_machine(), is_map=True),
    12: sequence_diagrams.draw_softmax,
    13: lambda _: sequence_diagrams.draw_teacher_forcing(),
    14: sequence_diagrams.draw_beam,
    15: lambda _: sequence_diagrams.draw_path_lengths(),
    18: lambda values: _draw_of_chapter("ch18_judging", "draw_matches", values),
    21: lambda values: _draw_of_chapter("ch21_break_it", "draw_parts", values),
    22: lambda values: _draw_of_chapter("ch22_since_2017", "draw_layers", values),
    19: lambda _: draw_relatives(),
    20: draw_series_model,
    16: draw_merges,
    17: draw_descent,
}
"""Each function gets the inputs of its lesson by name."""


PARAGRAPHS_BEFORE = {1: 5, 3: 5, 4: 6, 5: 3, 7: 6, 9: 5, 12: 5, 13: 2, 14: 4, 15: 3, 16: 4, 17: 3}
"""How many paragraphs and notes explain what the diagram of a lesson shows; one in the others."""


def insert_diagram(number: int, blocks: Sequence[Block], values: Values) -> list[Block]:
    """Return the blocks of a lesson with its diagram after the paragraphs that explain it.

    The formulas and tables of a paragraph stay next to it.
    """
    draw = DIAGRAMS.get(number)
    if draw is None:
        return [*blocks]
    starts = [index for index, one in enumerate(blocks) if isinstance(one, Paragraph | Note)]
    later = starts[PARAGRAPHS_BEFORE.get(number, 1) :]
    before = later[0] if later else len(blocks)
    return [*blocks[:before], draw(values), *blocks[before:]]
