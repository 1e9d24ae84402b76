"""Pictures of one attention, step by step: Q, K, V, scores, softmax, weighted sum, masks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attendo.data.tokenizer import PAD_ID
from attendo.inspection.heads import find_attention
from attendo.inspection.insides import look_at_attention
from attendo.inspection.plots.canvas import (
    BLUE,
    GREY,
    LIGHT,
    MOST_NUMBERS,
    ORANGE,
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
from attendo.model.masks import look_ahead_mask, neighbourhood_mask, padding_mask

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.plots.scene import Scene

PAD = "<pad>"
NUM_PADS = 2


def draw_query_key_value(scene: Scene) -> Figure:
    """Draw how one word becomes its query, key and value: x times W_Q, W_K, W_V of one head."""
    kind, layer, head, row = scene.spot("encoder_self")
    inside = look_at_attention(scene.model, scene.forced, kind, layer)
    attention = find_attention(scene.model, kind, layer)
    column = row if kind != "cross" else int(inside.weights[head, row].argmax())
    plan = (
        ("W_Q", attention.query, inside.asking[row], inside.queries[head, row]),
        ("W_K", attention.key, inside.answering[column], inside.keys[head, column]),
        ("W_V", attention.value, inside.answering[column], inside.values[head, column]),
    )
    figure = new_figure(13, 6.6)
    grid = figure.subplots(3, 5, width_ratios=(8, 0.6, 4, 0.6, 4))
    limit = spread(*(vector for *_, vector in plan), *(vector for _, _, vector, _ in plan))
    for panels, (name, projection, vector, result) in zip(grid, plan, strict=True):
        size = len(result)
        weight = projection.weight.detach()[head * size : (head + 1) * size].T.float().cpu().numpy()
        given, times, matrix, equals, made = panels
        draw_strip(given, vector, limit=limit, label="x")
        draw_matrix(matrix, weight, is_signed=True, limit=spread(weight))
        draw_strip(made, result, limit=limit, label=name[-1].lower())
        write_sign(times, "×")
        write_sign(equals, "=")
        matrix.set_title(f"{name}  {weight.shape[0]} × {weight.shape[1]}", fontsize=10)
        for axes in (given, made):
            axes.set_box_aspect(0.1 if axes is given else 0.2)
    names = {"W_Q": scene.rows(kind)[row], "W_K": scene.columns(kind)[column]}
    if kind == "decoder_self":
        names = dict.fromkeys(names, scene.read[row])
    for panels, (name, *_) in zip(grid, plan, strict=True):
        word = names.get(name, names["W_K"])
        panels[0].set_title(f"“{word}”", fontsize=10, loc="left")
    caption = scene.say(
        "{kind}, layer {layer}, head {head}: it reads all {size} numbers of x, and has its own "
        "three matrices.",
        kind=scene.name_kind(kind),
        layer=layer,
        head=head,
        size=inside.asking.shape[1],
    )
    if scene.model.config.bias:
        caption += " " + scene.say("(Biases are added but not drawn.)")
    set_heading(figure, scene.say("Query, key and value of one word"), caption)
    return figure


def draw_one_word(scene: Scene) -> Figure:
    """Draw one word's attention in three steps: scores, softmax, weighted sum of the values."""
    kind, layer, head, row = scene.spot("encoder_self")
    inside = look_at_attention(scene.model, scene.forced, kind, layer)
    names, allowed = scene.columns(kind), inside.mask[row]
    scores = np.where(allowed, inside.scores[head, row], np.nan)
    weights = inside.weights[head, row]
    weighted = weights[:, None] * inside.values[head]  # (S, K)
    figure = new_figure(13, max(3.8, 2.2 + 0.32 * len(names)))
    left, middle, right = figure.subplots(1, 3, width_ratios=(3, 3, 6))
    _draw_bars(left, scores, names, colour=GREY, digits=1)
    first = "1. scores  q · k / √{size}" if scene.model.config.scale else "1. scores  q · k"
    left.set_title(scene.say(first, size=inside.queries.shape[-1]), loc="left", fontsize=10)
    _draw_bars(middle, np.where(allowed, weights, np.nan), (), colour=BLUE, digits=2)
    middle.set_title(scene.say("2. softmax: they sum to 1"), loc="left", fontsize=10)
    middle.set_xlim(0, 1.12)
    total = np.vstack([weighted, np.full((1, weighted.shape[1]), np.nan), inside.heads[head, row]])
    draw_matrix(right, total, is_signed=True, limit=spread(weighted, inside.heads[head, row]))
    label_axis(right, rows=[*(f"{w:.2f} · v" for w in weights), "", "Σ"])
    third = scene.say("3. values times weights, and their sum")
    right.set_title(third, loc="left", fontsize=10)
    right.set_xlabel(scene.say("{size} dimensions", size=weighted.shape[1]), color=GREY)
    set_heading(
        figure,
        scene.say("Attention of one word: “{word}”", word=scene.rows(kind)[row]),
        _name_head(scene, kind, layer, head),
    )
    return figure


