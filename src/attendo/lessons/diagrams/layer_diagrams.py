"""Diagrams of the parts of a layer: lookup, clocks, add & norm, the chain rule, feed-forward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.lessons.diagrams.attention_diagrams import cell, vector_text
from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow, curve, line
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number
from attendo.model.positional_encoding import sinusoidal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.lessons.diagrams.shapes import Part, Shape

prose = Prose("attendo.lessons.diagrams")

NUM_ROWS, ROW = 5, 2
"""The rows of the table that are drawn, and the one that is looked up."""


def draw_lookup() -> Diagram:
    """Return the way from a word to its id, to a one-hot row, to its row of the table."""
    side, height = 34.0, 26.0
    shapes: list[Shape] = [
        Box(x=0, y=64, width=84, height=28, text=prose("word"), part="input"),
        arrow((84, 78), (112, 78)),
        Box(x=112, y=64, width=44, height=28, text=f"id {ROW}", part="plain"),
        arrow((156, 78), (184, 78)),
        Words(x=199, y=12, text=prose("one-hot"), style="muted", size=11),
        Words(x=318, y=12, text=prose("embedding-table"), style="muted", size=11),
    ]
    for row in range(NUM_ROWS):
        y = 22 + row * height
        is_chosen = row == ROW
        shapes.append(
            Box(x=184, y=y, width=30, height=height - 3, text="1" if is_chosen else "0",
                shade=0.9 if is_chosen else 0.0, round=3)
        )  # fmt: skip
        shapes += [
            Box(x=250 + column * side, y=y, width=side - 3, height=height - 3,
                text=f"{row},{column + 1}", shade=0.6 if is_chosen else 0.08, round=3, size=10)
            for column in range(4)
        ]  # fmt: skip
    chosen = 22 + ROW * height + height / 2
    below = 22 + NUM_ROWS * height + 26
    shapes += [
        Words(x=232, y=chosen + 4, text="·"),
        arrow((388, chosen), (410, chosen), (410, below + 12), (390, below + 12), style="strong"),
        *(
            Box(x=250 + column * side, y=below, width=side - 3, height=height - 3,
                text=f"{ROW},{column + 1}", shade=0.6, round=3, size=10)
            for column in range(4)
        ),
        Words(x=240, y=below + 16, text=prose("vector"), anchor="end", style="strong"),
    ]  # fmt: skip
    return Diagram(prose("lookup"), 414, below + 28, shapes, about=prose("lookup-about"))


def draw_clocks(num_positions: int = 6, d_model: int = 8) -> Diagram:
    """Return a clock per position and frequency: its hand shows sine and cosine."""
    table = sinusoidal(num_positions, d_model)
    left, pitch, radius = 96.0, 58.0, 19.0
    shapes: list[Shape] = [
        Words(x=left + pitch * column + radius, y=12, text=f"pos {column}", style="muted", size=11)
        for column in range(num_positions)
    ]
    for pair in range(d_model // 2):
        y = 44 + pair * 54
        frequency = 10_000 ** (2 * pair / d_model)
        shapes.append(
            Words(x=0, y=y + 4, text=f"i = {pair},  1/{frequency:g}", anchor="start", style="muted")
        )
        for column in range(num_positions):
            x = left + pitch * column + radius
            sine, cosine = (float(table[column, 2 * pair + one]) for one in (0, 1))
            shapes += [
                Box(x=x - radius, y=y - radius, width=2 * radius, height=2 * radius, round=radius),
                arrow((x, y), (x + (radius - 2) * sine, y - (radius - 2) * cosine), style="strong"),
            ]
    height = 44 + 54 * (d_model // 2) - 26
    width = left + pitch * (num_positions - 1) + 2 * radius
    return Diagram(prose("clocks"), width, height, shapes, about=prose("clocks-about"))


def draw_add_and_norm(values: Mapping[str, Any]) -> Diagram:
    """Return the residual connection around a sub-layer and the norm after it, with numbers."""
    x, sublayer = (
        torch.tensor(values[name], dtype=torch.float64).flatten() for name in ("x", "sublayer")
    )
    total = x + sublayer if values["residual"] else sublayer
    normed = torch.nn.functional.layer_norm(total, total.shape, eps=values["eps"])
    output = values["gamma"] * normed + values["beta"]
    center, width = 190.0, 250.0
    left = center - width / 2
    shapes: list[Shape] = [
        Words(x=0, y=24, text="x", anchor="start", style="muted"),
        cell(left, 6, vector_text(x, 1), width=width, part="input"),
        arrow((center, 34), (center, 84)),
        Box(x=center - 80, y=84, width=160, height=36, text="Sublayer", part="attention"),
        Words(x=center + 90, y=106, text=vector_text(sublayer, 1), anchor="start", style="muted"),
        arrow((center, 120), (center, 152)),
        Box(x=center - 14, y=152, width=28, height=28, text="+", part="norm", round=14, size=16),
        Words(x=0, y=206, text="x + Sublayer(x)" if values["residual"] else "Sublayer(x)",
              anchor="start", style="muted"),
        arrow((center, 180), (center, 216)),
        cell(left, 216, vector_text(total, 1), width=width),
        arrow((center, 244), (center, 274)),
        Box(x=center - 80, y=274, width=160, height=36, text="LayerNorm", part="norm"),
        arrow((center, 310), (center, 340)),
        cell(left, 340, vector_text(output, 3), width=width, part="output"),
    ]  # fmt: skip
    if values["residual"]:
        around = center - 104
        shapes.append(
            arrow((center, 58), (around, 58), (around, 166), (center - 14, 166), style="residual")
        )
    return Diagram(prose("add-and-norm"), 400, 370, shapes, about=prose("add-and-norm-about"))


def draw_chain_rule(values: Mapping[str, Any]) -> Diagram:
    """Return the three units with every value forwards and every factor of the chain rule back."""
    from attendo.lessons.chapters.ch09_residuals.gradient_paths import run_network

    x, weights = values["x"], (values["w1"], values["w2"], values["w3"])
    skip, target = values["skip"], values["target"]
    found = run_network(x, weights, skip=skip, target=target)
    _, w2, w3 = weights
    nodes = [("x", x), ("h₁", found.h1), ("h₂", found.h2), ("y", found.y), ("L", found.loss)]
    factors = [
        (("h₁(1−h₁)", found.h1 * (1 - found.h1)), ("x", x)),
        (("w₂", w2), ("h₂(1−h₂)", found.h2 * (1 - found.h2))),
        (("w₃", w3), ("y(1−y)", found.y * (1 - found.y))),
        (("−2(t−y)", -2 * (target - found.y)),),
    ]
    pitch, top = 101.0, 86.0
    shapes: list[Shape] = []
    for index, (name, value) in enumerate(nodes):
        left = index * pitch
        text = f"{name}\n{format_number(value, 4)}"
        part: Part = "input" if not index else "output" if name in ("y", "L") else "attention"
        shapes.append(Box(x=left, y=top, width=60, height=40, text=text, part=part))
    for index, pair in enumerate(factors):
        left, right = index * pitch + 60, (index + 1) * pitch
        shapes += [
            arrow((left, top + 12), (right, top + 12)),
            arrow((right, top + 30), (left, top + 30), style="negative"),
        ]
        for row, (name, factor) in enumerate(pair):
            y = top + 58 + 32 * row
            shapes += [
                Words(x=(left + right) / 2, y=y, text=name, style="negative", size=11),
                Words(x=(left + right) / 2, y=y + 14, text=format_number(factor, 4), size=11),
            ]
    if skip:
        over = pitch + 30
        end = 3 * pitch + 30
        shapes += [
            curve((over, top), ((over + end) / 2, 4), (end, top), style="residual", width=1.8),
            Words(
                x=(over + end) / 2, y=30, text=f"w_r = {format_number(skip, 2)}", style="residual"
            ),
        ]
    long_way = " · ".join(format_number(one, 4) for pair in reversed(factors) for _, one in pair)
    below = top + 142
    shapes += [
        line((0, below - 24), (4 * pitch + 60, below - 24), style="muted"),
        *_product_lines(prose("long-way"), long_way, found.long_way, below),
    ]
    height = below + 38
    if skip:
        short = [
            *(one for _, one in factors[3]),
            factors[2][1][1],
            skip,
            *(f for _, f in factors[0]),
        ]
        text = " · ".join(format_number(one, 4) for one in short)
        shapes += _product_lines(prose("short-way"), text, found.short_way, below + 46)
        height += 46
    title = prose("chain-rule")
    return Diagram(title, 4 * pitch + 60, height, shapes, about=prose("chain-rule-about"))


def _product_lines(label: Any, product: str, value: float, y: float) -> list[Shape]:
    """Return a product of factors and its value below its name."""
    return [
        Words(x=0, y=y, text=label, anchor="start", style="muted", size=11),
        Words(
            x=0, y=y + 18, text=f"{product} = {format_number(value, 6)}", anchor="start", size=11
        ),
    ]


LABEL_WIDTH, MAX_UNITS = 112.0, 20


def draw_feed_forward(values: Mapping[str, Any]) -> Diagram:
    """Return how a vector becomes wider, loses its negative numbers and becomes narrow again."""
    d_model, d_ff = int(values["d_model"]), int(values["d_ff"])
    narrow, wide = 5, max(2, min(MAX_UNITS, round(5 * d_ff / d_model)))
    first, last = _unit_row(narrow, 8, "input"), _unit_row(narrow, 224, "output")
    hidden, relu = _unit_row(wide, 88, "feed"), _unit_row(wide, 144, "feed")
    middles = [[one.x + one.width / 2 for one in row] for row in (first, hidden, relu, last)]
    lines = [
        *(line((a, 28), (b, 88), style="muted", width=0.5) for a in middles[0] for b in middles[1]),
        *(arrow((a, 108), (a, 144)) for a in middles[1]),
        *(
            line((a, 164), (b, 224), style="muted", width=0.5)
            for a in middles[2]
            for b in middles[3]
        ),
    ]
    texts = (
        (22, f"d_model = {d_model}"),
        (62, "· W₁ + b₁"),
        (102, f"d_ff = {d_ff}"),
        (130, "max(0, ·)"),
        (198, "· W₂ + b₂"),
        (238, f"d_model = {d_model}"),
    )
    labels = [Words(x=0, y=y, text=text, anchor="start", style="muted") for y, text in texts]
    title = prose("feed-forward", d_model=d_model, d_ff=d_ff)
    width = LABEL_WIDTH + MAX_UNITS * 16
    return Diagram(title, width, 250, [*lines, *first, *hidden, *relu, *last, *labels])


def _unit_row(count: int, y: float, part: Part) -> list[Box]:
    """Return the units of a layer, centered."""
    size = 16.0
    left = LABEL_WIDTH + (MAX_UNITS - count) * size / 2
    return [
        Box(x=left + index * size, y=y, width=size - 3, height=20, part=part, round=3)
        for index in range(count)
    ]
