"""The report on a time series model as Markdown, as plots, and as tables of the command line.

Everything is computed from the JSON report. Texts in plots are English, so that matplotlib's own
font suffices.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from attendo.core.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODEL_NAME = "transformer"
METRIC_COLUMNS = {
    "labels": {
        "accuracy": ("accuracy", ".2%"),
        "f1": ("macro F1", ".3f"),
        "brier": ("Brier score", ".4f"),
        "log_loss": ("log loss", ".4f"),
        "ece": ("ECE", ".4f"),
    },
    "numbers": {"mae": ("MAE", "#.4g"), "rmse": ("RMSE", "#.4g")},
}
"""The metrics of each kind of target, in this order: the displayed name and the number format."""
STEP_METRIC = {"labels": "log_loss", "numbers": "mae"}
PLOT_TITLES = {"by_step.png": "By step of the horizon", "reliability.png": "Reliability"}
COLORS = ("#3b6fb6", "#e08214", "#7a7a7a", "#5aae61")
FIGURE_SIZE, DPI = (7.0, 3.8), 150


def summary_table(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headers and rows of the table of all metrics, with one column per system."""
    systems = _systems(report)
    columns = METRIC_COLUMNS[report["data"]["kind"]]
    rows = [
        [name, *(format(system_metrics[key], format_spec) for system_metrics in systems.values())]
        for key, (name, format_spec) in columns.items()
    ]
    rows += [
        [f"F1 ({label})", *(f"{found['f1_by_label'][label]:.3f}" for found in systems.values())]
        for label in report["data"]["labels"]
    ]
    rows += [
        [
            f"{columns[key][0]} ({name})",
            *(_format_target(found, name, key) for found in systems.values()),
        ]
        for name in _multiple_targets(report)
        for key in columns
    ]
    return ["", *systems], rows


def step_table(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Return headers and rows of the table by step: log loss, or mean absolute error."""
    kind = report["data"]["kind"]
    format_spec = METRIC_COLUMNS[kind][STEP_METRIC[kind]][1]
    systems = _systems(report)
    by_step = [
        system_metrics[f"{STEP_METRIC[kind]}_by_step"] for system_metrics in systems.values()
    ]
    rows = [
        [f"+{step}", *("" if one is None else format(one, format_spec) for one in values)]
        for step, values in enumerate(zip(*by_step, strict=True), 1)
    ]
    return ["", *systems], rows


def _multiple_targets(report: dict[str, Any]) -> list[str]:
    targets: list[str] = report["data"]["targets"]
    return targets if len(targets) > 1 else []


def _format_target(system_metrics: dict[str, Any], name: str, key: str) -> str:
    target_metrics = system_metrics["by_target"].get(name)
    return "" if target_metrics is None else f"{target_metrics[key]:#.4g}"


def step_metric_name(report: dict[str, Any]) -> str:
    """Return the name of the metric in the table by step."""
    kind = report["data"]["kind"]
    return METRIC_COLUMNS[kind][STEP_METRIC[kind]][0]


def _systems(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {MODEL_NAME: report["system"], **report["baselines"]}


def render_markdown(report: dict[str, Any], plots: Sequence[str]) -> str:
    """Return a report as Markdown."""
    data = report["data"]
    files = ", ".join(f"`{path}`" for path in data["paths"])
    parts = [
        f"# Evaluation of {report['model']}",
        f"{data['num_windows']:,} windows of {files}: {data['window']} steps of "
        f"{', '.join(data['features'])} in, {data['horizon']} steps of "
        f"{', '.join(data['targets'])} out.",
        _markdown_table(*summary_table(report)),
        f"## {step_metric_name(report)} by step",
        _markdown_table(*step_table(report)),
        *(f"![{PLOT_TITLES[name]}]({name})" for name in plots),
        *(f"Note: {note}" for note in report["notes"]),
    ]
    return "\n\n".join(parts) + "\n"


def _markdown_table(headers: list[str], rows: list[list[str]]) -> str:
    lines = [headers, ["---", *["---:"] * (len(headers) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# -- plots


def plot_report(report: dict[str, Any]) -> dict[str, bytes]:
    """Return the plots of a report as PNG by file name: metrics by step, and reliability."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
    _plot_steps(figure.subplots(), report)
    plots = {"by_step.png": _to_png(figure)}
    if report["data"]["kind"] == "labels":
        figure = Figure(figsize=FIGURE_SIZE, layout="constrained")
        _plot_reliability(figure.subplots(), report)
        plots["reliability.png"] = _to_png(figure)
    return plots


def _plot_steps(axes: Axes, report: dict[str, Any]) -> None:
    kind = report["data"]["kind"]
    metric = STEP_METRIC[kind]
    steps = range(1, report["data"]["horizon"] + 1)
    for color, (name, system_metrics) in zip(COLORS, _systems(report).items(), strict=False):
        values = [
            float("nan") if one is None else one for one in system_metrics[f"{metric}_by_step"]
        ]
        axes.plot(steps, values, "o-", color=color, label=name, markersize=4)
    axes.set_xlabel("step of the horizon")
    axes.set_ylabel(METRIC_COLUMNS[kind][metric][0])
    _style_axes(axes)


def _plot_reliability(axes: Axes, report: dict[str, Any]) -> None:
    axes.plot([0, 1], [0, 1], "--", color="#999999", linewidth=1)
    for color, (name, system_metrics) in zip(COLORS, _systems(report).items(), strict=False):
        bins = [one for one in system_metrics["bins"] if one["count"]]
        points = [one["confidence"] for one in bins], [one["accuracy"] for one in bins]
        axes.plot(*points, "o-", color=color, label=name, markersize=4)
    axes.set_xlabel("predicted probability of the most probable label")
    axes.set_ylabel("observed frequency")
    _style_axes(axes)


def _style_axes(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)


def _to_png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DPI)
    return stream.getvalue()
