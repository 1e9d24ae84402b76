"""Plots of one attention, step by step: Q, K, V, scores, softmax, weighted sum, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attendo.inspection.activations import capture_attention
from attendo.inspection.heads import get_attention
from attendo.model.masks import causal_mask, local_mask, padding_mask
from attendo.plotting.style import (
    BLUE,
    GRAY,
    LIGHT,
    MAX_NUMBERED_COLUMNS,
    ORANGE,
    add_operator,
    color_limit,
    format_number,
    label_axes,
    new_figure,
    plot_matrix,
    plot_vector,
    set_heading,
    style_axes,
)
from attendo.text.tokenizer import PAD_ID

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.plots.context import PlotContext

PAD = "<pad>"
NUM_PADS = 2


def plot_query_key_value(context: PlotContext) -> Figure:
    """Plot how one word becomes its query, key and value: x times W_Q, W_K, W_V of one head."""
    kind, layer, head, row = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    attention = get_attention(context.model, kind, layer)
    column = row if kind != "cross" else int(activations.weights[head, row].argmax())
    projections = (
        ("W_Q", attention.query, activations.query_input[row], activations.queries[head, row]),
        ("W_K", attention.key, activations.key_value_input[column], activations.keys[head, column]),
        (
            "W_V",
            attention.value,
            activations.key_value_input[column],
            activations.values[head, column],
        ),
    )
    figure = new_figure(13, 6.6)
    grid = figure.subplots(3, 5, width_ratios=(8, 0.6, 4, 0.6, 4))
    limit = color_limit(
        *(vector for *_, vector in projections), *(vector for _, _, vector, _ in projections)
    )
    for panels, (name, projection, vector, result) in zip(grid, projections, strict=True):
        size = len(result)
        weight = projection.weight.detach()[head * size : (head + 1) * size].T.float().cpu().numpy()
        input_axes, times, matrix, equals, result_axes = panels
        plot_vector(input_axes, vector, limit=limit, label="x")
        plot_matrix(matrix, weight, is_signed=True, limit=color_limit(weight))
        plot_vector(result_axes, result, limit=limit, label=name[-1].lower())
        add_operator(times, "×")
        add_operator(equals, "=")
        matrix.set_title(f"{name}  {weight.shape[0]} × {weight.shape[1]}", fontsize=10)
        for axes in (input_axes, result_axes):
            axes.set_box_aspect(0.1 if axes is input_axes else 0.2)
    names = {"W_Q": context.row_labels(kind)[row], "W_K": context.column_labels(kind)[column]}
    if kind == "decoder_self":
        names = dict.fromkeys(names, context.decoder_input[row])
    for panels, (name, *_) in zip(grid, projections, strict=True):
        word = names.get(name, names["W_K"])
        panels[0].set_title(f"“{word}”", fontsize=10, loc="left")
    caption = context.translate(
        "{kind}, layer {layer}, head {head}: the head reads all {size} components of x and has its "
        "own three matrices.",
        kind=context.kind_label(kind),
        layer=layer + 1,
        head=head + 1,
        size=activations.query_input.shape[1],
    )
    if context.model.config.bias:
        caption += " " + context.translate("(Biases are added but not shown.)")
    set_heading(figure, context.translate("Query, key and value of one word"), caption)
    return figure


def plot_one_word(context: PlotContext) -> Figure:
    """Plot one word's attention in three steps: scores, softmax, weighted sum of the values."""
    kind, layer, head, row = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    names, allowed = context.column_labels(kind), activations.mask[row]
    scores = np.where(allowed, activations.scores[head, row], np.nan)
    weights = activations.weights[head, row]
    weighted = weights[:, None] * activations.values[head]  # (S, K)
    figure = new_figure(13, max(3.8, 2.2 + 0.32 * len(names)))
    left, middle, right = figure.subplots(1, 3, width_ratios=(3, 3, 6))
    _plot_bars(left, scores, names, color=GRAY, digits=1)
    first = "1. scores  q · k / √{size}" if context.model.config.scale else "1. scores  q · k"
    left.set_title(
        context.translate(first, size=activations.queries.shape[-1]), loc="left", fontsize=10
    )
    _plot_bars(middle, np.where(allowed, weights, np.nan), (), color=BLUE, digits=2)
    middle.set_title(context.translate("2. softmax: weights sum to 1"), loc="left", fontsize=10)
    middle.set_xlim(0, 1.12)
    total = np.vstack(
        [weighted, np.full((1, weighted.shape[1]), np.nan), activations.heads[head, row]]
    )
    plot_matrix(
        right, total, is_signed=True, limit=color_limit(weighted, activations.heads[head, row])
    )
    label_axes(right, rows=[*(f"{w:.2f} · v" for w in weights), "", "Σ"])
    third = context.translate("3. values times weights, and their sum")
    right.set_title(third, loc="left", fontsize=10)
    right.set_xlabel(context.translate("{size} dimensions", size=weighted.shape[1]), color=GRAY)
    set_heading(
        figure,
        context.translate("Attention of one word: “{word}”", word=context.row_labels(kind)[row]),
        head_label(context, kind, layer, head),
    )
    return figure


