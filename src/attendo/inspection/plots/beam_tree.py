"""The beam tree: all candidates of all steps: kept, pruned, finished, and the winner."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.decoding.trace import STOP_FINISHED, STOP_LIMIT, STOP_NO_CONTINUATION
from attendo.inspection.plots.context import START, piece_label
from attendo.plotting.style import (
    BLACK,
    BLUE,
    GRAY,
    GREEN,
    LIGHT,
    ORANGE,
    format_number,
    hide_axes,
    new_figure,
    set_heading,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attendo.inspection.plots.context import PlotContext

COLUMN, ROW = 1.35, 0.5
"""Inches per step and per candidate."""
STOP_LABELS = {
    STOP_FINISHED: "nothing alive can become better than what is finished",
    STOP_LIMIT: "the limit of its length",
    STOP_NO_CONTINUATION: "nothing may follow",
}
"""Why a search stopped; traces of version 1 have these texts instead of codes."""
METHODS = {"beam": "beam search", "greedy": "greedy search"}


class Node(NamedTuple):
    """One candidate and its coordinates in the tree."""

    name: str
    score: float
    status: str
    ids: tuple[int, ...]
    """All ids up to this node."""
    x: float
    y: float
    parent: Node | None
    root: float
    """Vertical coordinate of the start symbol, for nodes without a parent."""

    @property
    def start(self) -> tuple[float, float]:
        """The point where the branch starts."""
        return (self.parent.x, self.parent.y) if self.parent else (0.0, self.root)


def plot_beam_tree(context: PlotContext) -> Figure:
    """Plot the beam tree: candidates with their scores, pruned branches, the winner."""
    trace = context.section("beam")
    nodes = _lay_out_nodes(trace)
    winner = _winner_positions(nodes, trace)
    num_steps = 1 + max(step["position"] for step in trace["steps"])
    height = 1 + max(node.y for node in nodes)
    figure = new_figure(1.6 + COLUMN * (num_steps + 1), 2.0 + ROW * height)
    axes = figure.subplots()
    hide_axes(axes)
    axes.set_xlim(-0.6, num_steps + 0.6)
    axes.set_ylim(height - 0.3, -1.1)
    for node in nodes:
        _plot_node(axes, node, *_style(node, is_winner=(node.x, node.y) in winner))
    for y in sorted({node.root for node in nodes}):
        axes.text(
            0, y, START, ha="center", va="center", fontsize=9, bbox=_make_box(BLUE, 2.0), zorder=9
        )
    for step in range(num_steps):
        axes.text(step + 1, -0.85, str(step), ha="center", fontsize=8, color=GRAY)
    _add_legend(axes, context)
    set_heading(
        figure,
        context.translate("Beam search: {text}", text=context.record.tgt["text"]),
        context.translate(
            "{method}, beam {size}, alpha {alpha}. Numbers: log-probability divided by the length "
            "penalty. Stopped: {stopped}.",
            method=context.translate(METHODS.get(trace["method"], trace["method"])),
            size=trace["beam_size"],
            alpha=trace["alpha"],
            stopped=context.translate(STOP_LABELS.get(trace["stopped"], trace["stopped"])),
        ),
    )
    return figure


def _lay_out_nodes(trace: dict[str, Any]) -> list[Node]:
    """Return a node per candidate: steps from left to right, the best of each group on top."""
    widths: dict[int, int] = {}
    for step in trace["steps"]:
        widths[step["group"]] = max(widths.get(step["group"], 0), len(step["candidates"]))
    offsets, total = {}, 0.0
    for group, width in sorted(widths.items()):
        offsets[group], total = total, total + width + 0.6
    nodes: list[Node] = []
    alive: dict[int, dict[int, Node | None]] = {group: {0: None} for group in widths}
    for step in trace["steps"]:
        group, x = step["group"], step["position"] + 1
        root = offsets[group] + (widths[group] - 1) / 2
        kept: dict[int, Node | None] = {}
        for rank, one in enumerate(step["candidates"]):
            parent = alive[group].get(one["parent"])
            node = Node(
                piece_label(one.get("token", str(one["id"]))),
                one["score"],
                one["outcome"],
                (*(parent.ids if parent else ()), one["id"]),
                float(x),
                offsets[group] + rank,
                parent,
                root,
            )
            nodes.append(node)
            if one["slot"] is not None:
                kept[one["slot"]] = node
        alive[group] = kept or alive[group]
    return nodes


def _winner_positions(nodes: list[Node], trace: dict[str, Any]) -> set[tuple[float, float]]:
    """Return the coordinates of all nodes on the path to the best hypothesis."""
    best = trace["hypotheses"][0]
    ids = (*best["ids"], *[trace["end_id"]] * best["is_finished"])
    status = "finished" if best["is_finished"] else "kept"
    node = next((node for node in nodes if node.ids == ids and node.status == status), None)
    positions = set()
    while node is not None:
        positions.add((node.x, node.y))
        node = node.parent
    return positions


def _style(node: Node, *, is_winner: bool) -> tuple[str, float]:
    """Return the color and line width of a node and its branch."""
    if is_winner:
        return ORANGE, 2.6
    return {"kept": (BLUE, 1.3), "finished": (GREEN, 1.6)}.get(node.status, (LIGHT, 0.8))


def _plot_node(axes: Axes, node: Node, color: str, width: float) -> None:
    is_pruned = node.status == "pruned"
    axes.plot(
        (node.start[0], node.x),
        (node.start[1], node.y),
        color=color,
        linewidth=width,
        linestyle=":" if is_pruned else "-",
        zorder=width,  # below every box; the winner above the others
    )
    axes.text(
        node.x,
        node.y,
        f"{node.name}\n{format_number(node.score, 2)}",
        ha="center",
        va="center",
        fontsize=8,
        linespacing=1.0,
        color=GRAY if is_pruned else BLACK,
        bbox=_make_box(color, width),
        zorder=9,
    )


def _make_box(color: str, width: float) -> dict[str, Any]:
    return {
        "boxstyle": "round,pad=0.22",
        "facecolor": "white",
        "edgecolor": color,
        "linewidth": width * 0.7,
    }


def _add_legend(axes: Axes, context: PlotContext) -> None:
    for color, width, line, label in (
        (ORANGE, 2.6, "-", "the winner"),
        (BLUE, 1.3, "-", "kept"),
        (GREEN, 1.6, "-", "finished"),
        (LIGHT, 1.2, ":", "pruned"),
    ):
        axes.plot(
            [], [], color=color, linewidth=width, linestyle=line, label=context.translate(label)
        )
    axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 0.0), fontsize=9)
