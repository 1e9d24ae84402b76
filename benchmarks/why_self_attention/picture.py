"""Plots of the study: time, memory, path length and operations over n, on logarithmic axes.

Solid lines are measured or counted; dashed lines are the paper's table. For time, where the table
has only the growth, the dashed line passes through the longest measured sequence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from attendo.inspection.plots.fonts import set_fonts
from attendo.inspection.plots.style import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    new_figure,
    render_figure,
    set_heading,
    style_axes,
)

from .layers import KINDS, count_dilated
from .report import format_count, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Lang = Literal["en", "ko"]
STYLES = {
    "self_attention": (BLUE, "o"),
    "recurrent": (ORANGE, "s"),
    "convolutional": (GREEN, "^"),
    "restricted": (PURPLE, "D"),
}
WORDS: dict[str, dict[str, str]] = {
    "en": {
        "title": "Why self-attention: the paper's Table 1, measured",
        "caption": "solid: measured; dashed: the table (for time: its growth over the longest n)",
        "time": "time of one layer, forward and backward",
        "bytes": "peak memory of forward and backward",
        "path": "longest path between two positions: layers (LSTM: states)",
        "mixing": "multiply-adds of the forward pass",
        "n": "sequence length n",
        "self_attention": "self-attention",
        "recurrent": "recurrent (LSTM)",
        "convolutional": "convolutional (k = {kernel})",
        "restricted": "restricted self-attention (r = {width})",
        "dilated": "dilated convolutions",
        "projections": "projections of attention, not in the table",
        "weights": "the n × n weights, if they were kept",
    },
    "ko": {
        "title": "왜 셀프 어텐션인가: 논문의 표 1을 직접 재어 보면",
        "caption": "실선: 측정값, 점선: 표의 이론값 (시간은 긴 n에서의 증가율)",
        "time": "층 하나의 순전파와 역전파 시간",
        "bytes": "순전파와 역전파의 최대 메모리",
        "path": "두 위치 사이의 가장 긴 경로: 층의 수 (LSTM: 상태의 수)",
        "mixing": "순전파의 곱셈-덧셈 횟수",
        "n": "시퀀스 길이 n",
        "self_attention": "셀프 어텐션",
        "recurrent": "순환층 (LSTM)",
        "convolutional": "합성곱 (k = {kernel})",
        "restricted": "제한된 셀프 어텐션 (r = {width})",
        "dilated": "팽창 합성곱",
        "projections": "어텐션의 선형 변환 (표에는 없음)",
        "weights": "n × n 가중치를 모두 저장할 경우",
    },
}
BYTES = {"float32": 4, "bfloat16": 2}


def plot(results: dict[str, Any], lang: Lang = "en") -> dict[str, bytes]:
    """Return the plot of four panels by its suffix, `.png` and `.svg`."""
    figure = make_figure(results, lang)
    return {suffix: render_figure(figure, suffix) for suffix in (".png", ".svg")}


def make_figure(results: dict[str, Any], lang: Lang = "en") -> Figure:
    """Return the figure with the four panels."""
    words = {key: text.format(**results["setting"]) for key, text in WORDS[lang].items()}
    figure = new_figure(12.5, 9.6)
    time, memory, path, operations = figure.subplots(2, 2).flat
    _plot_time(time, results)
    _plot_memory(memory, results, words)
    _plot_path(path, results, words)
    _plot_operations(operations, results, words)
    for axes, name in ((time, "time"), (memory, "bytes"), (path, "path"), (operations, "mixing")):
        _finish(axes, results["lengths"], words[name], words["n"])
    handles = [_handle(key, words[key]) for key in KINDS]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.004, 0.976),
        ncols=4,
        frameon=False,
        fontsize=10,
    )
    caption = f"{words['caption']}. {_describe(results)}"
    set_heading(
        figure, f"{words['title']}\n\n", caption
    )  # the empty lines leave space for the legend
    set_fonts(figure)
    return figure


def _describe(results: dict[str, Any]) -> str:
    """Return the setting in symbols, which need no translation."""
    setting, machine = results["setting"], results["machine"]
    sizes = f"d = {setting['d_model']}, k = {setting['kernel']}, r = {setting['width']}"
    return f"{sizes}, {setting['dtype']}, {machine['device']}, torch {machine['torch']}"


def _plot_time(axes: Axes, results: dict[str, Any]) -> None:
    for key, kind in KINDS.items():
        xs, values = _measured(results, results["layers"][key]["time"])
        _plot_line(axes, key, xs, values)
        upper = [n for n in xs if n in results["growth"]["lengths"]]
        theory = [values[-1] * (n / xs[-1]) ** kind.in_n for n in upper]
        _plot_theory(axes, upper, theory, STYLES[key][0])
    _format_ticks(axes, format_seconds)


def _plot_memory(axes: Axes, results: dict[str, Any], words: dict[str, str]) -> None:
    for key in KINDS:
        _plot_line(axes, key, *_measured(results, results["layers"][key]["bytes"]))
    setting, lengths = results["setting"], results["lengths"]
    size = BYTES[setting["dtype"]] * setting["num_heads"] * setting["batch"]
    bottom, _ = axes.get_ylim()
    shown = [n for n in lengths if size * n * n >= bottom]
    weights = [size * n * n for n in shown]
    if len(shown) > 1:
        axes.plot(shown, weights, color=GRAY, linestyle=":", label=words["weights"])
        axes.legend(frameon=False, fontsize=9, loc="upper left")
    _format_ticks(axes, lambda value: f"{format_count(value)}B")


def _plot_path(axes: Axes, results: dict[str, Any], words: dict[str, str]) -> None:
    lengths = results["lengths"]
    for key in KINDS:
        layer = results["layers"][key]
        _plot_line(axes, key, *_measured(results, layer["path"]))
        _plot_theory(
            axes, lengths, [max(1, steps) for steps in layer["table_path"]], STYLES[key][0]
        )
    xs, values = _measured(results, results["dilated_path"])
    axes.plot(xs, values, color=SKY, marker="v", markersize=6, label=words["dilated"])
    _plot_theory(axes, lengths, [count_dilated(n) for n in lengths], SKY)
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    _format_ticks(axes, lambda value: f"{value:,.0f}")


def _plot_operations(axes: Axes, results: dict[str, Any], words: dict[str, str]) -> None:
    lengths = results["lengths"]
    for key in KINDS:
        layer = results["layers"][key]
        _plot_line(axes, key, *_measured(results, layer["mixing"]))
        _plot_theory(axes, lengths, layer["table_operations"], STYLES[key][0])
    projections = results["layers"]["self_attention"]["projections"]
    axes.plot(lengths, projections, color=GRAY, linestyle=":", label=words["projections"])
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    _format_ticks(axes, format_count)


def _measured(
    results: dict[str, Any], values: Sequence[float | None]
) -> tuple[list[int], list[float]]:
    pairs = zip(results["lengths"], values, strict=True)
    found = [(n, value) for n, value in pairs if value is not None]
    return [n for n, _ in found], [value for _, value in found]


def _plot_line(axes: Axes, key: str, xs: Sequence[float], values: Sequence[float]) -> None:
    color, marker = STYLES[key]
    size = 9 if key == "recurrent" else 6  # visible under another line
    axes.plot(xs, values, color=color, marker=marker, markersize=size, linewidth=size / 3)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")


def _plot_theory(axes: Axes, xs: Sequence[float], values: Sequence[float], color: str) -> None:
    axes.plot(xs, values, "--", color=color, linewidth=1.2, alpha=0.8)


def _format_ticks(axes: Axes, write: Callable[[float], str]) -> None:
    """Format the ticks as plain text, with intermediate ticks if the range is small."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    bottom, top = axes.get_ylim()
    if top < 100 * bottom:
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _finish(axes: Axes, lengths: Sequence[int], title: str, label: str) -> None:
    axes.set_xticks(lengths, [f"{n:,}" for n in lengths])
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel(label, fontsize=9)
    axes.tick_params(labelsize=9, which="both")
    style_axes(axes, grid="both")


def _handle(key: str, name: str) -> Any:
    from matplotlib.lines import Line2D

    color, marker = STYLES[key]
    return Line2D([], [], color=color, marker=marker, linewidth=2, label=name)
