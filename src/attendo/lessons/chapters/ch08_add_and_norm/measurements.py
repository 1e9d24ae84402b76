"""What normalization and residual connections are for, measured on untrained layers."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor

from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose
from attendo.model.layers import AddAndNorm
from attendo.model.transformer import Transformer

prose = Prose("attendo.lessons.chapters.ch08_add_and_norm")

NUM_SUBLAYERS, NUM_LAYERS, LENGTH, D_MODEL = 12, 6, 20, 64
SEED = 1


@cache
def spread_by_depth(*, has_norm: bool) -> tuple[float, ...]:
    """Return the standard deviation of the numbers after 0, 1, ... sub-layers.

    Every sub-layer is a random matrix that keeps the size of its input.
    """
    generator = torch.Generator().manual_seed(SEED)
    add = AddAndNorm(D_MODEL, dropout=0.0, norm="post" if has_norm else "pre", eps=1e-5)
    x = torch.randn(LENGTH, D_MODEL, generator=generator)
    spread = [x.std()]
    with torch.no_grad():
        for _ in range(NUM_SUBLAYERS):
            matrix = torch.randn(D_MODEL, D_MODEL, generator=generator) / D_MODEL**0.5
            x = add.post(x, x @ matrix)
            spread.append(x.std())
    return tuple(map(float, spread))


@cache
def position_differences(*, residual: bool) -> tuple[float, ...]:
    """Return how much the vectors of one word at 20 positions differ, after 0, 1, ... layers.

    It is the part of their variance that is due to the position.
    """
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(SEED)
        model = Transformer(
            4, d_model=D_MODEL, d_ff=2 * D_MODEL, num_heads=4, num_layers=NUM_LAYERS,
            residual=residual,
        ).eval()  # fmt: skip
        x = model.src_positions(model.src_embedding(torch.full((1, LENGTH), 3)))
        differences = [_difference(x[0])]
        for layer in model.encoder.layers:
            x, _ = layer(x)
            differences.append(_difference(x[0]))
    return tuple(differences)


def _difference(vectors: Tensor) -> float:
    """Return the variance over the rows (T, D), relative to the mean square of all numbers."""
    return float(vectors.var(0, correction=0).mean() / vectors.square().mean())


def spread_chart() -> Chart:
    """Plot the spread of the numbers over the sub-layers, with and without normalization."""
    return Chart(
        "lines",
        prose("spread-by-depth"),
        x=[float(depth) for depth in range(NUM_SUBLAYERS + 1)],
        series=[
            Series(prose("only-added"), list(spread_by_depth(has_norm=False))),
            Series(prose("added-and-normalized"), list(spread_by_depth(has_norm=True))),
        ],
        x_label=prose("num-sublayers"),
        y_label=prose("deviation"),
        log_y=True,
    )


def position_chart() -> Chart:
    """Plot how much positions differ over the layers, with and without residual connections."""
    return Chart(
        "lines",
        prose("positions-by-depth"),
        x=[float(depth) for depth in range(NUM_LAYERS + 1)],
        series=[
            Series(prose("with-residual"), list(position_differences(residual=True))),
            Series(prose("without-residual"), list(position_differences(residual=False))),
        ],
        x_label=prose("num-layers"),
        y_label=prose("difference-of-positions"),
        log_y=True,
    )
