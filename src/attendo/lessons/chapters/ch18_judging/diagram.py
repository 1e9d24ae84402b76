"""The diagram of lesson 18: which n-grams of the hypothesis the reference has, too."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from attendo.lessons.chapters.ch18_judging.hand_scores import (
    hand_bleu,
    list_ngrams,
    tokenize,
)
from attendo.lessons.diagrams.shapes import Box, Diagram, Words, text_width
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from attendo.lessons.diagrams.shapes import Shape

prose = Prose("attendo.lessons.chapters.ch18_judging")

LEFT, RIGHT_EDGE = 74.0, 460.0
MAX_PITCH, LINE_HEIGHT, ROW_GAP = 47.0, 11.0, 14.0
MAX_TOKENS = 24
WORD_SIZE = 9.5


def draw_matches(values: Mapping[str, Any]) -> Diagram:
    """Return every n-gram of the hypothesis as a bar under its words, filled if it counts."""
    hypothesis, reference = values["hypothesis"], values["reference"]
    ours, theirs = tokenize(hypothesis)[:MAX_TOKENS], tokenize(reference)
    found = hand_bleu(hypothesis, reference)
    pitch = min(MAX_PITCH, (RIGHT_EDGE - LEFT) / max(len(ours), 1))
    shapes: list[Shape] = []
    if all(text_width(word, WORD_SIZE) <= pitch for word in ours):
        shapes += [
            Words(x=LEFT + pitch * (index + 0.5), y=14, text=word, size=WORD_SIZE)
            for index, word in enumerate(ours)
        ]
    y = 26.0
    for row, counted in enumerate(found.orders):
        label = f"{counted.matches} / {counted.total}"
        shapes += [
            Words(x=0, y=y + 11, text=f"p{'₁₂₃₄'[row]}", anchor="start", style="strong"),
            Words(x=LEFT - 8, y=y + 11, text=label, anchor="end", style="muted", size=11),
        ]
        matched = match_positions(ours, theirs, counted.order)
        for start, is_match in enumerate(matched):
            shapes.append(
                Box(
                    x=LEFT + pitch * start + 2,
                    y=y + LINE_HEIGHT * (start % counted.order),  # bars of one line are apart
                    width=pitch * counted.order - 4,
                    height=LINE_HEIGHT - 3,
                    part="attention" if is_match else "plain",
                    round=3,
                )
            )
        y += LINE_HEIGHT * counted.order + ROW_GAP
    penalty, score = (
        format_number(one, digits) for one, digits in ((found.brevity_penalty, 3), (found.score, 1))
    )
    shapes.append(
        Words(
            x=0,
            y=y + 12,
            text=f"100 · BP · (p₁ · p₂ · p₃ · p₄)^¼,  BP = {penalty}:  {score}",
            anchor="start",
            style="strong",
        )
    )
    title = prose("diagram")
    return Diagram(title, RIGHT_EDGE, y + 22, shapes, about=prose("diagram-about"))


def match_positions(ours: Sequence[str], theirs: Sequence[str], order: int) -> list[bool]:
    """Return for each n-gram whether it counts: the first ones, up to the number of the reference.

    >>> match_positions(["the", "the", "cat"], ["the", "cat"], 1)
    [True, False, True]
    """
    left = Counter(list_ngrams(theirs, order))
    matched = []
    for ngram in list_ngrams(ours, order):
        matched.append(left[ngram] > 0)
        left[ngram] -= 1
    return matched
