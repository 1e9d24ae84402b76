"""Plots of vectors: positions, the encoder's input, add and norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from attendo.inspection.activations import SUBLAYERS, capture_input, capture_sublayer
from attendo.inspection.plots.context import resolve_index
from attendo.model.positional_encoding import AnyLayout, Layout, sinusoidal
from attendo.plotting.style import (
    CYCLE,
    GRAY,
    ORDERED,
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.inspection.activations import SublayerActivations
    from attendo.inspection.plots.context import PlotContext

MIN_POSITIONS = 20
TOY_SIZE, TOY_POSITIONS = 4, 12


def plot_positions(context: PlotContext) -> Figure:
    """Plot the position vectors in the paper's layout, in halves and as in tensor2tensor."""
    about, model_table = context.section("positions"), context.record.position_table()
    layouts: list[AnyLayout] = list(get_args(Layout))
    if about["layout"] == "fairseq":
        layouts.append("fairseq")
    num_positions = max(MIN_POSITIONS, len(context.src))
    tables: dict[str, NDArray[np.float32]] = {
        layout: sinusoidal(num_positions, about["d_model"], layout=layout).numpy()
        for layout in layouts
    }
    names = {
        "interleaved": context.translate("sine and cosine interleaved (the paper)"),
        "halves": context.translate(
            "sines, then cosines, same frequencies (Hugging Face's Marian)"
        ),
        "tensor2tensor": context.translate(
            "sines, then cosines, other frequencies (tensor2tensor)"
        ),
        "fairseq": context.translate("as in tensor2tensor, counted from 2 (fairseq)"),
        "learned": context.translate("learned"),
    }
    model_layout = about["layout"] or "learned"
    if about["kind"] == "learned" and model_table is not None:
        tables["learned"] = model_table[:num_positions]
    figure = new_figure(11, 2.2 + 2.3 * len(tables))
    panels = figure.subplots(len(tables), 1, squeeze=False)[:, 0]
    limit = max(1.0, *map(color_limit, tables.values()))  # shared, as is the color bar
    for axes, (layout, table) in zip(panels, tables.items(), strict=True):
        image = plot_matrix(axes, table, is_signed=True, limit=limit, cmap=ORDERED)
        for axis, size, step in ((axes.yaxis, len(table), 5), (axes.xaxis, table.shape[1], 16)):
            ticks = range(0, size, step * max(1, size // (10 * step)))
            axis.set_ticks(ticks, [str(tick) for tick in ticks])
        mark = context.translate(" ← this model") if layout == model_layout else ""
        axes.set_title(names[layout] + mark, loc="left", fontsize=10)
        axes.set_ylabel(context.translate("position"))
    panels[-1].set_xlabel(context.translate("dimension"))
    figure.colorbar(image, ax=panels, shrink=0.7, pad=0.01)
    caption = "Row: a position. Each has its own pattern, always between −1 and 1."
    if model_layout == "learned":
        caption = (
            "Row: a position. Sines and cosines stay between −1 and 1; learned values may not."
        )
    title = context.translate("Position vectors: one per position")
    set_heading(figure, title, context.translate(caption))
    return figure


def plot_position_toy(context: PlotContext) -> Figure:
    """Plot positions in 4 dimensions: two sines, two cosines, and their values at each word."""
    names = context.src[:TOY_POSITIONS]
    table = sinusoidal(len(names), TOY_SIZE).numpy()
    figure = new_figure(12, max(3.6, 1.8 + 0.32 * len(names)))
    curves, values = figure.subplots(1, 2, width_ratios=(3, 2))
    fine = np.linspace(0, max(len(names) - 1, 1), 400)
    for dimension in range(TOY_SIZE):
        angle = fine / 10_000 ** ((dimension // 2) * 2 / TOY_SIZE)
        wave = np.cos(angle) if dimension % 2 else np.sin(angle)
        formula = f"{'cos' if dimension % 2 else 'sin'}(pos / {10_000 ** (dimension // 2 / 2):g})"
        style = {"color": CYCLE[dimension], "linestyle": ("-", "--", "-.", ":")[dimension]}
        curves.plot(fine, wave, linewidth=2, label=f"{dimension}: {formula}", **style)
        curves.plot(table[:, dimension], "o", color=CYCLE[dimension], markersize=5)
    label_axes(curves, columns=[f"{index}\n{name}" for index, name in enumerate(names)])
    curves.set_yticks((-1, 0, 1), ("−1", "0", "1"))
    style_axes(curves)
    curves.legend(frameon=False, fontsize=9, loc="lower left", title=context.translate("dimension"))
    rows = [f"{name}  {position}" for position, name in enumerate(names)]
    columns = [str(dimension) for dimension in range(TOY_SIZE)]
    plot_matrix(values, table, rows=rows, columns=columns, is_signed=True, limit=1.0, digits=2)
    values.set_xlabel(context.translate("dimension"))
    set_heading(
        figure,
        context.translate("A toy position vector with 4 dimensions"),
        context.translate("PE(pos, 2i) = sin(pos / 10000^(2i/4)), PE(pos, 2i+1) = cos(the same)"),
    )
    return figure


def plot_input_sum(context: PlotContext) -> Figure:
    """Plot embedding + position = input, for every source word."""
    activations = capture_input(context.model, context.forced_pass)
    figure = new_figure(14, max(3.0, 1.8 + 0.3 * len(context.src)))
    first, plus, second, equals, third = figure.subplots(1, 5, width_ratios=(10, 1, 10, 1, 10))
    is_mixed = context.model.config.positions == "concatenated"
    add_operator(plus, "⊕" if is_mixed else "+")
    add_operator(equals, "→" if is_mixed else "=")
    limit = color_limit(*activations)
    titles = ("embedding × √{size}", "position", "input of the encoder")
    for axes, matrix, title in zip((first, second, third), activations, titles, strict=True):
        image = plot_matrix(axes, matrix, is_signed=True, limit=limit)
        label_axes(axes, rows=context.src if axes is first else ())
        axes.set_title(context.translate(title, size=matrix.shape[1]), fontsize=10)
        axes.set_xlabel(context.translate("{size} dimensions", size=matrix.shape[1]), color=GRAY)
    figure.colorbar(image, ax=third, pad=0.03)
    set_heading(
        figure,
        context.translate("Embedding + position = input"),
        context.translate("The embedding encodes the word, the position vector its position."),
    )
    return figure


def plot_add_and_norm(context: PlotContext) -> Figure:
    """Plot add and norm on one vector: LayerNorm(x + Sublayer(x))."""
    sublayer = context.select_kind("encoder_self")
    stack, _ = SUBLAYERS[sublayer]
    layers = getattr(context.model, stack).layers
    layer = resolve_index(context.selection.layer, len(layers), "layer", default=0)
    activations = capture_sublayer(context.model, context.forced_pass, sublayer, layer)
    names = context.src if stack == "encoder" else context.decoder_input
    row = context.select_row_from(names)
    steps = named_vectors(context, activations, row)
    figure = new_figure(12, 1.6 + 0.85 * len(steps))
    limit = color_limit(*(vector for _, vector in steps))
    for axes, (name, vector) in zip(figure.subplots(len(steps), 1), steps, strict=True):
        image = plot_vector(axes, vector, limit=limit, label=name)
        statistics = context.translate(
            "mean {mean}   standard deviation {deviation}",
            mean=format_number(float(vector.mean()), 2),
            deviation=format_number(float(vector.std()), 2),
        )
        axes.set_title(statistics, loc="right", fontsize=9, color=GRAY)
    figure.colorbar(image, ax=figure.axes, pad=0.01)
    around = "x + " if activations.has_residual else ""
    form = (
        f"{around}Sublayer(LayerNorm(x))"
        if activations.is_pre_norm
        else f"LayerNorm({around}Sublayer(x))"
    )
    title = "Add and norm on one vector: {form}" if around else "Norm on one vector: {form}"
    set_heading(
        figure,
        context.translate(title, form=form),
        context.translate(
            "“{word}”, {sublayer}, layer {layer}. The learned gain and bias move the result "
            "slightly away from mean 0 and standard deviation 1.",
            word=names[row],
            sublayer=context.kind_label(sublayer),
            layer=layer + 1,
        ),
    )
    return figure


def named_vectors(
    context: PlotContext, activations: SublayerActivations, row: int
) -> list[tuple[str, NDArray[np.float32]]]:
    """Return the named vectors inside one sub-layer, in order."""
    x, transformed, added, normed = (matrix[row] for matrix in activations[:4])
    if activations.is_pre_norm:
        steps = [("x", x), ("LayerNorm(x)", normed), ("Sublayer(…)", transformed)]
        return [*steps, (context.translate("sum"), added)] if activations.has_residual else steps
    total = [("x + Sublayer(x)", added)] if activations.has_residual else []
    return [("x", x), ("Sublayer(x)", transformed), *total, ("LayerNorm", normed)]
