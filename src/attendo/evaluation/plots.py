"""Plots of a report: BLEU by source length and the distribution of sentence scores.

The few labels are English, so that matplotlib's own font is enough. Plotted from the
report alone, without pyplot: no window, no global state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.plotting.style import BLACK, BLUE, ORANGE, new_figure, render_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (BLUE, ORANGE)
SYSTEM_NAMES = ("evaluated", "against")
FIGURE_SIZE = (7.0, 3.8)


def plot_report(report: dict[str, Any]) -> dict[str, bytes]:
    """Return the plots of a report as PNG, by file name."""
    systems = [system for system in (report["system"], report["against"]) if system is not None]
    plots = {}
    if all(system["by_source_length"] for system in systems):
        figure = new_figure(*FIGURE_SIZE)
        _plot_lengths(figure.subplots(), [system["by_source_length"] for system in systems])
        plots["bleu_by_length.png"] = render_figure(figure, ".png")
    figure = new_figure(*FIGURE_SIZE)
    _plot_distribution(figure.subplots(), [system["sentence_chrf"] for system in systems])
    plots["chrf_spread.png"] = render_figure(figure, ".png")
    return plots


def _plot_lengths(axes: Axes, breakdowns: list[dict[str, Any]]) -> None:
    width = 0.8 / len(breakdowns)
    for index, (breakdown, color) in enumerate(zip(breakdowns, COLORS, strict=False)):
        buckets = breakdown["buckets"]
        shift = (index - (len(breakdowns) - 1) / 2) * width
        values = [bucket["bleu"] for bucket in buckets]
        axes.bar(
            [position + shift for position in range(len(buckets))],
            values,
            width=width * 0.92,
            color=color,
            label=SYSTEM_NAMES[index],
        )
        _plot_intervals(axes, buckets, shift)
    first = breakdowns[0]
    labels = [f"{bucket['label']}\nn={bucket['num_sentences']:,}" for bucket in first["buckets"]]
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel(f"source length in {first['unit']}, and number of sentences")
    axes.set_ylabel(first["measure"])
    axes.set_ylim(bottom=0)
    _style_axes(axes, has_legend=len(breakdowns) > 1)


def _plot_intervals(axes: Axes, buckets: list[dict[str, Any]], shift: float) -> None:
    for position, bucket in enumerate(buckets):
        if bucket["low"] is not None:
            axes.vlines(position + shift, bucket["low"], bucket["high"], color=BLACK, linewidth=1)
            ends = [bucket["low"], bucket["high"]]
            axes.plot([position + shift] * 2, ends, "_", color=BLACK, markersize=7)


def _plot_distribution(axes: Axes, distributions: list[dict[str, Any]]) -> None:
    for distribution, color, name in zip(distributions, COLORS, SYSTEM_NAMES, strict=False):
        counts = distribution["histogram"]
        edges = [100 * index / len(counts) for index in range(len(counts) + 1)]
        is_first = name == SYSTEM_NAMES[0]
        axes.stairs(counts, edges, fill=is_first, color=color, linewidth=2, alpha=0.75, label=name)
        axes.axvline(distribution["median"], color=color, linestyle="--", linewidth=1.2)
    axes.set_xlim(0, 100)
    axes.set_xlabel("chrF of a sentence (dashed: the median)")
    axes.set_ylabel("sentences")
    _style_axes(axes, has_legend=len(distributions) > 1)


def _style_axes(axes: Axes, *, has_legend: bool) -> None:
    style_axes(axes)
    if has_legend:
        axes.legend(frameon=False)
