"""A report on series as words and pictures: `report.md`, and what the command line shows of it.

Everything is read off the dictionary that `report.json` holds. Words in pictures are few and
English, so that no font is needed but matplotlib's own.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from attendo.core.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS = "transformer"
COLUMNS = {
    "labels": {
        "accuracy": ("accuracy", ".2%"),
        "f1": ("macro F1", ".3f"),
        "brier": ("Brier score", ".4f"),
        "log_loss": ("log loss", ".4f"),
        "ece": ("ECE", ".4f"),
    },
    "numbers": {"mae": ("MAE", "#.4g"), "rmse": ("RMSE", "#.4g")},
}
"""What is told of each kind of target, in this order: its name and how it is written."""
BY_STEP = {"labels": "log_loss", "numbers": "mae"}
PICTURES = {"by_step.png": "By step of the horizon", "reliability.png": "Said and seen"}
COLOURS = ("#3b6fb6", "#e08214", "#7a7a7a", "#5aae61")
SIZE, DOTS = (7.0, 3.8), 150


def list_rows(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Give the heads and the rows of the table of all figures: a column a system, ours first."""
    systems = _systems(report)
    columns = COLUMNS[report["data"]["kind"]]
    rows = [
        [name, *(format(found[key], form) for found in systems.values())]
        for key, (name, form) in columns.items()
    ]
    rows += [
        [f"F1 ({label})", *(f"{found['f1_by_label'][label]:.3f}" for found in systems.values())]
        for label in report["data"]["labels"]
    ]
    rows += [
        [
            f"{columns[key][0]} ({name})",
            *(_write_target(found, name, key) for found in systems.values()),
        ]
        for name in _several_targets(report)
        for key in columns
    ]
    return ["", *systems], rows


def list_steps(report: dict[str, Any]) -> tuple[list[str], list[list[str]]]:
    """Give the heads and the rows of the table by step: log loss, or mean absolute error."""
    kind = report["data"]["kind"]
    form = COLUMNS[kind][BY_STEP[kind]][1]
    systems = _systems(report)
    by_step = [found[f"{BY_STEP[kind]}_by_step"] for found in systems.values()]
    rows = [
        [f"+{step}", *("" if one is None else format(one, form) for one in values)]
        for step, values in enumerate(zip(*by_step, strict=True), 1)
    ]
    return ["", *systems], rows


def _several_targets(report: dict[str, Any]) -> list[str]:
    targets: list[str] = report["data"]["targets"]
    return targets if len(targets) > 1 else []


def _write_target(found: dict[str, Any], name: str, key: str) -> str:
    own = found["by_target"].get(name)
    return "" if own is None else f"{own[key]:#.4g}"


def name_step_measure(report: dict[str, Any]) -> str:
    """Name what is told by step."""
    kind = report["data"]["kind"]
    return COLUMNS[kind][BY_STEP[kind]][0]


def _systems(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {OURS: report["system"], **report["baselines"]}


def render(report: dict[str, Any], pictures: Sequence[str]) -> str:
    """Write a report as Markdown."""
    data = report["data"]
    files = ", ".join(f"`{path}`" for path in data["paths"])
    parts = [
        f"# Evaluation of {report['model']}",
        f"{data['num_windows']:,} windows of {files}: {data['window']} steps of "
        f"{', '.join(data['features'])} in, {data['horizon']} steps of "
        f"{', '.join(data['targets'])} out.",
        _table(*list_rows(report)),
        f"## {name_step_measure(report)} by step",
        _table(*list_steps(report)),
        *(f"![{PICTURES[name]}]({name})" for name in pictures),
        *(f"Note: {note}" for note in report["notes"]),
    ]
    return "\n\n".join(parts) + "\n"


def _table(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


# -- in pictures


def draw_pictures(report: dict[str, Any]) -> dict[str, bytes]:
    """Draw the figures by step, and how far chances can be trusted; PNG by file name."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None
    figure = Figure(figsize=SIZE, layout="constrained")
    _draw_steps(figure.subplots(), report)
    pictures = {"by_step.png": _png(figure)}
    if report["data"]["kind"] == "labels":
        figure = Figure(figsize=SIZE, layout="constrained")
        _draw_reliability(figure.subplots(), report)
        pictures["reliability.png"] = _png(figure)
    return pictures


def _draw_steps(axes: Axes, report: dict[str, Any]) -> None:
    kind = report["data"]["kind"]
    measure = BY_STEP[kind]
    steps = range(1, report["data"]["horizon"] + 1)
    for colour, (name, found) in zip(COLOURS, _systems(report).items(), strict=False):
        values = [float("nan") if one is None else one for one in found[f"{measure}_by_step"]]
        axes.plot(steps, values, "o-", color=colour, label=name, markersize=4)
    axes.set_xlabel("step of the horizon")
    axes.set_ylabel(COLUMNS[kind][measure][0])
    _finish(axes)


def _draw_reliability(axes: Axes, report: dict[str, Any]) -> None:
    axes.plot([0, 1], [0, 1], "--", color="#999999", linewidth=1)
    for colour, (name, found) in zip(COLOURS, _systems(report).items(), strict=False):
        bins = [one for one in found["bins"] if one["count"]]
        points = [one["confidence"] for one in bins], [one["accuracy"] for one in bins]
        axes.plot(*points, "o-", color=colour, label=name, markersize=4)
    axes.set_xlabel("chance that was said of the likeliest label")
    axes.set_ylabel("how often it came")
    _finish(axes)


def _finish(axes: Axes) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.legend(frameon=False)


def _png(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=DOTS)
    return stream.getvalue()
