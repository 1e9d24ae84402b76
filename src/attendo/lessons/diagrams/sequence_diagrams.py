"""Diagrams of sequences: the bottleneck, logits, teacher forcing, the beam, path lengths."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Any

from attendo.lessons.diagrams.attention_diagrams import cell
from attendo.lessons.diagrams.shapes import Box, Diagram, Words, arrow, curve, line
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number
from attendo.lessons.tiny_model import END, START

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.lessons.blocks import Label
    from attendo.lessons.diagrams.shapes import Part, Shape, Style

prose = Prose("attendo.lessons.diagrams")

NUM_WORDS = 4
SUBSCRIPTS = "₁₂₃₄₅₆₇"


def draw_bottleneck() -> Diagram:
    """Return a decoder that sees the last state, and one that attends to all of them."""
    shapes: list[Shape] = []
    pitch, side = 72.0, 46.0
    for row, label in enumerate((prose("one-vector"), prose("all-vectors"))):
        top = 26 + row * 156
        shapes.append(Words(x=0, y=top - 10, text=label, anchor="start", style="strong"))
        decoder = (NUM_WORDS * pitch + 60, top + 32)
        for index in range(NUM_WORDS):
            x = index * pitch
            center = x + side / 2
            shapes += [
                Box(
                    x=x,
                    y=top + 78,
                    width=side,
                    height=28,
                    text=f"x{SUBSCRIPTS[index]}",
                    part="input",
                ),
                arrow((center, top + 78), (center, top + 60)),
                Box(
                    x=x,
                    y=top + 32,
                    width=side,
                    height=28,
                    text=f"h{SUBSCRIPTS[index]}",
                    part="attention",
                ),
            ]
            if index:
                shapes.append(arrow((x - pitch + side, top + 46), (x, top + 46)))
            if row:
                shapes.append(
                    curve(
                        (center, top + 32),
                        ((center + decoder[0]) / 2, top - 16),
                        (decoder[0] + 18, top + 32),
                        style="memory",
                    )
                )
        if not row:
            start = (NUM_WORDS - 1) * pitch + side
            shapes.append(arrow((start, top + 46), (decoder[0], top + 46), style="memory", width=2))
        shapes.append(
            Box(
                x=decoder[0], y=decoder[1], width=84, height=28, text=prose("decoder"), part="cross"
            )
        )
    width = NUM_WORDS * pitch + 60 + 84
    return Diagram(prose("bottleneck"), width, 296, shapes, about=prose("bottleneck-about"))


def draw_softmax(values: Mapping[str, Any]) -> Diagram:
    """Return the logits of the tiny model and the probabilities that the softmax makes of them."""
    from attendo.lessons.chapters.ch12_softmax.lesson import SRC, TGT, train_model

    tiny = train_model(values["steps"])
    logits = tiny.teacher_force(SRC, TGT).logits[0]
    probabilities = (logits / values["temperature"]).softmax(-1)
    best = int(probabilities.argmax())
    middle, scale = 200.0, 90 / max(1.0, float(logits.abs().max()))
    shapes: list[Shape] = [
        Words(x=150, y=14, text="z", style="strong"),
        Words(x=368, y=14, text="softmax(z / τ)", style="strong"),
        line((middle - 50, 24), (middle - 50, 24 + 30 * len(logits)), style="muted"),
    ]
    for row, word in enumerate(tiny.tgt_words):
        y = 26.0 + 30 * row
        logit, share = float(logits[row]), float(probabilities[row])
        zero = middle - 50
        shapes += [
            Words(x=46, y=y + 16, text=word, anchor="end", style="strong" if row == best else ""),
            Box(x=zero + min(0.0, logit * scale), y=y, width=max(1.0, abs(logit * scale)),
                height=22, shade=0.9 if logit >= 0 else -0.9, round=2),
            Words(x=zero + (6 if logit < 0 else -6), y=y + 16, text=format_number(logit, 2),
                  anchor="start" if logit < 0 else "end", size=11),
            arrow((258, y + 11), (282, y + 11)),
            Box(x=290, y=y, width=max(1.0, 110 * share), height=22, shade=0.9, round=2),
            Words(x=296 + 110 * share, y=y + 16, text=format_number(share, 3), anchor="start",
                  size=11),
        ]  # fmt: skip
    return Diagram(prose("softmax"), 452, 30 + 30 * len(logits), shapes)


def draw_teacher_forcing(words: Sequence[str] = ("i", "am", "a", "student")) -> Diagram:
    """Return what the decoder reads in training and in translation."""
    steps = [*words, END]
    pitch, width = 92.0, 80.0
    shapes: list[Shape] = []
    for row, label in enumerate((prose("in-training"), prose("in-translation"))):
        top = 28 + row * 172
        shapes.append(Words(x=0, y=top - 12, text=label, anchor="start", style="strong"))
        for index, word in enumerate(steps):
            x = index * pitch
            center = x + width / 2
            given = [START, *words][index]
            shapes += [
                cell(x, top, word, width=width, part="output"),
                arrow((center, top + 50), (center, top + 28)),
                cell(x, top + 50, prose("decoder"), width=width, part="cross"),
                arrow((center, top + 104), (center, top + 78)),
                cell(x, top + 104, given, width=width, part="input" if not row else "plain"),
            ]
            if row and index:
                shapes.append(
                    arrow((x - pitch + width, top + 14), (x - 6, top + 14), (x - 6, top + 118),
                          (x, top + 118), style="memory")
                )  # fmt: skip
    return Diagram(
        prose("teacher-forcing"),
        pitch * len(steps) - (pitch - width),
        332,
        shapes,
        about=prose("teacher-forcing-about"),
    )


MAX_BEAM_STEPS = 5
MAX_CANDIDATES = 6


def draw_beam(values: Mapping[str, Any]) -> Diagram:
    """Return the tree of the search: what was kept, finished or pruned at each step."""
    from attendo.lessons.chapters.ch14_decoding.beam_steps import run_search, train_model

    result = run_search(beam_size=values["beam_size"], alpha=values["alpha"])
    words = train_model().tgt_words
    pitch, height, width = 84.0, 40.0, 64.0
    shapes: list[Shape] = [cell(0, 10, START, width=48, part="input")]
    ends = {0: (48.0, 24.0)}
    most = 1
    steps = [] if result.trace is None else result.trace.steps[:MAX_BEAM_STEPS]
    for number, step in enumerate(steps):
        x = 66 + number * pitch
        kept: dict[int, tuple[float, float]] = {}
        shown = sorted(step.candidates, key=lambda one: -one.score)[:MAX_CANDIDATES]
        most = max(most, len(shown))
        for row, one in enumerate(shown):
            y = 10 + row * height
            is_pruned = one.outcome == "pruned"
            part: Part = (
                "plain" if is_pruned else "output" if one.outcome == "finished" else "attention"
            )
            text = f"{words[one.id]}\n{format_number(exp(one.log_prob), 2)}"
            shapes.append(Box(x=x, y=y, width=width, height=32, text=text, part=part, size=10.5))
            if one.parent in ends:
                style: Style = "muted" if is_pruned else "strong"
                shapes.append(arrow(ends[one.parent], (x, y + 16), style=style))
            if one.slot is not None and one.outcome == "kept":
                kept[one.slot] = (x + width, y + 16)
        ends = kept
    legend: tuple[tuple[Label, Any], ...] = (
        (prose("kept"), "attention"),
        (prose("finished"), "output"),
        (prose("pruned"), "plain"),
    )
    below = 20 + most * height
    for index, (label, part) in enumerate(legend):
        shapes += [
            Box(x=index * 130, y=below, width=16, height=16, part=part, round=3),
            Words(
                x=index * 130 + 22, y=below + 12, text=label, anchor="start", style="muted", size=11
            ),
        ]
    total = 66 + max(1, len(steps)) * pitch - (pitch - width)
    title = prose("beam", beam_size=values["beam_size"])
    return Diagram(title, max(total, 390), below + 22, shapes, about=prose("beam-about"))


NODE, NODE_PITCH, LAYER_GAP = 24.0, 62.0, 32.0


def draw_path_lengths(num_words: int = 6) -> Diagram:
    """Return the way from the first word to the last in three kinds of layers."""
    last = num_words - 1
    width = last * NODE_PITCH + NODE
    shapes: list[Shape] = [
        _heading(prose("path-recurrent", steps=last), 14),
        *(_node(column, 26, is_on=True) for column in range(num_words)),
        *(
            arrow((left, 38), (left + NODE_PITCH - NODE, 38), style="strong")
            for left in (column * NODE_PITCH + NODE for column in range(last))
        ),
        _heading(prose("path-convolutional", layers=last), 84),
    ]
    base = 96 + last * LAYER_GAP
    for layer in range(num_words):  # a filter of width 3 reaches one word further per layer
        y = base - layer * LAYER_GAP
        shapes += [_node(column, y, is_on=column == layer) for column in range(num_words)]
        if layer:
            x = layer * NODE_PITCH
            start = (x - NODE_PITCH + NODE - 2, y + LAYER_GAP + 6)
            shapes.append(line(start, (x + 2, y + NODE - 6), style="strong", width=1.8))
    low = base + NODE + 44
    shapes.append(_heading(prose("path-attention"), low - 12))
    end = (last * NODE_PITCH + NODE / 2, low + NODE)
    for column in range(num_words):
        is_first = column == 0
        start = (column * NODE_PITCH + NODE / 2, low + 52)
        thickness = 1.8 if is_first else 0.8
        shapes += [
            line(start, end, style="strong" if is_first else "muted", width=thickness),
            _node(column, low, is_on=column == last),
            _node(column, low + 52, is_on=is_first),
        ]
    return Diagram(prose("paths"), width, low + 78, shapes)


def _node(column: int, y: float, *, is_on: bool) -> Box:
    """Return a word of a layer; those on the way are colored."""
    part: Part = "attention" if is_on else "plain"
    return Box(x=column * NODE_PITCH, y=y, width=NODE, height=NODE, round=NODE / 2, part=part)


def _heading(text: Label, y: float) -> Words:
    return Words(x=0, y=y, text=text, anchor="start", style="strong")
