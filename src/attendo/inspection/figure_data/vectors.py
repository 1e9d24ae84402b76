"""Figures of vectors: positions, the encoder's input, add and norm, logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from attendo.inspection.activations import SUBLAYERS, capture_input, capture_sublayer
from attendo.inspection.figure_data.panels import bars, heatmap, lines, operator, record_view
from attendo.inspection.plots.context import join_labels, resolve_index
from attendo.inspection.plots.decoding import NUM_LOGITS
from attendo.inspection.plots.embeddings import TOY_POSITIONS, TOY_SIZE, named_vectors
from attendo.model.positional_encoding import sinusoidal
from attendo.plotting.style import color_limit, format_number

if TYPE_CHECKING:
    from attendo.inspection.figure_data.context import FigureContext
    from attendo.inspection.figure_data.registry import Figure

NUM_CURVE_POINTS = 12
"""Points of a curve between two positions."""
MAX_RANKED_LOGITS = 400
"""A longer list of logits is thinned."""


def describe_positions(context: FigureContext) -> Figure:
    """Return the view of the position vectors."""
    context.section("positions")  # its error says how to record them
    title = context.translate("Position vectors: one per position")
    return title, "", [[record_view("positions")]]


def describe_position_toy(context: FigureContext) -> Figure:
    """Return positions in 4 dimensions: two sines, two cosines, and their values at each word."""
    names = context.src[:TOY_POSITIONS]
    table = sinusoidal(len(names), TOY_SIZE).numpy()
    points = np.arange((len(names) - 1) * NUM_CURVE_POINTS + 1) / NUM_CURVE_POINTS
    curves = []
    for dimension in range(TOY_SIZE):
        wavelength = 10_000 ** (dimension // 2 * 2 / TOY_SIZE)
        name = "cos" if dimension % 2 else "sin"
        wave = np.cos(points / wavelength) if dimension % 2 else np.sin(points / wavelength)
        curves.append((f"{dimension}: {name}(pos / {wavelength:g})", wave.tolist()))
    rows = [f"{position} {name}" for position, name in enumerate(names)]
    dimension_label = context.translate("dimension")
    position_label = context.translate("position")
    values = heatmap(
        table,
        rows=rows,
        columns=[str(dimension) for dimension in range(TOY_SIZE)],
        column_label=dimension_label,
        is_signed=True,
        limit=1.0,
        digits=2,
    )
    chart = lines("", points.tolist(), curves, x_label=position_label)
    about = context.translate(
        "PE(pos, 2i) = sin(pos / 10000^(2i/4)), PE(pos, 2i+1) = cos(the same)"
    )
    return context.translate("A toy position vector with 4 dimensions"), about, [[chart, values]]


def describe_input_sum(context: FigureContext) -> Figure:
    """Return embedding + position = input, for every source word."""
    activations = capture_input(context.model, context.forced_pass)
    is_mixed = context.model.config.positions == "concatenated"
    limit = color_limit(*activations)
    titles = ("embedding × √{size}", "position", "input of the encoder")
    first, second, third = (
        heatmap(
            matrix,
            title=context.translate(title, size=matrix.shape[1]),
            rows=context.src,
            column_label=context.translate("{size} dimensions", size=matrix.shape[1]),
            is_signed=True,
            limit=limit,
        )
        for matrix, title in zip(activations, titles, strict=True)
    )
    rows = [
        [first],
        [operator("⊕" if is_mixed else "+"), second],
        [operator("→" if is_mixed else "="), third],
    ]
    about = context.translate("The embedding encodes the word, the position vector its position.")
    return context.translate("Embedding + position = input"), about, rows


def describe_add_and_norm(context: FigureContext) -> Figure:
    """Return add and norm on one vector: LayerNorm(x + Sublayer(x))."""
    sublayer = context.select_kind("encoder_self")
    stack, _ = SUBLAYERS[sublayer]
    layers = getattr(context.model, stack).layers
    layer = resolve_index(context.selection.layer, len(layers), "layer", default=0)
    activations = capture_sublayer(context.model, context.forced_pass, sublayer, layer)
    names = context.src if stack == "encoder" else context.decoder_input
    row = context.select_row_from(names)
    steps = named_vectors(context, activations, row)
    limit = color_limit(*(vector for _, vector in steps))
    rows = []
    for name, vector in steps:
        statistics = context.translate(
            "mean {mean}   standard deviation {deviation}",
            mean=format_number(float(vector.mean()), 2),
            deviation=format_number(float(vector.std()), 2),
        )
        title = f"{name}: {statistics}"
        rows.append([heatmap(vector, title=title, is_signed=True, limit=limit)])
    around = "x + " if activations.has_residual else ""
    form = (
        f"{around}Sublayer(LayerNorm(x))"
        if activations.is_pre_norm
        else f"LayerNorm({around}Sublayer(x))"
    )
    title = "Add and norm on one vector: {form}" if around else "Norm on one vector: {form}"
    about = context.translate(
        "“{word}”, {sublayer}, layer {layer}. The learned gain and bias move the result "
        "slightly away from mean 0 and standard deviation 1.",
        word=names[row],
        sublayer=context.kind_label(sublayer),
        layer=layer + 1,
    )
    return context.translate(title, form=form), about, rows


def describe_logits(context: FigureContext) -> Figure:
    """Return the logits of one step, and the probabilities that softmax makes of them."""
    row = context.select_row_from(context.tgt)
    with torch.inference_mode():
        logits = context.forced_pass(context.any_model)[0, row].float().cpu()  # (V,)
    probabilities = logits.softmax(-1)
    target_id = int(context.forced_pass.target_ids[row])
    best = probabilities.topk(min(NUM_LOGITS, len(logits))).indices.tolist()
    ids = best if target_id in best else [*best, target_id]
    names = [context.piece_label(piece) for piece in context.tokenizer.tgt_pieces(ids)]
    ordered = np.sort(logits.numpy())[::-1]
    step = max(1, len(ordered) // MAX_RANKED_LOGITS)
    ranks = range(0, len(ordered), step)
    title = context.translate("all {count} logits, highest first", count=f"{len(ordered):,}")
    chart = lines(
        title,
        [rank + 1 for rank in ranks],
        [("logit", ordered[::step].tolist())],
        x_label=context.translate("rank"),
    )
    marked = ids.index(target_id)
    highest = context.translate("the highest logits")
    softmax = context.translate("softmax: probabilities")
    panels = [
        bars(names, logits[ids].tolist(), title=highest, digits=1, marked=marked),
        bars(names, probabilities[ids].tolist(), title=softmax, digits=3, marked=marked),
    ]
    about = context.translate(
        "Words so far: {words}", words=join_labels(context.decoder_input[: row + 1])
    )
    heading = context.translate("From logits to a word: “{word}”", word=context.tgt[row])
    return heading, about, [panels, [chart]]
