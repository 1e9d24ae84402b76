"""Pictures of vectors: positions, the input of the encoder, add and norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

import numpy as np

from attendo.inspection.insides import SUBLAYERS, look_at_input, look_at_sublayer
from attendo.inspection.plots.canvas import (
    CYCLE,
    GREY,
    ORDERED,
    draw_matrix,
    draw_strip,
    label_axis,
    new_figure,
    set_heading,
    spread,
    tidy,
    write_number,
    write_sign,
)
from attendo.inspection.plots.scene import pick
from attendo.model.positional import Layout, sinusoidal

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.inspection.insides import SublayerInside
    from attendo.inspection.plots.scene import Scene

FEWEST_POSITIONS = 20
TOY_SIZE, TOY_POSITIONS = 4, 12


def draw_positions(scene: Scene) -> Figure:
    """Draw the vectors of the positions: sine and cosine interleaved (paper), and in halves."""
    about, own = scene.section("positions"), scene.record.position_table()
    layouts: tuple[Layout, ...] = get_args(Layout)
    num_positions = max(FEWEST_POSITIONS, len(scene.src))
    tables: dict[str, NDArray[np.float32]] = {
        layout: sinusoidal(num_positions, about["d_model"], layout=layout).numpy()
        for layout in layouts
    }
    names = {
        "interleaved": scene.say("sine and cosine interleaved (the paper)"),
        "halves": scene.say("sines, then cosines (tensor2tensor)"),
        "learned": scene.say("learned"),
    }
    mine = about["layout"] or "learned"
    if about["kind"] == "learned" and own is not None:
        tables["learned"] = own[:num_positions]
    figure = new_figure(11, 2.2 + 2.3 * len(tables))
    panels = figure.subplots(len(tables), 1, squeeze=False)[:, 0]
    limit = max(1.0, *map(spread, tables.values()))  # one for all: they share a colour bar
    for axes, (layout, table) in zip(panels, tables.items(), strict=True):
        image = draw_matrix(axes, table, is_signed=True, limit=limit, colours=ORDERED)
        for axis, size, step in ((axes.yaxis, len(table), 5), (axes.xaxis, table.shape[1], 16)):
            places = range(0, size, step * max(1, size // (10 * step)))
            axis.set_ticks(places, [str(place) for place in places])
        mark = scene.say(" ← this model") if layout == mine else ""
        axes.set_title(names[layout] + mark, loc="left", fontsize=10)
        axes.set_ylabel(scene.say("position"))
    panels[-1].set_xlabel(scene.say("dimension"))
    figure.colorbar(image, ax=panels, shrink=0.7, pad=0.01)
    caption = "Row: a position. Every one has a pattern of its own, always within −1 and 1."
    if mine == "learned":
        caption = (
            "Row: a position. Sines and cosines stay within −1 and 1, what is learned may not."
        )
    title = scene.say("Where is each word: one vector for every position")
    set_heading(figure, title, scene.say(caption))
    return figure


def draw_position_toy(scene: Scene) -> Figure:
    """Draw positions in 4 dimensions: two sines, two cosines, and their values at each word."""
    names = scene.src[:TOY_POSITIONS]
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
    label_axis(curves, columns=[f"{place}\n{name}" for place, name in enumerate(names)])
    curves.set_yticks((-1, 0, 1), ("−1", "0", "1"))
    tidy(curves)
    curves.legend(frameon=False, fontsize=9, loc="lower left", title=scene.say("dimension"))
    rows = [f"{name}  {place}" for place, name in enumerate(names)]
    columns = [str(dimension) for dimension in range(TOY_SIZE)]
    draw_matrix(values, table, rows=rows, columns=columns, is_signed=True, limit=1.0, digits=2)
    values.set_xlabel(scene.say("dimension"))
    set_heading(
        figure,
        scene.say("A toy position vector with 4 dimensions"),
        scene.say("PE(pos, 2i) = sin(pos / 10000^(2i/4)), PE(pos, 2i+1) = cos(the same)"),
    )
    return figure


def draw_input_sum(scene: Scene) -> Figure:
    """Draw embedding + position = input, for every word of the source."""
    inside = look_at_input(scene.model, scene.forced)
    figure = new_figure(14, max(3.0, 1.8 + 0.3 * len(scene.src)))
    first, plus, second, equals, third = figure.subplots(1, 5, width_ratios=(10, 1, 10, 1, 10))
    is_mixed = scene.model.config.positions == "concatenated"
    write_sign(plus, "⊕" if is_mixed else "+")
    write_sign(equals, "→" if is_mixed else "=")
    limit = spread(*inside)
    titles = ("embedding × √{size}", "position", "input of the encoder")
    for axes, matrix, title in zip((first, second, third), inside, titles, strict=True):
        image = draw_matrix(axes, matrix, is_signed=True, limit=limit)
        label_axis(axes, rows=scene.src if axes is first else ())
        axes.set_title(scene.say(title, size=matrix.shape[1]), fontsize=10)
        axes.set_xlabel(scene.say("{size} dimensions", size=matrix.shape[1]), color=GREY)
    figure.colorbar(image, ax=third, pad=0.03)
    set_heading(
        figure,
        scene.say("Embedding + position = input"),
        scene.say("The embedding tells which word it is, the position where it stands."),
    )
    return figure


def draw_add_and_norm(scene: Scene) -> Figure:
    """Draw add and norm on one vector: LayerNorm(x + Sublayer(x))."""
    which = scene.kind("encoder_self")
    stack, _ = SUBLAYERS[which]
    layers = getattr(scene.model, stack).layers
    layer = pick(scene.focus.layer, len(layers), "layer", default=0)
    inside = look_at_sublayer(scene.model, scene.forced, which, layer)
    names = scene.src if stack == "encoder" else scene.read
    row = scene.pick_row(names)
    steps = _list_steps(scene, inside, row)
    figure = new_figure(12, 1.6 + 0.85 * len(steps))
    limit = spread(*(vector for _, vector in steps))
    for axes, (name, vector) in zip(figure.subplots(len(steps), 1), steps, strict=True):
        image = draw_strip(axes, vector, limit=limit, label=name)
        facts = scene.say(
            "mean {mean}   standard deviation {deviation}",
            mean=write_number(float(vector.mean()), 2),
            deviation=write_number(float(vector.std()), 2),
        )
        axes.set_title(facts, loc="right", fontsize=9, color=GREY)
    figure.colorbar(image, ax=figure.axes, pad=0.01)
    around = "x + " if inside.has_residual else ""
    form = f"{around}Sublayer(LayerNorm(x))" if inside.is_pre else f"LayerNorm({around}Sublayer(x))"
    title = "Add and norm on one vector: {form}" if around else "Norm on one vector: {form}"
    set_heading(
        figure,
        scene.say(title, form=form),
        scene.say(
            "“{word}”, {sublayer}, layer {layer}. After training, gain and bias move it a little "
            "away from mean 0 and deviation 1.",
            word=names[row],
            sublayer=scene.name_kind(which),
            layer=layer,
        ),
    )
    return figure


def _list_steps(
    scene: Scene, inside: SublayerInside, row: int
) -> list[tuple[str, NDArray[np.float32]]]:
    """Name the vectors on the way through one sub-layer, in their order."""
    x, transformed, added, normed = (matrix[row] for matrix in inside[:4])
    if inside.is_pre:
        steps = [("x", x), ("LayerNorm(x)", normed), ("Sublayer(…)", transformed)]
        return [*steps, (scene.say("sum"), added)] if inside.has_residual else steps
    total = [("x + Sublayer(x)", added)] if inside.has_residual else []
    return [("x", x), ("Sublayer(x)", transformed), *total, ("LayerNorm", normed)]
