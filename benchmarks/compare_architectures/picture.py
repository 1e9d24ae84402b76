"""Plots: BLEU by sentence length, BLEU over training time, and the ablations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.inspection.plots.style import (
    BLUE,
    CYCLE,
    GRAY,
    new_figure,
    render_figure,
    set_heading,
    style_axes,
)

from .findings import REFERENCE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARKS = "os^Dv"


def plot(results: dict[str, Any]) -> dict[str, bytes]:
    """Return every plot by its file name."""
    systems = [results["systems"][name] for name in results["chosen"]]
    architectures = [one for one in systems if not one["is_ablation"]]
    ablations = [one for one in systems if one["is_ablation"]]
    whole = next((one for one in architectures if one["family"] == REFERENCE), None)
    figure = new_figure(10.5, 4.4)
    left, right = figure.subplots(1, 2)
    _plot_lengths(left, architectures)
    _plot_curves(right, architectures)
    set_heading(figure, "Five architectures of equal size on Multi30k English to German")
    pictures = {"architectures.png": figure}
    if whole and ablations:
        figure = new_figure(7.5, 3.6)
        _plot_ablations(figure.subplots(), whole, ablations)
        set_heading(figure, "Ablations of the Transformer: BLEU on test 2016")
        pictures["ablations.png"] = figure
    return {name: render_figure(figure, ".png") for name, figure in pictures.items()}


def _plot_lengths(axes: Axes, systems: list[dict[str, Any]]) -> None:
    for one, color, mark in zip(systems, CYCLE, MARKS, strict=False):
        positions = range(len(one["by_length"]))
        values = [bucket["bleu"] for bucket in one["by_length"]]
        axes.plot(positions, values, color=color, marker=mark, label=one["title"])
        if one["family"] == REFERENCE:
            lows, highs = ([b[key] for b in one["by_length"]] for key in ("low", "high"))
            axes.fill_between(positions, lows, highs, color=color, alpha=0.12)
    labels = [
        f"{b['first']}{'+' if b['last'] is None else '-' + str(b['last'])}\nn={b['num_sentences']}"
        for b in systems[0]["by_length"]
    ]
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel("source words, and sentences (shaded: 95 % of the Transformer)")
    axes.set_ylabel("BLEU, test 2016, tokenized")
    axes.legend(fontsize=8, frameon=False)
    style_axes(axes)


def _plot_curves(axes: Axes, systems: list[dict[str, Any]]) -> None:
    is_timed = all(one.get("speed") for one in systems)
    for one, color, mark in zip(systems, CYCLE, MARKS, strict=False):
        seconds = one["speed"]["step_seconds"] if is_timed else 1.0
        points = [
            (own["step"] * seconds, own["bleu"]) for own in one["validations"] if "bleu" in own
        ]
        axes.plot(*zip(*points, strict=True), color=color, marker=mark, markersize=4)
    axes.set_xlabel("seconds of training, alone on the machine" if is_timed else "steps")
    axes.set_ylabel("BLEU, 200 sentences of val, greedy")
    style_axes(axes)


def _plot_ablations(axes: Axes, whole: dict[str, Any], systems: list[dict[str, Any]]) -> None:
    shown = sorted(systems, key=lambda one: one["test"])
    shown.append({**whole, "title": "full Transformer"})
    positions = range(len(shown))
    values = [one["test"] for one in shown]
    colors = [GRAY] * (len(shown) - 1) + [BLUE]
    errors = [
        [value - one["interval"][0] for value, one in zip(values, shown, strict=True)],
        [one["interval"][1] - value for value, one in zip(values, shown, strict=True)],
    ]
    axes.barh(positions, values, color=colors, xerr=errors, error_kw={"lw": 1, "capsize": 2})
    axes.set_xlim(0, 1.05 * max(20.0, *(one["interval"][1] for one in shown)))
    for position, value in zip(positions, values, strict=True):
        axes.text(0.4, position, f"{value:.1f}", va="center", color="white", fontsize=9)
    axes.set_yticks(positions, [one["title"] for one in shown])
    axes.set_xlabel("BLEU, tokenized, with the 95 % interval")
    style_axes(axes, grid="x")
