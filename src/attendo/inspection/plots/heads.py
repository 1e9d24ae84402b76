"""Plots of heads: lines from one word, two heads, all heads, concatenated heads times W_O."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.inspection.activations import capture_attention
from attendo.inspection.heads import get_attention
from attendo.inspection.plots.context import resolve_index, word_rows
from attendo.plotting.style import (
    BLACK,
    BLUE,
    CYCLE,
    GRAY,
    ORANGE,
    color_limit,
    format_number,
    hide_axes,
    label_axes,
    new_figure,
    plot_matrix,
    plot_vector,
    set_heading,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.plots.context import PlotContext

MIN_VISIBLE_WEIGHT = 0.02
"""A line for a smaller weight would not be visible."""


def plot_head_lines(context: PlotContext) -> Figure:
    """Plot where one head attends from one word, as lines."""
    kind, layer, head, row = context.select_cell("cross")
    weights = context.layer_weights(kind, layer)[head]
    figure, axes = _new_column_figure(context, kind)
    for index, row_weights in enumerate(weights):
        is_chosen = index == row
        _plot_lines(
            axes, index, row_weights, BLUE if is_chosen else GRAY, strength=1 if is_chosen else 0.12
        )
    _plot_token_columns(axes, context, kind, row, [(weights[row], BLUE, 0.0)])
    set_heading(
        figure,
        context.translate(
            "Where one head attends from “{word}”", word=context.row_labels(kind)[row]
        ),
        context.translate(
            "{kind}, layer {layer}, head {head}. Thick: high weight. Gray: the other words.",
            kind=context.kind_label(kind),
            layer=layer + 1,
            head=head + 1,
        ),
    )
    return figure


def plot_two_heads(context: PlotContext) -> Figure:
    """Plot two heads of a layer in two colors: from one word they attend to different words."""
    kind = context.select_kind("cross")
    layer = context.select_layer(kind)
    if context.layer_weights(kind, layer).shape[0] == 1:
        reason = message("the {kind} attention of this model has one head", kind=kind)
        raise InputError(reason, hint="use the plot head_lines instead")
    first, second, row = most_different_heads(
        context, context.layer_weights(kind, layer), context.row_labels(kind)
    )
    weights = context.layer_weights(kind, layer)[:, row]  # (H, S)
    figure, axes = _new_column_figure(context, kind)
    lines = [(weights[first], BLUE, -0.07), (weights[second], ORANGE, 0.07)]
    for head_weights, color, shift in lines:
        _plot_lines(axes, row, head_weights, color, shift=shift)
    _plot_token_columns(axes, context, kind, row, lines)
    for number, color in ((first, BLUE), (second, ORANGE)):
        axes.plot(
            [],
            [],
            color=color,
            linewidth=4,
            label=context.translate("head {head}", head=number + 1),
        )
    axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0.02))
    set_heading(
        figure,
        context.translate("Two heads attend from “{word}”", word=context.row_labels(kind)[row]),
        context.translate("{kind}, layer {layer}", kind=context.kind_label(kind), layer=layer + 1),
    )
    return figure


def plot_all_heads(context: PlotContext) -> Figure:
    """Plot every head of every layer."""
    kind = context.select_kind("cross")
    weights = context.record.attention(kind)  # (L, H, T, S)
    num_layers, num_heads, num_rows, num_columns = weights.shape
    cell = (max(1.5, 0.2 * num_columns), max(1.5, 0.2 * num_rows))
    figure = new_figure(1.4 + cell[0] * num_heads, 1.6 + cell[1] * num_layers)
    grid = figure.subplots(num_layers, num_heads, squeeze=False)
    for (layer, head), axes in np.ndenumerate(grid):
        image = plot_matrix(axes, weights[layer, head], limit=1.0)
        is_left, is_last = head == 0, layer == num_layers - 1
        label_axes(axes, rows=context.row_labels(kind) if is_left else ())
        axes.set_xticks(
            range(num_columns), context.column_labels(kind) if is_last else [""] * num_columns
        )
        axes.tick_params(axis="x", rotation=90)
        axes.tick_params(labelsize=7)
        if layer == 0:
            axes.set_title(context.translate("head {head}", head=head + 1), fontsize=9)
        if is_left:
            axes.set_ylabel(context.translate("layer {layer}", layer=layer + 1), fontsize=9)
    figure.colorbar(image, ax=grid, shrink=0.6, pad=0.01)
    set_heading(
        figure,
        context.translate("All heads: {kind}", kind=context.kind_label(kind)),
        context.translate("Row: the attending word. Column: the attended word. Dark: high weight."),
    )
    return figure


def plot_concatenated_heads(context: PlotContext) -> Figure:
    """Plot the concatenated heads of one word, times W_O."""
    kind, layer, _, row = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    projection = get_attention(context.model, kind, layer).output
    weight = projection.weight.detach().T.float().cpu().numpy()  # (H * K, D)
    heads = activations.heads[:, row]  # (H, K)
    num_heads, size = heads.shape
    parts = np.stack(
        [head_output @ weight[i * size : (i + 1) * size] for i, head_output in enumerate(heads)]
    )
    figure = new_figure(12, 8.4)
    top, middle, bottom, last = figure.subplots(4, 1, height_ratios=(1, 5, 3, 1))
    plot_vector(top, heads.ravel(), limit=color_limit(heads), label="Concat")
    _mark_heads(top, context, num_heads, size)
    plot_matrix(middle, weight.T, is_signed=True, limit=color_limit(weight))
    _mark_heads(middle, context, num_heads, size, with_labels=False)
    middle.set_ylabel("W_Oᵀ", rotation=0, ha="right", va="center")
    middle.set_title(f"W_O  {weight.shape[0]} × {weight.shape[1]}", fontsize=10, loc="left")
    limit = color_limit(parts, activations.output[row])
    plot_matrix(bottom, parts, is_signed=True, limit=limit)
    shares = np.linalg.norm(parts, axis=-1)
    label_axes(
        bottom, rows=[context.translate("head {head}", head=i + 1) for i in range(num_heads)]
    )
    bottom.set_title(
        context.translate("what each head adds through its part of W_O"), fontsize=10, loc="left"
    )
    sizes = bottom.secondary_yaxis("right")
    sizes.set_yticks(
        range(num_heads), [context.translate("size {size}", size=f"{s:.1f}") for s in shares]
    )
    sizes.tick_params(length=0, labelsize=8, colors=GRAY)
    plot_vector(last, activations.output[row], limit=limit, label="Σ")
    has_bias = projection.bias is not None
    total = "their sum plus the bias: the output" if has_bias else "their sum: the output"
    last.set_title(context.translate(total), fontsize=10, loc="left")
    set_heading(
        figure,
        context.translate(
            "Concatenated heads times W_O: “{word}”", word=context.row_labels(kind)[row]
        ),
        context.translate("{kind}, layer {layer}", kind=context.kind_label(kind), layer=layer + 1),
    )
    return figure


def most_different_heads(
    context: PlotContext, weights: NDArray[np.float32], names: list[str]
) -> tuple[int, int, int]:
    """Return the two heads and the row where they differ most, within the selection.

    Rows of words are preferred to those of symbols such as `</s>`.
    """
    selection, heads = context.selection, list(range(len(weights)))
    rows = list(range(len(names)))
    words = word_rows(names)
    chosen = [
        defaults if number is None else [resolve_index(number, count, name, default=0)]
        for number, defaults, count, name in (
            (selection.head, heads, len(heads), "head"),
            (selection.other_head, heads, len(heads), "head"),
            (selection.row, words, len(rows), "row"),
        )
    ]
    first, second, row = max(
        product(*chosen),
        key=lambda one: float(np.abs(weights[one[0], one[2]] - weights[one[1], one[2]]).sum()),
    )
    return first, second, row


def _new_column_figure(context: PlotContext, kind: AttentionKind) -> tuple[Figure, Axes]:
    count = max(len(context.row_labels(kind)), len(context.column_labels(kind)))
    figure = new_figure(7.0, 1.9 + 0.38 * count)
    axes = figure.subplots()
    hide_axes(axes)
    axes.set_xlim(-0.75, 2.0)
    axes.set_ylim(count - 0.4, -1.2)
    return figure, axes


def _plot_lines(
    axes: Axes,
    row: int,
    weights: NDArray[np.float32],
    color: str,
    *,
    strength: float = 1.0,
    shift: float = 0.0,
) -> None:
    for column, weight in enumerate(weights.tolist()):
        if weight >= MIN_VISIBLE_WEIGHT:
            axes.plot(
                (0.02, 0.98),
                (row + shift, column + shift),
                color=color,
                linewidth=0.6 + 5.0 * weight * min(1.0, 2 * strength),
                alpha=strength * (0.25 + 0.75 * weight),
                solid_capstyle="round",
            )


def _plot_token_columns(
    axes: Axes,
    context: PlotContext,
    kind: AttentionKind,
    row: int,
    lines: list[tuple[NDArray[np.float32], str, float]],
) -> None:
    """Write the tokens of both sides, and next to those on the right the weight of each head."""
    for index, name in enumerate(context.row_labels(kind)):
        weight = "bold" if index == row else "normal"
        color = BLACK if index == row else GRAY
        axes.text(-0.02, index, name, ha="right", va="center", fontweight=weight, color=color)
    for index, name in enumerate(context.column_labels(kind)):
        best = max(float(weights[index]) for weights, _, _ in lines)
        axes.text(1.02, index, name, ha="left", va="center", color=BLACK if best > 0.1 else GRAY)
        for number, (weights, color, _) in enumerate(lines):
            if weights[index] >= MIN_VISIBLE_WEIGHT:
                axes.text(
                    1.52 + 0.22 * number,
                    index,
                    format_number(float(weights[index]), 2),
                    va="center",
                    fontsize=9,
                    fontweight="bold",
                    color=color,
                )
    row_label = "source word …" if kind == "encoder_self" else "step that predicts …"
    column_label = (
        "… attends to the words so far" if kind == "decoder_self" else "… attends to the source"
    )
    style: dict[str, Any] = {"fontsize": 9, "color": GRAY, "va": "center"}
    axes.text(-0.02, -0.9, context.translate(row_label), ha="right", **style)
    axes.text(1.02, -0.9, context.translate(column_label), ha="left", **style)


def _mark_heads(
    axes: Axes, context: PlotContext, num_heads: int, size: int, *, with_labels: bool = True
) -> None:
    """Separate the heads by lines, and label them above in their colors."""
    for number in range(num_heads):
        if number:
            axes.axvline(number * size - 0.5, color=BLACK, linewidth=1)
        if with_labels:
            axes.text(
                (number + 0.5) * size - 0.5,
                -0.65,
                context.translate("head {head}", head=number + 1),
                ha="center",
                va="bottom",
                fontsize=9,
                color=CYCLE[number % len(CYCLE)] if num_heads <= len(CYCLE) else GRAY,
            )
