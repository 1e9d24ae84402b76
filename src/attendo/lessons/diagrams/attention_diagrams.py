"""Diagrams of attention: one word from X to Z, saturation, heads, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number
from attendo.model.attention import attention_scores, scaled_dot_product
from attendo.model.masks import causal_mask, padding_mask

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.lessons.diagrams.shapes import Part, Shape

prose = Prose("attendo.lessons.diagrams")

SUBSCRIPTS = "₁₂₃₄₅₆₇₈₉"


def cell(x: float, y: float, text: Label, *, width: float = 96, **options: Any) -> Box:
    """Return a box of one number or vector."""
    return Box(x=x, y=y, width=width, height=28, text=text, **options)


def vector_text(values: Sequence[float] | Tensor, digits: int = 2) -> str:
    """Return a vector as a learner writes it."""
    return " ".join(format_number(float(one), digits) for one in values)


def draw_one_word(values: Mapping[str, Any]) -> Diagram:
    """Return the way of one word through attention, with the numbers of the inputs."""
    x, *matrices = (
        torch.tensor(values[name], dtype=torch.float32) for name in ("x", "w_q", "w_k", "w_v")
    )
    word = _word_index(values, len(x))
    query, key, value = (x @ matrix for matrix in matrices)
    factor = None if values["scale"] else 1.0
    raw = attention_scores(query, key, scale=1.0)[word]
    scaled = attention_scores(query, key, scale=factor)[word]
    output, weights = scaled_dot_product(query, key, value, need_weights=True, scale=factor)
    left, pitch = 84.0, 120.0
    columns = [left + pitch * index for index in range(len(x))]
    middle = columns[len(columns) // 2] + 48
    shapes: list[Shape] = [
        *_row_label(f"x{SUBSCRIPTS[word]}", 20),
        cell(middle - 48, 6, vector_text(x[word], 1), part="input"),
        *_row_label("q = x · W_Q", 76),
        cell(middle - 48, 62, vector_text(query[word], 1), part="attention"),
        arrow((middle, 34), (middle, 62)),
    ]
    rows: tuple[tuple[str, float, list[str], Part], ...] = (
        ("k = x · W_K", 118, [vector_text(one, 1) for one in key], "cross"),
        ("q · k", 174, [format_number(float(one), 2) for one in raw], "plain"),
        ("/ √d_k", 230, [format_number(float(one), 2) for one in scaled], "plain"),
        ("softmax", 286, [format_number(float(one), 3) for one in weights[word]], "plain"),
        ("v = x · W_V", 342, [vector_text(one, 1) for one in value], "feed"),
    )
    for row, (label, y, texts, part) in enumerate(rows):
        shapes += _row_label(label, y + 14)
        for index, text in enumerate(texts):
            share = float(weights[word, index]) if label == "softmax" else None
            shapes.append(cell(columns[index], y, text, part=part, shade=share))
            center = columns[index] + 48
            if row:
                shapes.append(arrow((center, y - 28), (center, y)))
            else:
                shapes.append(arrow((middle, 90), (center, y)))
    total = 404.0
    shapes += [arrow((column + 48, 370), (middle, total)) for column in columns]
    shapes += [
        *_row_label("z = ∑ a · v", total + 14),
        cell(middle - 70, total, vector_text(output[word], 3), width=140, part="output"),
    ]
    title = prose("one-word", word=f"x{SUBSCRIPTS[word]}")
    return Diagram(title, left + pitch * len(x), total + 34, shapes, about=prose("one-word-about"))


def _word_index(values: Mapping[str, Any], num_words: int) -> int:
    """Return the word that the learner has chosen, or the first."""
    names = [f"x{SUBSCRIPTS[index]}" for index in range(num_words)]
    return names.index(values["word"]) if values.get("word") in names else 0


def _row_label(text: str, y: float) -> list[Shape]:
    return [Words(x=0, y=y + 4, text=text, anchor="start", style="muted")]


def draw_saturation(scores: Sequence[float] = (1.0, 0.5, -0.3, -1.0), d_k: int = 64) -> Diagram:
    """Return the softmax of some scores, and of the same scores times √d_k."""
    factor = d_k**0.5
    left, pitch = 96.0, 84.0
    shapes: list[Shape] = []
    rows = ((prose("with-scaling"), 1.0), (prose("without-scaling"), factor))
    for row, (label, times) in enumerate(rows):
        top = 22 + row * 130
        shapes.append(Words(x=0, y=top - 8, text=label, anchor="start", style="strong"))
        shapes += [*_row_label("q · k", top + 14), *_row_label("softmax", top + 70)]
        weights = torch.tensor([times * one for one in scores]).softmax(-1)
        for index, score in enumerate(scores):
            x = left + pitch * index
            share = float(weights[index])
            shapes += [
                cell(x, top, format_number(times * score, 1), width=72),
                arrow((x + 36, top + 28), (x + 36, top + 56)),
                cell(x, top + 56, format_number(share, 3), width=72, shade=share),
            ]
    title = prose("saturation", factor=format_number(factor, 0))
    return Diagram(title, left + pitch * len(scores), 242, shapes)


def draw_heads(values: Mapping[str, Any]) -> Diagram:
    """Return how the vectors are split into heads and concatenated."""
    d_model, num_heads = int(values["d_model"]), int(values["num_heads"])
    size = d_model // num_heads
    shown = min(num_heads, 8)
    width = 440.0
    pitch = width / shown
    names = [f"{index + 1}" for index in range(shown)]
    if shown < num_heads:
        names[-2:] = ["…", str(num_heads)]
    concatenated = f"Concat:  {num_heads} × {size} = {d_model}"
    shapes: list[Shape] = [
        Box(x=0, y=0, width=width, height=28, text=f"X   (n, {d_model})", part="input"),
        arrow((width / 2, 28), (width / 2, 48)),
        Box(x=0, y=48, width=width, height=28, text=prose("projections"), part="feed"),
        Box(x=0, y=216, width=width, height=28, text=concatenated, part="cross"),
        arrow((width / 2, 244), (width / 2, 264)),
        Box(x=width / 2 - 70, y=264, width=140, height=28, text="· W_O", part="output"),
        arrow((width / 2, 292), (width / 2, 312)),
        Box(x=0, y=312, width=width, height=28, text=f"(n, {d_model})", part="input"),
    ]
    for index, name in enumerate(names):
        x = index * pitch
        center = x + pitch / 2
        label = name if name == "…" else f"{name}\n{size}"
        shapes += [
            arrow((center, 76), (center, 96)),
            Box(x=x + 3, y=96, width=pitch - 6, height=40, text=label, part="attention"),
            arrow((center, 136), (center, 156)),
            Box(x=x + 3, y=156, width=pitch - 6, height=28, text="Z", part="cross"),
            arrow((center, 184), (center, 216)),
        ]
    title = prose("heads", num_heads=num_heads, size=size, d_model=d_model)
    return Diagram(title, width, 340, shapes)


def draw_masks(words: Sequence[str] = ("I", "am", "Sam", "<pad>")) -> Diagram:
    """Return the look-ahead mask and the padding mask as squares of keys and queries."""
    length = len(words)
    ids = torch.tensor([[0 if word == "<pad>" else 1 for word in words]])
    masks = (
        (prose("look-ahead"), causal_mask(length)),
        (prose("padding"), padding_mask(ids)[0].expand(length, length)),
        (prose("both-masks"), causal_mask(length) & padding_mask(ids)[0]),
    )
    side, gap, left, right = 26.0, 34.0, 46.0, 8.0  # the last name is wider than its column
    shapes: list[Shape] = []
    for index, (label, mask) in enumerate(masks):
        start = left + index * (length * side + gap)
        shapes.append(Words(x=start + length * side / 2, y=14, text=label, style="strong", size=11))
        for row in range(length):
            if not index:
                shapes.append(
                    Words(
                        x=start - 6,
                        y=76 + row * side + 17,
                        text=words[row],
                        anchor="end",
                        style="muted",
                        size=11,
                    )
                )
            for column in range(length):
                is_visible = bool(mask[row, column])
                shapes.append(
                    Box(
                        x=start + column * side,
                        y=76 + row * side,
                        width=side - 2,
                        height=side - 2,
                        text="" if is_visible else "−∞",
                        shade=0.6 if is_visible else 0.0,
                        round=3,
                        size=10,
                    )
                )
        shapes += [
            _upright(word, start + column * side + side / 2, 70, row=column % 2)
            for column, word in enumerate(words)
        ]
    width = left + 3 * length * side + 2 * gap + right
    return Diagram(prose("masks"), width, 76 + length * side, shapes, about=prose("masks-about"))


def _upright(word: str, x: float, y: float, *, row: int) -> Words:
    """Return the name of a column; neighbors are at different heights, so that they fit."""
    return Words(x=x, y=y - 14 * row, text=word, style="muted", size=10)
