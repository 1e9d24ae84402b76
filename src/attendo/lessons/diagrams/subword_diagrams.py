"""The diagram of lesson 16: the pieces of a word after each merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.cells import cell_len

from attendo.lessons.diagrams.shapes import Box, Diagram, Words
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.lessons.diagrams.shapes import Part, Shape

prose = Prose("attendo.lessons.diagrams")

MAX_LETTERS = 11
MARGIN, MAX_WIDTH, CELL_WIDTH, ROW_HEIGHT = 92.0, 370.0, 42.0, 36.0


def draw_merges(values: Mapping[str, Any]) -> Diagram:
    """Return the word of the corpus that most merges change, after each of them."""
    from attendo.lessons.chapters.ch16_subwords.lesson import CORPUS
    from attendo.lessons.chapters.ch16_subwords.merges import (
        apply_merges,
        count_words,
        learn_merges,
        split_characters,
    )

    words = [word for word in count_words(values["corpus"]) if cell_len(word) <= MAX_LETTERS]
    corpus = values["corpus"] if words else CORPUS
    merges = learn_merges(corpus, values["merges"])
    word = max(
        words or count_words(CORPUS), key=lambda one: (len([*apply_merges(one, merges)]), len(one))
    )
    rows = [
        ("", split_characters(word)),
        *((merge.piece, split) for merge, split in apply_merges(word, merges)),
    ]
    width = min(CELL_WIDTH, MAX_WIDTH / (len(word) + 1))
    shapes: list[Shape] = []
    for row, (new_piece, split) in enumerate(rows):
        y = row * ROW_HEIGHT
        if new_piece:
            shapes.append(
                Words(x=MARGIN - 10, y=y + 19, text=f"+ {new_piece}", anchor="end", style="muted")
            )
        x = MARGIN
        for piece in split:
            size = width * len(piece)
            part: Part = "attention" if piece == new_piece else "input"
            shapes.append(Box(x=x, y=y, width=size - 4, height=28, text=piece, part=part))
            x += size
    total = MARGIN + width * (len(word) + 1)
    height = (len(rows) - 1) * ROW_HEIGHT + 28
    return Diagram(
        prose("merges", word=word), total, height, shapes, about=prose("merges-about", word=word)
    )