def plot_score_matrix(context: PlotContext) -> Figure:
    """Plot the score matrix of one head, and its softmax."""
    kind, layer, head, _ = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    rows, columns = context.row_labels(kind), context.column_labels(kind)
    cell = 0.56 if len(columns) <= MAX_NUMBERED_COLUMNS else 0.3
    figure = new_figure(3.4 + 2 * cell * len(columns), 2.2 + 0.8 * cell * len(rows))
    left, right = figure.subplots(1, 2)
    scores = np.where(activations.mask, activations.scores[head], np.nan)
    left.set_facecolor(LIGHT)
    labels: dict[str, Any] = {"rows": rows, "columns": columns, "max_label_width": round(cell * 14)}
    image = plot_matrix(left, scores, is_signed=True, digits=1, **labels)
    figure.colorbar(image, ax=left, shrink=0.8, pad=0.02)
    image = plot_matrix(right, activations.weights[head], limit=1.0, digits=2, **labels)
    figure.colorbar(image, ax=right, shrink=0.8, pad=0.02)
    formula = "scores  Q Kᵀ / √{size}" if context.model.config.scale else "scores  Q Kᵀ"
    left.set_title(context.translate(formula, size=activations.queries.shape[-1]), fontsize=10)
    right.set_title(context.translate("softmax of each row"), fontsize=10)
    for axes in (left, right):
        label_attention_axes(axes, context, kind)
    set_heading(
        figure, context.translate("The score matrix"), head_label(context, kind, layer, head)
    )
    return figure


def plot_masks(context: PlotContext) -> Figure:
    """Plot the three masks: padding, causal, source padding; in a padded batch."""
    kinds = context.record.kinds
    if context.selection.kind or not kinds:
        kinds = (context.select_kind("cross"),)  # its error names the kinds that exist
    max_length = NUM_PADS + max(len(context.src), len(context.tgt))
    figure = new_figure(
        1.5 + max(4.6, 0.3 * max_length) * len(kinds), 2.0 + max(3.2, 0.24 * max_length)
    )
    titles: dict[AttentionKind, str] = {
        "encoder_self": "encoder self-attention: masks padding",
        "decoder_self": "decoder self-attention: masks the future and padding",
        "cross": "cross-attention: masks the source's padding",
    }
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        mask = make_mask(context, kind)
        rows, columns = (
            [*names, *[PAD] * NUM_PADS]
            for names in (context.row_labels(kind), context.column_labels(kind))
        )
        plot_matrix(
            axes,
            mask.astype(float),
            limit=1.6,
            rows=rows,
            columns=columns,
            max_label_width=1 + 42 // len(columns),
        )
        _plot_grid(axes, *mask.shape)
        for row, column in np.argwhere(~mask):
            axes.text(column, row, "×", ha="center", va="center", color=GRAY, fontsize=8)
        axes.set_title(context.translate(titles[kind]), fontsize=10)
        label_attention_axes(axes, context, kind)
    set_heading(
        figure,
        context.translate("Masks: blue may be attended to, × may not"),
        context.translate(
            "Shown with {count} padding tokens, as in a batch with a longer sentence.",
            count=NUM_PADS,
        ),
    )
    return figure


def label_attention_axes(axes: Axes, context: PlotContext, kind: AttentionKind) -> None:
    """Label the rows and columns."""
    row_label = "source word …" if kind == "encoder_self" else "step that predicts …"
    column_label = (
        "… attends to the words so far" if kind == "decoder_self" else "… attends to the source"
    )
    axes.set_ylabel(context.translate(row_label), color=GRAY, fontsize=9.5)
    axes.set_xlabel(context.translate(column_label), color=GRAY, fontsize=9.5)


def make_mask(context: PlotContext, kind: AttentionKind) -> NDArray[np.bool_]:
    """Return the mask (T, S) that the model uses for a padded sentence."""
    num_rows, num_columns = len(context.row_labels(kind)), len(context.column_labels(kind))
    ids = torch.tensor([[PAD_ID + 1] * num_columns + [PAD_ID] * NUM_PADS])
    mask = padding_mask(ids, PAD_ID)[0].expand(num_rows + NUM_PADS, -1)
    if kind == "decoder_self":
        mask = mask & causal_mask(len(mask))
    if kind != "cross" and context.attention_width is not None:
        mask = mask & local_mask(len(mask), context.attention_width)
    mask_array: NDArray[np.bool_] = mask.numpy()
    return mask_array


def _plot_bars(
    axes: Axes,
    values: NDArray[np.float32],
    names: list[str] | tuple[()],
    *,
    color: str,
    digits: int,
) -> None:
    indices = range(len(values))
    best = int(np.nanargmax(values))
    colors = [ORANGE if index == best else color for index in indices]
    bars = axes.barh(indices, np.nan_to_num(values), color=colors, height=0.7)
    texts = ["×" if np.isnan(value) else format_number(value, digits) for value in values.tolist()]
    axes.bar_label(bars, texts, padding=3, fontsize=8, color=GRAY)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_yticks(indices, names if names else [""] * len(values))
    axes.tick_params(length=0)
    axes.axvline(0, color=LIGHT, linewidth=1)
    axes.margins(x=0.18)
    style_axes(axes, grid="x")


def _plot_grid(axes: Axes, num_rows: int, num_columns: int) -> None:
    """Separate the cells by white lines."""
    for edge in range(1, num_rows):
        axes.axhline(edge - 0.5, color="white", linewidth=1)
    for edge in range(1, num_columns):
        axes.axvline(edge - 0.5, color="white", linewidth=1)


def head_label(context: PlotContext, kind: AttentionKind, layer: int, head: int) -> str:
    """Return the name of a head; layers and heads are shown counted from 1."""
    return context.translate(
        "{kind}, layer {layer}, head {head}",
        kind=context.kind_label(kind),
        layer=layer + 1,
        head=head + 1,
    )