def draw_score_matrix(scene: Scene) -> Figure:
    """Draw the matrix of scores of one head, and its softmax."""
    kind, layer, head, _ = scene.spot("encoder_self")
    inside = look_at_attention(scene.model, scene.forced, kind, layer)
    rows, columns = scene.rows(kind), scene.columns(kind)
    cell = 0.56 if len(columns) <= MOST_NUMBERS else 0.3
    figure = new_figure(3.4 + 2 * cell * len(columns), 2.2 + 0.8 * cell * len(rows))
    left, right = figure.subplots(1, 2)
    scores = np.where(inside.mask, inside.scores[head], np.nan)
    left.set_facecolor(LIGHT)
    shown: dict[str, Any] = {"rows": rows, "columns": columns, "room": round(cell * 14)}
    image = draw_matrix(left, scores, is_signed=True, digits=1, **shown)
    figure.colorbar(image, ax=left, shrink=0.8, pad=0.02)
    image = draw_matrix(right, inside.weights[head], limit=1.0, digits=2, **shown)
    figure.colorbar(image, ax=right, shrink=0.8, pad=0.02)
    formula = "scores  Q Kᵀ / √{size}" if scene.model.config.scale else "scores  Q Kᵀ"
    left.set_title(scene.say(formula, size=inside.queries.shape[-1]), fontsize=10)
    right.set_title(scene.say("softmax of each row"), fontsize=10)
    for axes in (left, right):
        label_sides(axes, scene, kind)
    set_heading(figure, scene.say("The matrix of scores"), _name_head(scene, kind, layer, head))
    return figure


def draw_masks(scene: Scene) -> Figure:
    """Draw the three masks: padding, look-ahead, padding of the source; in a padded batch."""
    kinds = scene.record.kinds
    if scene.focus.kind or not kinds:
        kinds = (scene.kind("cross"),)  # says which kinds there are
    most = NUM_PADS + max(len(scene.src), len(scene.said))
    figure = new_figure(1.5 + max(4.6, 0.3 * most) * len(kinds), 2.0 + max(3.2, 0.24 * most))
    titles: dict[AttentionKind, str] = {
        "encoder_self": "encoder self-attention: hides padding",
        "decoder_self": "decoder self-attention: hides the future and padding",
        "cross": "cross-attention: hides the source's padding",
    }
    panels = figure.subplots(1, len(kinds), squeeze=False)[0]
    for axes, kind in zip(panels, kinds, strict=True):
        mask = _make_mask(scene, kind)
        rows, columns = (
            [*names, *[PAD] * NUM_PADS] for names in (scene.rows(kind), scene.columns(kind))
        )
        draw_matrix(
            axes,
            mask.astype(float),
            limit=1.6,
            rows=rows,
            columns=columns,
            room=2 + 48 // len(columns),
        )
        _draw_grid(axes, *mask.shape)
        for row, column in np.argwhere(~mask):
            axes.text(column, row, "×", ha="center", va="center", color=GREY, fontsize=8)
        axes.set_title(scene.say(titles[kind]), fontsize=10)
        label_sides(axes, scene, kind)
    set_heading(
        figure,
        scene.say("Masks: blue may be attended to, × may not"),
        scene.say(
            "Drawn with {count} places of padding, as beside a longer sentence.", count=NUM_PADS
        ),
    )
    return figure


def label_sides(axes: Axes, scene: Scene, kind: AttentionKind) -> None:
    """Say what rows and columns are."""
    asks = "a word of the source …" if kind == "encoder_self" else "the step that says …"
    answers = "… attends to what was said" if kind == "decoder_self" else "… attends to the source"
    axes.set_ylabel(scene.say(asks), color=GREY, fontsize=9.5)
    axes.set_xlabel(scene.say(answers), color=GREY, fontsize=9.5)


def _make_mask(scene: Scene, kind: AttentionKind) -> NDArray[np.bool_]:
    """Make the mask as the model does, for a sentence with padding: (T, S)."""
    num_rows, num_columns = len(scene.rows(kind)), len(scene.columns(kind))
    ids = torch.tensor([[PAD_ID + 1] * num_columns + [PAD_ID] * NUM_PADS])
    mask = padding_mask(ids, PAD_ID)[0].expand(num_rows + NUM_PADS, -1)
    if kind == "decoder_self":
        mask = mask & look_ahead_mask(len(mask))
    if kind != "cross" and scene.attention_width is not None:
        mask = mask & neighbourhood_mask(len(mask), scene.attention_width)
    found: NDArray[np.bool_] = mask.numpy()
    return found


def _draw_bars(
    axes: Axes,
    values: NDArray[np.float32],
    names: list[str] | tuple[()],
    *,
    colour: str,
    digits: int,
) -> None:
    places = range(len(values))
    best = int(np.nanargmax(values))
    colours = [ORANGE if place == best else colour for place in places]
    bars = axes.barh(places, np.nan_to_num(values), color=colours, height=0.7)
    texts = ["×" if np.isnan(value) else write_number(value, digits) for value in values.tolist()]
    axes.bar_label(bars, texts, padding=3, fontsize=8, color=GREY)
    axes.set_ylim(len(values) - 0.5, -0.5)
    axes.set_yticks(places, names if names else [""] * len(values))
    axes.tick_params(length=0)
    axes.axvline(0, color=LIGHT, linewidth=1)
    axes.margins(x=0.18)
    tidy(axes, grid="x")


def _draw_grid(axes: Axes, num_rows: int, num_columns: int) -> None:
    """Part the cells by white lines."""
    for edge in range(1, num_rows):
        axes.axhline(edge - 0.5, color="white", linewidth=1)
    for edge in range(1, num_columns):
        axes.axvline(edge - 0.5, color="white", linewidth=1)


def _name_head(scene: Scene, kind: AttentionKind, layer: int, head: int) -> str:
    return scene.say(
        "{kind}, layer {layer}, head {head}", kind=scene.name_kind(kind), layer=layer, head=head
    )
