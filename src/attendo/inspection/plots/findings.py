"""Pictures of what was found out: attribution, ablation, the logit lens."""

from __future__ import annotations

from textwrap import shorten
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.inspection.plots.canvas import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    draw_matrix,
    label_axis,
    new_figure,
    set_heading,
    tidy,
    write_number,
)
from attendo.inspection.plots.fonts import clean
from attendo.inspection.plots.scene import name_piece
from attendo.inspection.record import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attendo.inspection.plots.scene import Scene

MOST_TEXTS = 4
"""Changed translations that are written out."""


def draw_attribution(scene: Scene) -> Figure:
    """Draw which source words each target word hangs on."""
    section = scene.section("attribution")
    rows, columns = (
        [clean(word) for word in side["words"]] for side in (scene.record.tgt, scene.record.src)
    )
    has_words = bool(rows and columns)
    matrix = np.array(section["words" if has_words else "tokens"], dtype=float)
    if not has_words:  # of symbols alone
        rows, columns = scene.said, scene.src
    figure = new_figure(3.4 + 0.95 * len(columns), 2.2 + 0.42 * len(rows))
    axes = figure.subplots()
    image = draw_matrix(
        axes, matrix, rows=rows, columns=columns, is_signed=True, digits=1,
        limit=float(np.abs(matrix).max(initial=0.0)) or 1.0, room=12,
    )  # fmt: skip
    figure.colorbar(image, ax=axes, pad=0.02, label=scene.say("nats"))
    axes.set_ylabel(scene.say("a target word …"), color=GREY)
    axes.set_xlabel(scene.say("… hangs on source words"), color=GREY)
    names = {
        "integrated_gradients": "integrated gradients, {count} steps",
        "gradient_x_input": "gradient times input",
    }
    set_heading(
        figure,
        scene.say("Which source words make the model say it"),
        scene.say(
            "{method}. Red: speaks for the word; blue: against it.",
            method=scene.say(names[section["method"]], count=section["num_steps"]),
        ),
    )
    return figure


def draw_ablation(scene: Scene) -> Figure:
    """Draw what each head's absence does to the log-probability of the translation."""
    section = scene.section("ablation")
    kinds = [kind for kind in KINDS if any(one["kind"] == kind for one in section["heads"])]
    most = max(sum(one["kind"] == kind for one in section["heads"]) for kind in kinds)
    figure = new_figure(max(9.0, 2.0 + 0.22 * most * len(kinds)), 4.6)
    panels = figure.subplots(1, len(kinds), sharey=True, squeeze=False)[0]
    for axes, kind, colour in zip(panels, kinds, (GREEN, BLUE, ORANGE), strict=False):
        own = [one for one in section["heads"] if one["kind"] == kind]
        _draw_changes(axes, scene, own, colour)
        axes.set_title(scene.name_kind(kind), fontsize=10, loc="left")
    panels[0].set_ylabel(scene.say("change of log p (nats)"))
    changed = [one for one in section["heads"] if _is_changed(one, scene.record.tgt["text"])]
    lines = [
        scene.say(
            "* {kind}, layer {layer}, head {head}: {text}",
            kind=scene.name_kind(one["kind"]),
            layer=one["layer"],
            head=one["head"],
            text=shorten(one["text"], 80, placeholder=" …"),
        )
        for one in sorted(changed, key=lambda one: float(one["change"]))[:MOST_TEXTS]
    ]
    if len(changed) > MOST_TEXTS:
        lines.append(scene.say("… and {count} more", count=len(changed) - MOST_TEXTS))
    told = scene.say("One head off at a time; with all of them log p is {all}.",
                     all=write_number(section["log_prob"], 2))  # fmt: skip
    if changed:
        told += " " + scene.say("* the translation becomes another:")
    set_heading(figure, scene.say("What each head is worth"), "\n".join([told, *lines]))
    return figure


def draw_logit_lens(scene: Scene) -> Figure:
    """Draw what each decoder layer would have said, as a table."""
    layers = scene.section("logit_lens")["layers"]
    shown = np.array([[step["top"][0]["probability"] for step in layer] for layer in layers])
    figure = new_figure(2.4 + 1.05 * len(scene.said), 2.2 + 0.62 * len(layers))
    axes = figure.subplots()
    image = draw_matrix(axes, shown[::-1], limit=1.0)
    names = [scene.say("layer {layer}", layer=number) for number in range(len(layers))]
    label_axis(axes, rows=names[::-1], columns=scene.said, room=14)
    for place, layer in enumerate(reversed(layers)):
        for column, step in enumerate(layer):
            is_right = step["rank"] == 0
            best = step["top"][0]
            axes.text(
                column,
                place,
                name_piece(best["piece"]) + ("" if is_right else f"\n({step['rank'] + 1:,})"),
                ha="center",
                va="center",
                fontsize=9 if is_right else 8.5,
                fontweight="bold" if is_right else "normal",
                color="white" if best["probability"] > 0.6 else BLACK,
            )
    axes.set_xlabel(scene.say("what was said"), color=GREY)
    figure.colorbar(image, ax=axes, pad=0.02, label=scene.say("probability"))
    set_heading(
        figure,
        scene.say("What each decoder layer would have said"),
        scene.say("Bold: the word that was said. (n): the rank that the layer gave to it."),
    )
    return figure


def _draw_changes(axes: Axes, scene: Scene, heads: list[dict[str, Any]], colour: str) -> None:
    """Draw a bar for each head, with a gap between layers."""
    places = [place + one["layer"] * 0.8 for place, one in enumerate(heads)]
    changes = [one["change"] for one in heads]
    axes.bar(places, changes, color=colour, width=0.8)
    axes.set_xticks(places, [str(one["head"]) for one in heads], fontsize=8)
    axes.tick_params(length=0)
    axes.axhline(0, color=GREY, linewidth=0.8)
    tidy(axes)
    for place, one in zip(places, heads, strict=True):
        if _is_changed(one, scene.record.tgt["text"]):
            below = one["change"] < 0
            axes.text(place, one["change"], "*", ha="center", va="top" if below else "bottom")
    for layer in sorted({one["layer"] for one in heads}):
        own = [place for place, one in zip(places, heads, strict=True) if one["layer"] == layer]
        axes.text(
            (own[0] + own[-1]) / 2,
            -0.11,
            scene.say("layer {layer}", layer=layer),
            transform=axes.get_xaxis_transform(),
            ha="center",
            va="top",
            fontsize=9,
            color=GREY,
        )


def _is_changed(one: dict[str, Any], text: str) -> bool:
    return one["text"] is not None and one["text"] != text
