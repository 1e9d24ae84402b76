"""The pictures of a report: BLEU by source length, and how the sentences' scores are spread.

Words in them are few and English, so that no font is needed but matplotlib's own. Drawn from the
report alone, without pyplot: no window, no global state.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from attendo.core.errors import MissingExtraError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#3b6fb6", "#e08214")
"""Told apart by colour-blind eyes and in grey."""
NAMES = ("evaluated", "against")
SIZE, DOTS = (7.0, 3.8), 150


def draw_plots(report: dict[str, Any]) -> dict[str, bytes]:
    """Draw what a report holds; give each picture as PNG by its file name."""
    figure_class = _load_figure()
    systems = [system for system in (report["system"], report["against"]) if system is not None]
    pictures = {}
    if all(system["by_source_length"] for system in systems):
        figure = figure_class(figsize=SIZE, layout="constrained")
        _draw_lengths(figure.subplots(), [system["by_source_length"] for system in systems])
        pictures["bleu_by_length.png"] = _render(figure)
    figure = figure_class(figsize=SIZE, layout="constrained")
    _draw_spread(figure.subplots(), [system["sentence_chrf"] for system in systems])
    pictures["chrf_spread.png"] = _render(figure)
    return pictures


def _draw_lengths(axes: Axes, breakdowns: list[dict[str, Any]]) -> None:
    width = 0.8 / len(breakdowns)
    for place, (breakdown, colour) in enumerate(zip(breakdowns, COLOURS, strict=False)):
        buckets = breakdown["buckets"]
        shift = (place - (len(breakdowns) - 1) / 2) * width
        values = [bucket["bleu"] for bucket in buckets]
        axes.bar(
            [spot + shift for spot in range(len(buckets))],
            values,
            width=width * 0.92,
            color=colour,
            label=NAMES[place],
        )
        _draw_intervals(axes, buckets, shift)
    first = breakdowns[0]
    labels = [f"{bucket['label']}\nn={bucket['num_sentences']:,}" for bucket in first["buckets"]]
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.set_xlabel(f"length of the source in {first['unit']}, and number of sentences")
    axes.set_ylabel(first["measure"])
    axes.set_ylim(bottom=0)
    _finish(axes, has_legend=len(breakdowns) > 1)


def _draw_intervals(axes: Axes, buckets: list[dict[str, Any]], shift: float) -> None:
    for spot, bucket in enumerate(buckets):
        if bucket["low"] is not None:
            axes.vlines(spot + shift, bucket["low"], bucket["high"], color="#333333", linewidth=1)
            ends = [bucket["low"], bucket["high"]]
            axes.plot([spot + shift] * 2, ends, "_", color="#333333", markersize=7)


def _draw_spread(axes: Axes, spreads: list[dict[str, Any]]) -> None:
    for spread, colour, name in zip(spreads, COLOURS, NAMES, strict=False):
        counts = spread["histogram"]
        edges = [100 * place / len(counts) for place in range(len(counts) + 1)]
        is_first = name == NAMES[0]
        axes.stairs(counts, edges, fill=is_first, color=colour, linewidth=2, alpha=0.75, label=name)
        axes.axvline(spread["median"], color=colour, linestyle="--", linewidth=1.2)
    axes.set_xlim(0, 100)
    axes.set_xlabel("chrF of a sentence (dashed: the median)")
    axes.set_ylabel("sentences")
    _finish(axes, has_legend=len(spreads) > 1)


def _finish(axes: Axes, *, has_legend: bool) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    if has_legend:
        axes.legend(frameon=False)


def _render(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DOTS)
    return stream.getvalue()


def _load_figure() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    return Figure
