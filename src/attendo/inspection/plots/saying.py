"""Pictures of the decoder at work: its steps, and from logits to a word."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import numpy as np
import torch

from attendo.inspection.plots.canvas import (
    BLACK,
    BLUE,
    GREY,
    LIGHT,
    ORANGE,
    hide_axes,
    label_axis,
    new_figure,
    set_heading,
    tidy,
    write_number,
)
from attendo.inspection.plots.fonts import set_fonts
from attendo.inspection.plots.scene import name_piece, spell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from attendo.inspection.plots.scene import Scene

NUM_LOGITS = 10
NUM_COLUMNS = 4
FRAME_MS, LAST_FRAME_MS = 900, 2500
FRAME_DOTS = 110


def draw_decoder_steps(scene: Scene) -> Figure:
    """Draw the decoder's steps: what it had said, where it looked, what it said next."""
    num_steps = len(scene.said)
    num_columns = min(NUM_COLUMNS, num_steps)
    num_rows = -(-num_steps // num_columns)
    figure = new_figure(3.6 * num_columns, 1.2 + 2.5 * num_rows)
    panels = figure.subplots(num_rows, num_columns, squeeze=False, sharey=True).ravel()
    for step, axes in enumerate(panels):
        if step < num_steps:
            _draw_step(axes, scene, step)
        else:
            hide_axes(axes)
    above = scene.say("Above: what was said, and → the next word with its probability.")
    set_heading(figure, scene.say("The decoder, step by step"), f"{above} {_tell_bars(scene)}")
    return figure


def animate_decoder_steps(scene: Scene) -> bytes:
    """Give the same steps as an animated GIF."""
    from PIL import Image

    frames = []
    for step in range(len(scene.said)):
        figure = new_figure(8.0, 4.6)
        axes = figure.subplots()
        _draw_step(axes, scene, step, is_large=True)
        title = scene.say("Step {step} of {count}", step=step + 1, count=len(scene.said))
        set_heading(figure, title, _tell_bars(scene))
        set_fonts(figure)
        stream = io.BytesIO()
        figure.savefig(stream, format="png", dpi=FRAME_DOTS, facecolor="white")
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


def draw_logits(scene: Scene) -> Figure:
    """Draw one step from logits over softmax to the word that was said."""
    row = scene.pick_row(scene.said)
    with torch.inference_mode():
        logits = scene.forced(scene.any_model)[0, row].float().cpu()  # (V,)
    probabilities = logits.softmax(-1)
    best = probabilities.topk(min(NUM_LOGITS, len(logits))).indices.tolist()
    said = int(scene.forced.said_ids[row])
    shown = best if said in best else [*best, said]
    names = [name_piece(piece) for piece in scene.tokenizer.tgt_pieces(shown)]
    figure = new_figure(12, 4.6)
    left, middle, right = figure.subplots(1, 3, width_ratios=(4, 4, 3))
    _draw_all(left, np.sort(logits.numpy())[::-1], float(logits[said]), len(logits), scene)
    colours = [ORANGE if number == said else BLUE for number in shown]
    for axes, values, form in ((middle, logits, _tell_logit), (right, probabilities, _tell_chance)):
        numbers = values[shown].tolist()
        bars = axes.barh(range(len(shown)), numbers, color=colours, height=0.7)
        axes.bar_label(bars, [form(number) for number in numbers], padding=3, fontsize=8)
        axes.set_yticks(range(len(shown)), names if axes is middle else [""] * len(shown))
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.tick_params(length=0)
        axes.margins(x=0.2)
        tidy(axes, grid="x")
    middle.set_title(scene.say("the highest logits"), fontsize=10, loc="left")
    right.set_title(scene.say("softmax: probabilities"), fontsize=10, loc="left")
    set_heading(
        figure,
        scene.say("From logits to a word: “{word}”", word=scene.said[row]),
        scene.say("Said so far: {said}", said=spell(scene.read[: row + 1])),
    )
    return figure


def _tell_bars(scene: Scene) -> str:
    is_single = scene.record.attention("cross").shape[1] == 1
    mean = "Bars: where the last layer's heads look, on average."
    return scene.say("Bars: where the last attention looks." if is_single else mean)


def _draw_step(axes: Axes, scene: Scene, step: int, *, is_large: bool = False) -> None:
    cross = scene.weights("cross", len(scene.record.attention("cross")) - 1)
    looks = cross[:, step].mean(0)  # (S,)
    colours = [ORANGE if place == int(looks.argmax()) else BLUE for place in range(len(looks))]
    axes.bar(range(len(looks)), looks, color=colours, width=0.75)
    axes.set_ylim(0, 1)
    size = 11 if is_large else 8
    label_axis(axes, columns=scene.src, room=(75 if is_large else 45) // len(looks))
    axes.set_yticks((0, 0.5, 1), ("0", "0.5", "1"))
    axes.tick_params(labelsize=size)
    tidy(axes)
    before = spell(scene.read[: step + 1], room=80 if is_large else 36)
    probability = scene.record.steps[step]["probability"]
    axes.text(
        0.0, 1.17, before, transform=axes.transAxes, fontsize=size + 0.5, color=GREY, va="bottom"
    )
    axes.text(
        0.0,
        1.04,
        f"→ {scene.said[step]}  {probability:.2f}",
        transform=axes.transAxes,
        fontsize=size + 1.5,
        fontweight="bold",
        color=BLACK,
        va="bottom",
    )


def _draw_all(
    axes: Axes, ordered: NDArray[np.float32], said: float, vocab_size: int, scene: Scene
) -> None:
    """Draw all logits from the highest down, and where the one that was said stands."""
    axes.fill_between(range(vocab_size), ordered, ordered.min(), color=LIGHT, linewidth=0)
    axes.plot(ordered, color=GREY, linewidth=1.2)
    axes.plot(int((ordered > said).sum()), said, "o", color=ORANGE, markersize=8)
    axes.set_title(scene.say("all {count} logits, highest first", count=f"{vocab_size:,}"),
                   fontsize=10, loc="left")  # fmt: skip
    axes.set_xlabel(scene.say("rank"))
    tidy(axes)


def _tell_logit(value: float) -> str:
    return write_number(value, 1)


def _tell_chance(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.0e}".replace("-", "−")
