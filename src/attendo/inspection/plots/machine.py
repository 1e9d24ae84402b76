"""Pictures of the whole machine: the stack with shapes, and how gradients reach its layers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.inspection.gradients import measure_gradients
from attendo.inspection.plots.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    SKY,
    hide_axes,
    new_figure,
    set_heading,
    tidy,
)
from attendo.inspection.plots.scene import spell

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from attendo.inspection.plots.scene import Scene

WIDTH, HEIGHT, GAP = 3.8, 0.6, 0.34
LEFT, RIGHT = 2.3, 8.5
"""The middles of the two towers."""
SCALE = 0.62
"""Inches of a unit."""


class Box(NamedTuple):
    """One stage: what it is, the shape that leaves it, its colour."""

    name: str
    shape: str
    colour: str
    is_repeated: bool = False


def draw_gradients(scene: Scene) -> Figure:
    """Draw how much of the gradient reaches each layer, with residual paths and without."""
    without = measure_gradients(scene.model, scene.forced, has_residuals=False)
    curves = [(without, ORANGE, "s--", "this model, which has no residual paths")]
    if scene.model.config.residual:
        own = measure_gradients(scene.model, scene.forced)
        curves = [
            (own, BLUE, "o-", "with residual paths"),
            (without, ORANGE, "s--", "the same weights without them"),
        ]
    figure = new_figure(11, 4.4)
    panels = figure.subplots(1, 2, sharey=True)
    titles = (scene.say("encoder"), scene.say("decoder"))
    for number, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        places = range(len(without[number]))
        for sides, colour, style, label in curves:
            sizes = sides[number]
            shares = [max(size / (sizes[-1] or 1.0), 1e-12) for size in sizes]
            axes.semilogy(places, shares, style, color=colour, linewidth=2, label=scene.say(label))
        names = [scene.say("input"), *(scene.say("layer {layer}", layer=i) for i in places[:-1])]
        axes.set_xticks(places, names)
        axes.set_title(title, fontsize=10)
        axes.axhline(1.0, color=GREY, linewidth=0.8)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(lambda *_: "")
        tidy(axes)
    panels[0].set_ylabel(scene.say("gradient, relative to the last layer's"))
    panels[1].legend(frameon=False)
    set_heading(
        figure,
        scene.say("How much of the gradient reaches each layer"),
        scene.say(
            "Size of the loss's gradient after each layer; the loss is that of this sentence."
        ),
    )
    return figure


def draw_stack(scene: Scene) -> Figure:
    """Draw the whole stack with the shape at every stage."""
    config, model = scene.model.config, scene.model
    encoder, decoder = _plan_encoder(scene), _plan_decoder(scene)
    top = max(len(encoder), len(decoder)) * (HEIGHT + GAP)
    figure = new_figure(11.8 * SCALE + 0.6, (top + 0.8) * SCALE + 1.0)
    axes = figure.subplots()
    hide_axes(axes)
    axes.set_xlim(-0.6, 11.2)
    axes.set_ylim(-0.8, top)
    _draw_tower(axes, LEFT, encoder, config.num_layers)
    _draw_tower(axes, RIGHT, decoder, config.num_decoder_layers or config.num_layers)
    _draw_memory(axes, scene, len(encoder), [box.colour for box in decoder].index(SKY))
    for centre, words in ((LEFT, scene.src), (RIGHT, scene.read)):
        axes.text(centre, -0.5, spell(words, room=44), ha="center", fontsize=9, color=GREY)
    set_heading(
        figure,
        scene.say("The stack, and the shape at every stage"),
        scene.say(
            "{src} source tokens, {tgt} target tokens; attention: (heads, rows, columns). "
            "{count} parameters.",
            src=len(scene.src),
            tgt=len(scene.said),
            count=f"{model.num_parameters():,}",
        ),
    )
    return figure


def _plan_encoder(scene: Scene) -> list[Box]:
    config, count = scene.model.config, len(scene.src)
    vectors = f"({count}, {config.d_model})"
    return [
        Box(scene.say("source ids"), f"({count},)", GREY),
        *_plan_input(scene, vectors),
        *_surround(
            scene, "self-attention", f"({config.num_heads}, {count}, {count})", BLUE, vectors
        ),
        *_surround(scene, "feed-forward", f"({count}, {config.d_ff})", ORANGE, vectors),
        *_plan_last_norm(scene, vectors),
    ]


def _plan_decoder(scene: Scene) -> list[Box]:
    config, count = scene.model.config, len(scene.said)
    vectors = f"({count}, {config.d_model})"
    across = f"({config.num_heads}, {count}, {len(scene.src)})"
    logits = f"({count}, {scene.model.tgt_vocab_size:,})"
    square = f"({config.num_heads}, {count}, {count})"
    return [
        Box(scene.say("target ids so far"), f"({count},)", GREY),
        *_plan_input(scene, vectors),
        *_surround(scene, "masked self-attention", square, BLUE, vectors),
        *_surround(scene, "cross-attention", across, SKY, vectors),
        *_surround(scene, "feed-forward", f"({count}, {config.d_ff})", ORANGE, vectors),
        *_plan_last_norm(scene, vectors),
        Box(scene.say("linear"), logits, PURPLE),
        Box(scene.say("softmax"), logits, PURPLE),
    ]


def _plan_input(scene: Scene, vectors: str) -> list[Box]:
    embedding = scene.say("embedding × √{size}", size=scene.model.config.d_model)
    position = Box(scene.say("+ position"), vectors, GREEN)
    has_positions = scene.model.config.positions != "none"
    return [Box(embedding, vectors, GREEN), *[position] * has_positions]


def _surround(scene: Scene, name: str, shape: str, colour: str, vectors: str) -> list[Box]:
    """Put add and norm after a sub-layer; in pre-norm models the norm comes before it.

    Without residual paths nothing is added.
    """
    config = scene.model.config
    before = ["norm"] if config.norm == "pre" else []
    after = ["add"] if config.residual else []
    if config.norm == "post":
        after = ["add and norm" if config.residual else "norm"]
    return [
        *(Box(scene.say(part), vectors, GREY, is_repeated=True) for part in before),
        Box(scene.say(name), shape, colour, is_repeated=True),
        *(Box(scene.say(part), vectors, GREY, is_repeated=True) for part in after),
    ]


def _plan_last_norm(scene: Scene, vectors: str) -> list[Box]:
    return [Box(scene.say("norm"), vectors, GREY)] * (scene.model.config.norm == "pre")


def _draw_tower(axes: Axes, centre: float, boxes: list[Box], num_layers: int) -> None:
    """Draw the stages of one side from below, and a frame around those that repeat."""
    for place, box in enumerate(boxes):
        _draw_box(axes, centre, place * (HEIGHT + GAP), box)
        if place:
            arrow = {"arrowstyle": "-|>", "color": GREY}
            bottom = place * (HEIGHT + GAP)
            axes.annotate("", (centre, bottom), (centre, bottom - GAP), arrowprops=arrow)
    repeated = [place for place, box in enumerate(boxes) if box.is_repeated]
    _frame(axes, centre, repeated[0], repeated[-1], f"× {num_layers}")


def _draw_box(axes: Axes, centre: float, bottom: float, box: Box) -> None:
    from matplotlib.patches import FancyBboxPatch

    left, right, middle = centre - WIDTH / 2, centre + WIDTH / 2, bottom + HEIGHT / 2
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom),
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.1",
            facecolor=f"{box.colour}30",
            edgecolor=box.colour,
            linewidth=1.4,
        )
    )
    axes.text(left + 0.15, middle, box.name, va="center", fontsize=9.5)
    axes.text(
        right - 0.15, middle, box.shape, va="center", ha="right", fontsize=9, fontweight="bold"
    )


def _frame(axes: Axes, centre: float, first: int, last: int, count: str) -> None:
    """Draw a frame around the stages that repeat."""
    from matplotlib.patches import Rectangle

    bottom, top = first * (HEIGHT + GAP) - 0.15, last * (HEIGHT + GAP) + HEIGHT + 0.12
    left = centre - WIDTH / 2 - 0.18
    axes.add_patch(
        Rectangle(
            (left, bottom), WIDTH + 0.36, top - bottom, fill=False, linestyle=":", edgecolor=GREY
        )
    )
    axes.text(left - 0.08, (bottom + top) / 2, count, ha="right", va="center", fontsize=11)


def _draw_memory(axes: Axes, scene: Scene, num_stages: int, cross: int) -> None:
    """Draw how the encoder's last output goes to every cross-attention."""
    top = (num_stages - 1) * (HEIGHT + GAP) + HEIGHT
    target = cross * (HEIGHT + GAP) + HEIGHT / 2
    turn, end = LEFT + WIDTH / 2 + 0.6, RIGHT - WIDTH / 2
    path = ((LEFT, LEFT, turn, turn), (top, top + 0.4, top + 0.4, target))
    axes.plot(*path, color=SKY, linewidth=2)
    arrow = {"arrowstyle": "-|>", "color": SKY, "lw": 2}
    axes.annotate("", (end, target), (turn, target), arrowprops=arrow)
    size = scene.model.config.d_model
    label = scene.say("memory ({src}, {size}): keys and values", src=len(scene.src), size=size)
    axes.text(LEFT - WIDTH / 2, top + 0.55, label, fontsize=9)
