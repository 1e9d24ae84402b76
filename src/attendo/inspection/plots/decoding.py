"""Plots of decoding: the decoder's steps, and from logits to a word."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import torch

from attendo.inspection.plots.context import join_labels, piece_label
from attendo.plotting.fonts import set_fonts
from attendo.plotting.style import (
    BLACK,
    BLUE,
    GRAY,
    LIGHT,
    ORANGE,
    format_number,
    hide_axes,
    label_axes,
    new_figure,
    set_heading,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.inspection.plots.context import PlotContext

NUM_LOGITS = 10
NUM_COLUMNS = 4
FRAME_MS, LAST_FRAME_MS = 900, 2500
FRAME_DPI = 110


def plot_decoder_steps(context: PlotContext) -> Figure:
    """Plot the decoder's steps: what it has read, where it attends, what it predicts next."""
    num_steps = len(context.tgt)
    num_columns = min(NUM_COLUMNS, num_steps)
    num_rows = -(-num_steps // num_columns)
    figure = new_figure(3.6 * num_columns, 1.2 + 2.5 * num_rows)
    panels = figure.subplots(num_rows, num_columns, squeeze=False, sharey=True).ravel()
    for step, axes in enumerate(panels):
        if step < num_steps:
            _plot_step(axes, context, step)
        else:
            hide_axes(axes)
    above = context.translate("Top: the words so far, and → the next word with its probability.")
    set_heading(
        figure, context.translate("The decoder, step by step"), f"{above} {_bars_caption(context)}"
    )
    return figure


def animate_decoder_steps(context: PlotContext) -> bytes:
    """Return the same steps as an animated GIF."""
    from PIL import Image

    frames = []
    for step in range(len(context.tgt)):
        figure = new_figure(8.0, 4.6)
        axes = figure.subplots()
        _plot_step(axes, context, step, is_large=True)
        title = context.translate("Step {step} of {count}", step=step + 1, count=len(context.tgt))
        set_heading(figure, title, _bars_caption(context))
        set_fonts(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=FRAME_DPI, facecolor="white")
        frames.append(Image.open(stream).convert("P", palette=Image.Palette.ADAPTIVE))
    animation = io.BytesIO()
    frames[0].save(
        animation,
        format="GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[*[FRAME_MS] * (len(frames) - 1), LAST_FRAME_MS],
        loop=0,
    )
    return animation.getvalue()


def plot_logits(context: PlotContext) -> Figure:
    """Plot one step from logits through softmax to the chosen word."""
    row = context.select_row_from(context.tgt)
    with torch.inference_mode():
        logits = context.forced_pass(context.any_model)[0, row].float().cpu()  # (V,)
    probabilities = logits.softmax(-1)
    best = probabilities.topk(min(NUM_LOGITS, len(logits))).indices.tolist()
    target_id = int(context.forced_pass.target_ids[row])
    ids = best if target_id in best else [*best, target_id]
    names = [piece_label(piece) for piece in context.tokenizer.tgt_pieces(ids)]
    figure = new_figure(12, 4.6)
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 4, 3))
    _plot_sorted_logits(
        left, np.sort(logits.numpy())[::-1], float(logits[target_id]), len(logits), context
    )
    colors = [ORANGE if number == target_id else BLUE for number in ids]
    for axes, values, format_value in (
        (middle, logits, _format_logit),
        (right, probabilities, _format_probability),
    ):
        numbers = values[ids].tolist()
        bars = axes.barh(range(len(ids)), numbers, color=colors, height=0.7)
        axes.bar_label(bars, [format_value(number) for number in numbers], padding=3, fontsize=8)
        axes.set_yticks(range(len(ids)), names if axes is middle else [""] * len(ids))
        axes.set_ylim(len(ids) - 0.5, -0.5)
        axes.tick_params(length=0)
        axes.margins(x=0.2)
        style_axes(axes, grid="x")
    middle.set_title(context.translate("the highest logits"), fontsize=10, loc="left")
    right.set_title(context.translate("softmax: probabilities"), fontsize=10, loc="left")
    set_heading(
        figure,
        context.translate("From logits to a word: “{word}”", word=context.tgt[row]),
        context.translate(
            "Words so far: {words}", words=join_labels(context.decoder_input[: row + 1])
        ),
    )
    return figure


def _bars_caption(context: PlotContext) -> str:
    is_single = context.record.attention("cross").shape[1] == 1
    mean = "Bars: mean attention of the last layer's heads."
    return context.translate("Bars: attention of the last layer." if is_single else mean)


def _plot_step(axes: Axes, context: PlotContext, step: int, *, is_large: bool = False) -> None:
    cross = context.layer_weights("cross", len(context.record.attention("cross")) - 1)
    attention = cross[:, step].mean(0)  # (S,)
    colors = [
        ORANGE if index == int(attention.argmax()) else BLUE for index in range(len(attention))
    ]
    axes.bar(range(len(attention)), attention, color=colors, width=0.75)
    axes.set_ylim(0, 1)
    size = 11 if is_large else 8
    label_axes(
        axes, columns=context.src, max_label_width=(75 if is_large else 45) // len(attention)
    )
    axes.set_yticks((0, 0.5, 1), ("0", "0.5", "1"))
    axes.tick_params(labelsize=size)
    style_axes(axes)
    decoded_text = join_labels(context.decoder_input[: step + 1], max_chars=80 if is_large else 36)
    probability = context.record.steps[step]["probability"]
    axes.text(
        0.0,
        1.17,
        decoded_text,
        transform=axes.transAxes,
        fontsize=size + 0.5,
        color=GRAY,
        va="bottom",
    )
    axes.text(
        0.0,
        1.04,
        f"→ {context.tgt[step]}  {probability:.2f}",
        transform=axes.transAxes,
        fontsize=size + 1.5,
        fontweight="bold",
        color=BLACK,
        va="bottom",
    )


def _plot_sorted_logits(
    axes: Axes,
    ordered: NDArray[np.float32],
    target_logit: float,
    vocab_size: int,
    context: PlotContext,
) -> None:
    """Plot all logits in descending order and mark the chosen one."""
    axes.fill_between(range(vocab_size), ordered, ordered.min(), color=LIGHT, linewidth=0)
    axes.plot(ordered, color=GRAY, linewidth=1.2)
    axes.plot(int((ordered > target_logit).sum()), target_logit, "o", color=ORANGE, markersize=8)
    axes.set_title(context.translate("all {count} logits, highest first", count=f"{vocab_size:,}"),
                   fontsize=10, loc="left")  # fmt: skip
    axes.set_xlabel(context.translate("rank"))
    style_axes(axes)


def _format_logit(value: float) -> str:
    return format_number(value, 1)


def _format_probability(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}".replace("-", "−")
