"""Pictures of heads: lines from one word, two heads, all heads, heads side by side times W_O."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError
from attendo.inspection.heads import find_attention
from attendo.inspection.insides import look_at_attention
from attendo.inspection.plots.canvas import (
    BLACK,
    BLUE,
    CYCLE,
    GREY,
    ORANGE,
    draw_matrix,
    draw_strip,
    hide_axes,
    label_axis,
    new_figure,
    set_heading,
    spread,
    write_number,
)
from attendo.inspection.plots.scene import pick

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.plots.scene import Scene

FAINTEST = 0.02
"""A line for less than this share would not be seen."""


def draw_head_lines(scene: Scene) -> Figure:
    """Draw where one head looks from one word, as lines."""
    kind, layer, head, row = scene.spot("cross")
    weights = scene.weights(kind, layer)[head]
    figure, axes = _new_columns(scene, kind)
    for place, own in enumerate(weights):
        is_chosen = place == row
        _draw_lines(
            axes, place, own, BLUE if is_chosen else GREY, strength=1 if is_chosen else 0.12
        )
    _write_columns(axes, scene, kind, row, [(weights[row], BLUE, 0.0)])
    set_heading(
        figure,
        scene.say("Where one head looks from “{word}”", word=scene.rows(kind)[row]),
        scene.say(
            "{kind}, layer {layer}, head {head}. Thick: much weight. Grey: the other words.",
            kind=scene.name_kind(kind),
            layer=layer,
            head=head,
        ),
    )
    return figure


def draw_two_heads(scene: Scene) -> Figure:
    """Draw two heads of a layer in two colours: they look from one word to different places."""
    kind = scene.kind("cross")
    layer = scene.layer(kind)
    if scene.weights(kind, layer).shape[0] == 1:
        reason = f"the {kind} attention of this model has one head"
        raise InputError(reason, remedy="draw head_lines in its place")
    first, second, row = _find_unlike(scene, scene.weights(kind, layer), scene.rows(kind))
    weights = scene.weights(kind, layer)[:, row]  # (H, S)
    figure, axes = _new_columns(scene, kind)
    shown = [(weights[first], BLUE, -0.07), (weights[second], ORANGE, 0.07)]
    for own, colour, shift in shown:
        _draw_lines(axes, row, own, colour, shift=shift)
    _write_columns(axes, scene, kind, row, shown)
    for number, colour in ((first, BLUE), (second, ORANGE)):
        axes.plot([], [], color=colour, linewidth=4, label=scene.say("head {head}", head=number))
    axes.legend(frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0.02))
    set_heading(
        figure,
        scene.say("Two heads look from “{word}”", word=scene.rows(kind)[row]),
        scene.say("{kind}, layer {layer}", kind=scene.name_kind(kind), layer=layer),
    )
    return figure


def draw_all_heads(scene: Scene) -> Figure:
    """Draw every head of every layer at once."""
    kind = scene.kind("cross")
    weights = scene.record.attention(kind)  # (L, H, T, S)
    num_layers, num_heads, num_rows, num_columns = weights.shape
    cell = (max(1.5, 0.2 * num_columns), max(1.5, 0.2 * num_rows))
    figure = new_figure(1.4 + cell[0] * num_heads, 1.6 + cell[1] * num_layers)
    grid = figure.subplots(num_layers, num_heads, squeeze=False)
    for (layer, head), axes in np.ndenumerate(grid):
        image = draw_matrix(axes, weights[layer, head], limit=1.0)
        is_left, is_last = head == 0, layer == num_layers - 1
        label_axis(axes, rows=scene.rows(kind) if is_left else ())
        axes.set_xticks(range(num_columns), scene.columns(kind) if is_last else [""] * num_columns)
        axes.tick_params(axis="x", rotation=90)
        axes.tick_params(labelsize=7)
        if layer == 0:
            axes.set_title(scene.say("head {head}", head=head), fontsize=9)
        if is_left:
            axes.set_ylabel(scene.say("layer {layer}", layer=layer), fontsize=9)
    figure.colorbar(image, ax=grid, shrink=0.6, pad=0.01)
    set_heading(
        figure,
        scene.say("All heads: {kind}", kind=scene.name_kind(kind)),
        scene.say("Row: the word that looks. Column: what it looks at. Dark: much weight."),
    )
    return figure


def draw_concatenated_heads(scene: Scene) -> Figure:
    """Draw the heads of one word side by side, times W_O."""
    kind, layer, _, row = scene.spot("encoder_self")
    inside = look_at_attention(scene.model, scene.forced, kind, layer)
    projection = find_attention(scene.model, kind, layer).output
    weight = projection.weight.detach().T.float().cpu().numpy()  # (H * K, D)
    heads = inside.heads[:, row]  # (H, K)
    num_heads, size = heads.shape
    parts = np.stack([own @ weight[i * size : (i + 1) * size] for i, own in enumerate(heads)])
    figure = new_figure(12, 8.4)
    top, middle, bottom, last = figure.subplots(4, 1, height_ratios=(1, 5, 3, 1))
    draw_strip(top, heads.ravel(), limit=spread(heads), label="Concat")
    _mark_heads(top, scene, num_heads, size)
    draw_matrix(middle, weight.T, is_signed=True, limit=spread(weight))
    _mark_heads(middle, scene, num_heads, size, is_named=False)
    middle.set_ylabel("W_Oᵀ", rotation=0, ha="right", va="center")
    middle.set_title(f"W_O  {weight.shape[0]} × {weight.shape[1]}", fontsize=10, loc="left")
    limit = spread(parts, inside.output[row])
    draw_matrix(bottom, parts, is_signed=True, limit=limit)
    shares = np.linalg.norm(parts, axis=-1)
    label_axis(bottom, rows=[scene.say("head {head}", head=i) for i in range(num_heads)])
    bottom.set_title(scene.say("what each head adds, in its part of W_O"), fontsize=10, loc="left")
    sizes = bottom.secondary_yaxis("right")
    sizes.set_yticks(range(num_heads), [scene.say("size {size}", size=f"{s:.1f}") for s in shares])
    sizes.tick_params(length=0, labelsize=8, colors=GREY)
    draw_strip(last, inside.output[row], limit=limit, label="Σ")
    has_bias = projection.bias is not None
    total = "their sum (with the bias): what goes on" if has_bias else "their sum: what goes on"
    last.set_title(scene.say(total), fontsize=10, loc="left")
    set_heading(
        figure,
        scene.say("Heads side by side, times W_O: “{word}”", word=scene.rows(kind)[row]),
        scene.say("{kind}, layer {layer}", kind=scene.name_kind(kind), layer=layer),
    )
    return figure


def _find_unlike(
    scene: Scene, weights: NDArray[np.float32], names: list[str]
) -> tuple[int, int, int]:
    """Give the two heads and the row where they differ most, among those that may be chosen."""
    focus, num_heads = scene.focus, len(weights)
    chosen = [
        range(count) if number is None else [pick(number, count, name, default=0)]
        for number, count, name in (
            (focus.head, num_heads, "head"),
            (focus.other_head, num_heads, "head"),
            (focus.row, len(names), "row"),
        )
    ]
    first, second, row = max(
        product(*chosen),
        key=lambda one: float(np.abs(weights[one[0], one[2]] - weights[one[1], one[2]]).sum()),
    )
    return first, second, row


def _new_columns(scene: Scene, kind: AttentionKind) -> tuple[Figure, Axes]:
    count = max(len(scene.rows(kind)), len(scene.columns(kind)))
    figure = new_figure(7.0, 1.9 + 0.38 * count)
    axes = figure.subplots()
    hide_axes(axes)
    axes.set_xlim(-0.75, 2.0)
    axes.set_ylim(count - 0.4, -1.2)
    return figure, axes


def _draw_lines(
    axes: Axes,
    row: int,
    weights: NDArray[np.float32],
    colour: str,
    *,
    strength: float = 1.0,
    shift: float = 0.0,
) -> None:
    for column, weight in enumerate(weights.tolist()):
        if weight >= FAINTEST:
            axes.plot(
                (0.02, 0.98),
                (row + shift, column + shift),
                color=colour,
                linewidth=0.6 + 5.0 * weight * min(1.0, 2 * strength),
                alpha=strength * (0.25 + 0.75 * weight),
                solid_capstyle="round",
            )


def _write_columns(
    axes: Axes,
    scene: Scene,
    kind: AttentionKind,
    row: int,
    shown: list[tuple[NDArray[np.float32], str, float]],
) -> None:
    """Write the tokens of both sides, and beside those on the right how much each head gives."""
    for place, name in enumerate(scene.rows(kind)):
        weight = "bold" if place == row else "normal"
        colour = BLACK if place == row else GREY
        axes.text(-0.02, place, name, ha="right", va="center", fontweight=weight, color=colour)
    for place, name in enumerate(scene.columns(kind)):
        best = max(float(weights[place]) for weights, _, _ in shown)
        axes.text(1.02, place, name, ha="left", va="center", color=BLACK if best > 0.1 else GREY)
        for number, (weights, colour, _) in enumerate(shown):
            if weights[place] >= FAINTEST:
                axes.text(
                    1.52 + 0.22 * number,
                    place,
                    write_number(float(weights[place]), 2),
                    va="center",
                    fontsize=9,
                    fontweight="bold",
                    color=colour,
                )
    asks = "a word of the source …" if kind == "encoder_self" else "the step that says …"
    answers = "… attends to what was said" if kind == "decoder_self" else "… attends to the source"
    style: dict[str, Any] = {"fontsize": 9, "color": GREY, "va": "center"}
    axes.text(-0.02, -0.9, scene.say(asks), ha="right", **style)
    axes.text(1.02, -0.9, scene.say(answers), ha="left", **style)


def _mark_heads(
    axes: Axes, scene: Scene, num_heads: int, size: int, *, is_named: bool = True
) -> None:
    """Part the heads by lines, and name them above in their colours."""
    for number in range(num_heads):
        if number:
            axes.axvline(number * size - 0.5, color=BLACK, linewidth=1)
        if is_named:
            axes.text(
                (number + 0.5) * size - 0.5,
                -0.65,
                scene.say("head {head}", head=number),
                ha="center",
                va="bottom",
                fontsize=9,
                color=CYCLE[number % len(CYCLE)] if num_heads <= len(CYCLE) else GREY,
            )
