"""Plots of the analyses: attribution, ablation, logit lens."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.inspection.plots.context import piece_label
from attendo.inspection.record import KINDS
from attendo.plotting.fonts import replace_missing_glyphs
from attendo.plotting.style import (
    BLACK,
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    format_number,
    label_axes,
    new_figure,
    plot_matrix,
    set_heading,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attendo.inspection.plots.context import PlotContext

MAX_TEXTS = 4
"""Changed translations that are listed in the caption."""


def plot_attribution(context: PlotContext) -> Figure:
    """Plot how much each target word depends on each source word."""
    section = context.section("attribution")
    rows, columns = (
        [replace_missing_glyphs(word) for word in side["words"]]
        for side in (context.record.tgt, context.record.src)
    )
    has_words = bool(rows and columns)
    matrix = np.array(section["words" if has_words else "tokens"], dtype=float)
    if not has_words:  # only special symbols
        rows, columns = context.tgt, context.src
    figure = new_figure(3.4 + 0.95 * len(columns), 2.2 + 0.42 * len(rows))
    axes = figure.subplots()
    image = plot_matrix(
        axes, matrix, rows=rows, columns=columns, is_signed=True, digits=1,
        limit=float(np.abs(matrix).max(initial=0.0)) or 1.0, max_label_width=12,
    )  # fmt: skip
    figure.colorbar(image, ax=axes, pad=0.02, label=context.translate("nats"))
    axes.set_ylabel(context.translate("target word"), color=GRAY)
    axes.set_xlabel(context.translate("source word"), color=GRAY)
    names = {
        "integrated_gradients": "integrated gradients, {count} steps",
        "gradient_x_input": "gradient times input",
    }
    set_heading(
        figure,
        context.translate("Which source words each target word depends on"),
        context.translate(
            "{method}. Red: raises the word's log-probability; blue: lowers it.",
            method=context.translate(names[section["method"]], count=section["num_steps"]),
        ),
    )
    return figure


def plot_ablation(context: PlotContext) -> Figure:
    """Plot how switching off each head changes the log-probability of the translation."""
    section = context.section("ablation")
    kinds = [kind for kind in KINDS if any(one["kind"] == kind for one in section["heads"])]
    max_heads = max(sum(one["kind"] == kind for one in section["heads"]) for kind in kinds)
    figure = new_figure(max(9.0, 2.0 + 0.22 * max_heads * len(kinds)), 4.6)
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind, color in zip(panels, kinds, (GREEN, BLUE, ORANGE), strict=False):
        kind_heads = [one for one in section["heads"] if one["kind"] == kind]
        _plot_changes(axes, context, kind_heads, color)
        axes.set_title(context.kind_label(kind), fontsize=10, loc="left")
    panels[0].set_ylabel(context.translate("change of log p (nats)"))
    changed = [one for one in section["heads"] if _is_changed(one, context.record.tgt["text"])]
    lines = [
        context.translate(
            "* {kind}, layer {layer}, head {head}: {text}",
            kind=context.kind_label(one["kind"]),
            layer=one["layer"] + 1,
            head=one["head"] + 1,
            text=shorten(one["text"], 80, placeholder=" …"),
        )
        for one in sorted(changed, key=lambda one: float(one["change"]))[:MAX_TEXTS]
    ]
    if len(changed) > MAX_TEXTS:
        lines.append(context.translate("… and {count} more", count=len(changed) - MAX_TEXTS))
    caption = context.translate("One head switched off at a time; with all heads log p is {all}.",
                     all=format_number(section["log_prob"], 2))  # fmt: skip
    if changed:
        caption += " " + context.translate("* the translation changes:")
    set_heading(figure, context.translate("Importance of each head"), "\n".join([caption, *lines]))
    return figure


def plot_logit_lens(context: PlotContext) -> Figure:
    """Plot what each decoder layer would predict, as a table."""
    layers = context.section("logit_lens")["layers"]
    probabilities = np.array(
        [[step["top"][0]["probability"] for step in layer] for layer in layers]
    )
    figure = new_figure(2.4 + 1.05 * len(context.tgt), 2.2 + 0.62 * len(layers))
    axes = figure.subplots()
    image = plot_matrix(axes, probabilities[::-1], limit=1.0)
    names = [context.translate("layer {layer}", layer=number + 1) for number in range(len(layers))]
    label_axes(axes, rows=names[::-1], columns=context.tgt, max_label_width=14)
    for row, layer in enumerate(reversed(layers)):
        for column, step in enumerate(layer):
            is_right = step["rank"] == 0
            best = step["top"][0]
            axes.text(
                column,
                row,
                piece_label(best["piece"]) + ("" if is_right else f"\n({step['rank'] + 1:,})"),
                ha="center",
                va="center",
                fontsize=9 if is_right else 8.5,
                fontweight="bold" if is_right else "normal",
                color="white" if best["probability"] > 0.6 else BLACK,
            )
    axes.set_xlabel(context.translate("target word"), color=GRAY)
    figure.colorbar(image, ax=axes, pad=0.02, label=context.translate("probability"))
    set_heading(
        figure,
        context.translate("What each decoder layer would predict"),
        context.translate("Bold: the target word. (n): its rank according to the layer."),
    )
    return figure


def _plot_changes(
    axes: Axes, context: PlotContext, heads: list[dict[str, Any]], color: str
) -> None:
    """Draw a bar for each head, with a gap between layers."""
    positions = [position + one["layer"] * 0.8 for position, one in enumerate(heads)]
    changes = [one["change"] for one in heads]
    axes.bar(positions, changes, color=color, width=0.8)
    axes.set_xticks(positions, [str(one["head"]) for one in heads], fontsize=8)
    axes.tick_params(length=0)
    axes.axhline(0, color=GRAY, linewidth=0.8)
    style_axes(axes)
    for position, one in zip(positions, heads, strict=True):
        if _is_changed(one, context.record.tgt["text"]):
            below = one["change"] < 0
            axes.text(position, one["change"], "*", ha="center", va="top" if below else "bottom")
    for layer in sorted({one["layer"] for one in heads}):
        layer_positions = [
            position
            for position, one in zip(positions, heads, strict=True)
            if one["layer"] == layer
        ]
        axes.text(
            (layer_positions[0] + layer_positions[-1]) / 2,
            -0.11,
            context.translate("layer {layer}", layer=layer + 1),
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=9,
            color=GRAY,
        )


def _is_changed(one: dict[str, Any], text: str) -> bool:
    return one["text"] is not None and one["text"] != text
