"""Charts of lessons as SVG or PNG, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import localize
from attendo.plotting.fonts import set_fonts
from attendo.plotting.style import CYCLE, new_figure, render_figure, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from attendo.lessons.blocks import Chart, Lang

MARKERS = "os^Dv<>p"


def plot_chart(chart: Chart, lang: Lang, suffix: str = ".svg") -> bytes:
    """Return a chart as the bytes of an image."""
    figure = new_figure(7.0, 3.8)
    axes = figure.subplots()
    if chart.form == "bars":
        _plot_bars(axes, chart, lang)
    else:
        _plot_lines(axes, chart, lang)
    axes.set_title(localize(chart.title, lang), loc="left", fontsize=11)
    axes.set_xlabel(localize(chart.x_label, lang))
    axes.set_ylabel(localize(chart.y_label, lang))
    if len(chart.series) > 1:
        axes.legend(fontsize=8, frameon=False)
    style_axes(axes)
    set_fonts(figure)
    return render_figure(figure, suffix)


def _plot_lines(axes: Axes, chart: Chart, lang: Lang) -> None:
    for one, color, marker in zip(chart.series, CYCLE, MARKERS, strict=False):
        values = [float("nan") if value is None else value for value in one.values]
        has_markers = len(values) <= 40
        axes.plot(
            [float(x) for x in chart.x],
            values,
            color=color,
            marker=marker if has_markers else None,
            markersize=4,
            label=localize(one.label, lang),
        )
    if chart.log_x:
        axes.set_xscale("log", base=2)
        axes.set_xticks([float(x) for x in chart.x][:: max(1, len(chart.x) // 8)])
        _use_plain_tick_labels(axes.xaxis)
    if chart.log_y:
        axes.set_yscale("log")
        _use_plain_tick_labels(axes.yaxis)


def _use_plain_tick_labels(axis: Axis) -> None:
    """Format the ticks of a logarithmic axis as plain numbers, without minor labels."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _position: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _plot_bars(axes: Axes, chart: Chart, lang: Lang) -> None:
    width = 0.8 / len(chart.series)
    for index, (one, color) in enumerate(zip(chart.series, CYCLE, strict=False)):
        shift = (index - (len(chart.series) - 1) / 2) * width
        values = [0.0 if value is None else value for value in one.values]
        positions = [position + shift for position in range(len(values))]
        axes.bar(
            positions, values, width=0.92 * width, color=color, label=localize(one.label, lang)
        )
    axes.set_xticks(range(len(chart.x)), [str(name) for name in chart.x])
    if chart.log_y:
        axes.set_yscale("log")
        _use_plain_tick_labels(axes.yaxis)
