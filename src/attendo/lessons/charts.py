"""Charts of lessons as SVG, by matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.inspection.plots.canvas import CYCLE, new_figure, render, tidy
from attendo.inspection.plots.fonts import set_fonts
from attendo.lessons.blocks import say

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    from attendo.lessons.blocks import Chart, Lang

MARKS = "os^Dv<>p"


def draw_chart(chart: Chart, lang: Lang, suffix: str = ".svg") -> bytes:
    """Draw a chart; give the picture's bytes."""
    figure = new_figure(7.0, 3.8)
    axes = figure.subplots()
    if chart.form == "bars":
        _draw_bars(axes, chart, lang)
    else:
        _draw_lines(axes, chart, lang)
    axes.set_title(say(chart.title, lang), loc="left", fontsize=11)
    axes.set_xlabel(say(chart.x_label, lang))
    axes.set_ylabel(say(chart.y_label, lang))
    if len(chart.series) > 1:
        axes.legend(fontsize=8, frameon=False)
    tidy(axes)
    set_fonts(figure)
    return render(figure, suffix)


def _draw_lines(axes: Axes, chart: Chart, lang: Lang) -> None:
    for one, colour, mark in zip(chart.series, CYCLE, MARKS, strict=False):
        values = [float("nan") if value is None else value for value in one.values]
        has_marks = len(values) <= 40
        axes.plot(
            [float(x) for x in chart.x],
            values,
            color=colour,
            marker=mark if has_marks else None,
            markersize=4,
            label=say(one.label, lang),
        )
    if chart.log_x:
        axes.set_xscale("log", base=2)
        axes.set_xticks([float(x) for x in chart.x][:: max(1, len(chart.x) // 8)])
        _write_plainly(axes.xaxis)
    if chart.log_y:
        axes.set_yscale("log")
        _write_plainly(axes.yaxis)


def _write_plainly(axis: Axis) -> None:
    """Write the ticks of a logarithmic axis as numbers, the small ones between them not at all."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _place: f"{value:,.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _draw_bars(axes: Axes, chart: Chart, lang: Lang) -> None:
    width = 0.8 / len(chart.series)
    for place, (one, colour) in enumerate(zip(chart.series, CYCLE, strict=False)):
        shift = (place - (len(chart.series) - 1) / 2) * width
        values = [0.0 if value is None else value for value in one.values]
        spots = [spot + shift for spot in range(len(values))]
        axes.bar(spots, values, width=0.92 * width, color=colour, label=say(one.label, lang))
    axes.set_xticks(range(len(chart.x)), [str(name) for name in chart.x])
    if chart.log_y:
        axes.set_yscale("log")
        _write_plainly(axes.yaxis)
