"""How large the gradients are in each decoder layer of an untrained model, post-norm and pre-norm.

The whole model of the paper at a small width: random sentences, cross-entropy, one backward pass.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import torch
from torch.nn.functional import cross_entropy

from attendo.lessons.blocks import Chart, Series, Table
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import nn

    from attendo.lessons.blocks import Label

prose = Prose("attendo.lessons.chapters.ch22_since_2017")

D_MODEL, NUM_HEADS, VOCABULARY = 32, 4, 60
BATCH, LENGTH = 4, 12
SEED = 1
DEPTHS = (2, 6, 12, 24)
Norm = Literal["post", "pre"]


@cache
def gradients_by_layer(norm: Norm, num_layers: int) -> tuple[float, ...]:
    """Return the norm of the gradient in the feed-forward network of each decoder layer."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(SEED)
        model = Transformer(
            VOCABULARY, d_model=D_MODEL, d_ff=4 * D_MODEL, num_heads=NUM_HEADS,
            num_layers=num_layers, norm=norm, dropout=0.0,
        )  # fmt: skip
        source, target, labels = torch.randint(1, VOCABULARY, (3, BATCH, LENGTH))
        logits = model(source, target)  # (B, T, V)
        cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
    return tuple(_gradient_norm(layer.feed_forward) for layer in model.decoder.layers)


def _gradient_norm(module: nn.Module) -> float:
    gradients = [one.grad for one in module.parameters() if one.grad is not None]
    return float(torch.cat([gradient.flatten() for gradient in gradients]).norm())


def gradient_chart(num_layers: int) -> Chart:
    """Plot the gradients over the decoder layers."""
    return Chart(
        "lines",
        prose("gradients-by-layer", num_layers=num_layers),
        [float(number) for number in range(1, num_layers + 1)],
        [
            Series(prose("post-norm"), list(gradients_by_layer("post", num_layers))),
            Series(prose("pre-norm"), list(gradients_by_layer("pre", num_layers))),
        ],
        x_label=prose("decoder-layer"),
        y_label=prose("gradient"),
        log_y=True,
    )


def depth_table() -> Table:
    """Return the gradient at the first decoder layer by the depth of the model."""
    rows: list[list[Label | float | int | None]] = []
    for depth in DEPTHS:
        post, pre = gradients_by_layer("post", depth)[0], gradients_by_layer("pre", depth)[0]
        rows.append([depth, post, pre, pre / post])
    return Table(
        [prose("num-layers"), prose("post-norm"), prose("pre-norm"), prose("ratio")],
        rows,
        digits=4,
        title=prose("first-layer-gradient"),
    )
