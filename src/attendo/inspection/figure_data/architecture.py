"""Figures of the whole model: the stack with its shapes, gradients, the steps, the beam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.inspection.figure_data.panels import lines, record_view
from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.plots.architecture import decoder_boxes, encoder_boxes
from attendo.inspection.plots.context import join_labels

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.inspection.figure_data.context import FigureContext
    from attendo.inspection.figure_data.panels import Panel
    from attendo.inspection.figure_data.registry import Figure
    from attendo.inspection.plots.architecture import Box

MIN_GRADIENT = 1e-12
MAX_TEXT = 44


def describe_stack(context: FigureContext) -> Figure:
    """Return the whole stack with the shape at every stage."""
    config = context.model.config
    sizes = {"src": len(context.src), "tgt": len(context.tgt)}
    about = context.translate(
        "{src} source tokens, {tgt} target tokens; attention: (heads, rows, columns). "
        "{count} parameters.",
        count=f"{context.model.num_parameters():,}",
        **sizes,
    )
    memory = context.translate(
        "memory ({src}, {size}): keys and values", src=len(context.src), size=config.d_model
    )
    panel: Panel = {
        "kind": "stack",
        "encoder": _column(encoder_boxes(context), config.num_layers, context.src),
        "decoder": _column(
            decoder_boxes(context),
            config.num_decoder_layers or config.num_layers,
            context.decoder_input,
        ),
        "cross": context.translate("cross-attention"),
        "memory": memory,
    }
    return context.translate("The stack and the shape at every stage"), about, [[panel]]


def describe_gradients(context: FigureContext) -> Figure:
    """Return how much of the gradient reaches each layer, with and without residuals."""
    without = gradient_norms(context.model, context.forced_pass, has_residuals=False)
    curves = [(without, "this model, which has no residual connections")]
    if context.model.config.residual:
        curves = [
            (gradient_norms(context.model, context.forced_pass), "with residual connections"),
            (without, "the same weights without residual connections"),
        ]
    panels = []
    for side, title in enumerate((context.translate("encoder"), context.translate("decoder"))):
        names = [
            context.translate("input"),
            *(
                context.translate("layer {layer}", layer=layer + 1)
                for layer in range(len(without[side]) - 1)
            ),
        ]
        series = [
            (
                context.translate(label),
                [max(size / (sizes[side][-1] or 1.0), MIN_GRADIENT) for size in sizes[side]],
            )
            for sizes, label in curves
        ]
        y_label = context.translate("gradient, relative to the last layer's")
        panels.append(lines(title, names, series, y_label=y_label, log_y=True))
    about = context.translate(
        "Norm of the gradient of this sentence's loss at each layer's output."
    )
    return context.translate("How much of the gradient reaches each layer"), about, [panels]


def describe_decoder_steps(context: FigureContext) -> Figure:
    """Return the view of the steps of the decoder."""
    return context.translate("The decoder, step by step"), "", [[record_view("steps")]]


def describe_beam_tree(context: FigureContext) -> Figure:
    """Return the view of the beam search."""
    context.section("beam")  # its error says how to record it
    title = context.translate("Beam search: {text}", text=context.record.tgt["text"])
    return title, "", [[record_view("beam")]]


def _column(boxes: Sequence[Box], num_layers: int, tokens: list[str]) -> dict[str, Any]:
    return {
        "boxes": [
            {"name": b.name, "shape": b.shape, "repeated": b.is_repeated, "skipped": b.num_skipped}
            for b in boxes
        ],
        "num_layers": num_layers,
        "text": join_labels(tokens, max_chars=MAX_TEXT),
    }
