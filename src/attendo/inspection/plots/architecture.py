"""Plots of the architecture: the stack with its shapes, and how gradients reach the layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.plots.context import join_labels
from attendo.plotting.style import (
    BLUE,
    GRAY,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    hide_axes,
    new_figure,
    set_heading,
    style_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attendo.inspection.plots.context import PlotContext

WIDTH, HEIGHT, GAP = 3.8, 0.6, 0.34
LEFT, RIGHT = 2.3, 8.5
"""Centers of the two stacks."""
RESIDUAL_MARGIN = 0.22
"""How far the residual connections are from the stages that they lead around."""
SCALE = 0.62
"""Inches per unit."""


class Box(NamedTuple):
    """One stage: its name, the shape of its output, its color."""

    name: str
    shape: str
    color: str
    is_repeated: bool = False
    num_skipped: int = 0
    """How many stages the residual connection that ends here leads around; 0 without one."""


def plot_gradients(context: PlotContext) -> Figure:
    """Plot how much of the gradient reaches each layer, with and without residual connections."""
    without = gradient_norms(context.model, context.forced_pass, has_residuals=False)
    curves = [(without, ORANGE, "s--", "this model, which has no residual connections")]
    if context.model.config.residual:
        with_residuals = gradient_norms(context.model, context.forced_pass)
        curves = [
            (with_residuals, BLUE, "o-", "with residual connections"),
            (without, ORANGE, "s--", "the same weights without residual connections"),
        ]
    figure = new_figure(11, 4.4)
    panels = figure.subplots(1, 2, sharey=True)
    titles = (context.translate("encoder"), context.translate("decoder"))
    for number, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        positions = range(len(without[number]))
        for sides, color, style, label in curves:
            sizes = sides[number]
            shares = [max(size / (sizes[-1] or 1.0), 1e-12) for size in sizes]
            axes.semilogy(
                positions, shares, style, color=color, linewidth=2, label=context.translate(label)
            )
        names = [
            context.translate("input"),
            *(context.translate("layer {layer}", layer=i + 1) for i in positions[:-1]),
        ]
        axes.set_xticks(positions, names)
        axes.set_title(title, fontsize=10)
        axes.axhline(1.0, color=GRAY, linewidth=0.8)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda *_: "")
        style_axes(axes)
    panels[0].set_ylabel(context.translate("gradient, relative to the last layer's"))
    panels[1].legend(frameon=False)
    set_heading(
        figure,
        context.translate("How much of the gradient reaches each layer"),
        context.translate("Norm of the gradient of this sentence's loss at each layer's output."),
    )
    return figure


def plot_stack(context: PlotContext) -> Figure:
    """Plot the whole stack with the shape at every stage."""
    config, model = context.model.config, context.model
    encoder, decoder = encoder_boxes(context), decoder_boxes(context)
    top = max(len(encoder), len(decoder)) * (HEIGHT + GAP)
    figure = new_figure(11.8 * SCALE + 0.6, (top + 0.8) * SCALE + 1.0)
    axes = figure.subplots()
    hide_axes(axes)
    axes.set_xlim(-0.6, 11.2)
    axes.set_ylim(-0.8, top)
    _plot_boxes(axes, LEFT, encoder, config.num_layers)
    _plot_boxes(axes, RIGHT, decoder, config.num_decoder_layers or config.num_layers)
    _plot_memory(axes, context, len(encoder), [box.color for box in decoder].index(SKY))
    for center, words in ((LEFT, context.src), (RIGHT, context.decoder_input)):
        axes.text(
            center, -0.5, join_labels(words, max_chars=44), ha="center", fontsize=9, color=GRAY
        )
    set_heading(
        figure,
        context.translate("The stack and the shape at every stage"),
        context.translate(
            "{src} source tokens, {tgt} target tokens; attention: (heads, rows, columns). "
            "{count} parameters.",
            src=len(context.src),
            tgt=len(context.tgt),
            count=f"{model.num_parameters():,}",
        ),
    )
    return figure


def encoder_boxes(context: PlotContext) -> list[Box]:
    """Return the stages of the encoder, from the bottom up."""
    config, count = context.model.config, len(context.src)
    vectors = f"({count}, {config.d_model})"
    return [
        Box(context.translate("source ids"), f"({count},)", GRAY),
        *_input_boxes(context, vectors),
        *_sublayer_boxes(
            context, "self-attention", f"({config.num_heads}, {count}, {count})", BLUE, vectors
        ),
        *_sublayer_boxes(context, "feed-forward", f"({count}, {config.d_ff})", ORANGE, vectors),
        *_final_norm_boxes(context, vectors),
    ]


def decoder_boxes(context: PlotContext) -> list[Box]:
    """Return the stages of the decoder, from the bottom up."""
    config, count = context.model.config, len(context.tgt)
    vectors = f"({count}, {config.d_model})"
    cross_shape = f"({config.num_heads}, {count}, {len(context.src)})"
    logits = f"({count}, {context.model.tgt_vocab_size:,})"
    self_shape = f"({config.num_heads}, {count}, {count})"
    return [
        Box(context.translate("target ids so far"), f"({count},)", GRAY),
        *_input_boxes(context, vectors),
        *_sublayer_boxes(context, "masked self-attention", self_shape, BLUE, vectors),
        *_sublayer_boxes(context, "cross-attention", cross_shape, SKY, vectors),
        *_sublayer_boxes(context, "feed-forward", f"({count}, {config.d_ff})", ORANGE, vectors),
        *_final_norm_boxes(context, vectors),
        Box(context.translate("linear"), logits, PURPLE),
        Box(context.translate("softmax"), logits, PURPLE),
    ]


def _input_boxes(context: PlotContext, vectors: str) -> list[Box]:
    embedding = context.translate("embedding × √{size}", size=context.model.config.d_model)
    position = Box(context.translate("+ position"), vectors, GREEN)
    has_positions = context.model.config.positions != "none"
    return [Box(embedding, vectors, GREEN), *[position] * has_positions]


def _sublayer_boxes(
    context: PlotContext, name: str, shape: str, color: str, vectors: str
) -> list[Box]:
    """Add "add and norm" after a sub-layer; in pre-norm models the norm comes before it.

    Without residual connections nothing is added.
    """
    config = context.model.config
    before = ["norm"] if config.norm == "pre" else []
    after = ["add"] if config.residual else []
    if config.norm == "post":
        after = ["add and norm" if config.residual else "norm"]
    num_skipped = len(before) + 1 if config.residual else 0
    return [
        *(Box(context.translate(part), vectors, GRAY, is_repeated=True) for part in before),
        Box(context.translate(name), shape, color, is_repeated=True),
        *(
            Box(context.translate(part), vectors, GRAY, is_repeated=True, num_skipped=num_skipped)
            for part in after
        ),
    ]


def _final_norm_boxes(context: PlotContext, vectors: str) -> list[Box]:
    return [Box(context.translate("norm"), vectors, GRAY)] * (context.model.config.norm == "pre")


def _plot_boxes(axes: Axes, center: float, boxes: list[Box], num_layers: int) -> None:
    """Draw the stages of one stack from the bottom up, and a frame around the repeated ones."""
    for row, box in enumerate(boxes):
        _plot_box(axes, center, row * (HEIGHT + GAP), box)
        if row:
            arrow = {"arrowstyle": "-|>", "color": GRAY}
            bottom = row * (HEIGHT + GAP)
            axes.annotate("", (center, bottom), (center, bottom - GAP), arrowprops=arrow)
        if box.num_skipped:
            _plot_residual(axes, center, row - box.num_skipped, row)
    repeated = [row for row, box in enumerate(boxes) if box.is_repeated]
    _plot_frame(axes, center, repeated[0], repeated[-1], f"× {num_layers}")


def _plot_box(axes: Axes, center: float, bottom: float, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, right, middle = center - WIDTH / 2, center + WIDTH / 2, bottom + HEIGHT / 2
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom),
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.1",
            facecolor=f"{box.color}30",
            edgecolor=box.color,
            linewidth=1.4,
        )
    )
    axes.text(left + 0.15, middle, box.name, va="center", fontsize=9.5)
    axes.text(
        right - 0.15, middle, box.shape, va="center", ha="right", fontsize=9, fontweight="bold"
    )


def _plot_residual(axes: Axes, center: float, first: int, last: int) -> None:
    """Draw the path around the stages from `first` on to the stage where it is added."""
    start, end = first * (HEIGHT + GAP) - GAP * 0.6, last * (HEIGHT + GAP) + HEIGHT / 2
    edge = center + WIDTH / 2
    side = edge + RESIDUAL_MARGIN
    axes.plot((center, side, side), (start, start, end), color=GRAY, linewidth=1.2)
    arrow = {"arrowstyle": "-|>", "color": GRAY, "shrinkA": 0, "shrinkB": 0}
    axes.annotate("", (edge, end), (side, end), arrowprops=arrow)


def _plot_frame(axes: Axes, center: float, first: int, last: int, count: str) -> None:
    """Draw a frame around the repeated stages."""
    from matplotlib.patches import Rectangle

    bottom, top = first * (HEIGHT + GAP) - 0.24, last * (HEIGHT + GAP) + HEIGHT + 0.12
    left = center - WIDTH / 2 - 0.18
    axes.add_patch(
        Rectangle(
            (left, bottom),
            WIDTH + 0.36 + RESIDUAL_MARGIN,
            top - bottom,
            fill=False,
            linestyle=":",
            edgecolor=GRAY,
        )
    )
    axes.text(left - 0.08, (bottom + top) / 2, count, ha="right", va="center", fontsize=11)


def _plot_memory(axes: Axes, context: PlotContext, num_stages: int, cross: int) -> None:
    """Draw how the encoder's output reaches every cross-attention."""
    top = (num_stages - 1) * (HEIGHT + GAP) + HEIGHT
    target = cross * (HEIGHT + GAP) + HEIGHT / 2
    bend, end = LEFT + WIDTH / 2 + 0.6, RIGHT - WIDTH / 2
    path = ((LEFT, LEFT, bend, bend), (top, top + 0.4, top + 0.4, target))
    axes.plot(*path, color=SKY, linewidth=2)
    arrow = {"arrowstyle": "-|>", "color": SKY, "lw": 2}
    axes.annotate("", (end, target), (bend, target), arrowprops=arrow)
    size = context.model.config.d_model
    label = context.translate(
        "memory ({src}, {size}): keys and values", src=len(context.src), size=size
    )
    axes.text(LEFT - WIDTH / 2, top + 0.55, label, fontsize=9)
