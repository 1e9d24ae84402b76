"""Gradients with and without residual connections: three units, deep chains, all paths."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.lessons.blocks import Chart, Series, Table
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.lessons.blocks import Label

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch09_residuals")

X, WEIGHT, SKIP, TARGET = 0.5, 0.1, 0.1, 1.0
SIGNAL = -0.5
LOCAL_GRADIENTS = (-0.5, -0.5, -1e-6, -0.5, -0.5)
"""The gradients f′ of the blocks, one of which is almost dead; the first three are shown."""
NUM_BLOCKS = 3
MAX_DEPTH = 12
SUBSCRIPTS = "₁₂₃₄₅₆"


class NetworkPass(NamedTuple):
    """One forward and backward pass through the three units."""

    h1: float
    h2: float
    y: float
    loss: float
    w1: float
    """dL/dw₁, and so on."""
    w2: float
    w3: float
    long_way: float
    """The part of dL/dw₁ that comes through all three units."""
    short_way: float
    """The part that comes over the residual connection."""


def run_network(
    x: float = X,
    weights: tuple[float, float, float] = (WEIGHT, WEIGHT, WEIGHT),
    *,
    skip: float = SKIP,
    target: float = TARGET,
) -> NetworkPass:
    """Return values and gradients of three sigmoid units with a skip from h₁ to the last sum."""
    w1, w2, w3 = (
        torch.tensor(weight, dtype=torch.float64, requires_grad=True) for weight in weights
    )
    h1 = torch.sigmoid(w1 * x)
    h2 = torch.sigmoid(w2 * h1)

    def finish(through: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.sigmoid(w3 * through + skip * around)
        return y, (target - y) ** 2

    y, loss = finish(h2, h1)
    gradients = torch.autograd.grad(loss, (w1, w2, w3), retain_graph=True)
    # Detaching a value closes its path for the gradient.
    _, only_long = finish(h2, h1.detach())
    (long_way,) = torch.autograd.grad(only_long, w1, retain_graph=True)
    _, only_short = finish(h2.detach(), h1)
    (short_way,) = torch.autograd.grad(only_short, w1)
    numbers = (h1, h2, y, loss, *gradients, long_way, short_way)
    return NetworkPass(*(number.item() for number in numbers))


class Factor(NamedTuple):
    """One factor of the chain rule."""

    name: str
    formula: str
    value: float


def gradient_factors(
    x: float, weights: tuple[float, float, float], *, skip: float, target: float
) -> dict[str, list[Factor]]:
    """Return the factors of each gradient by the chain rule, from the loss back.

    The gradient of w₁ has two paths: "w₁" through all units and "w_r" over the skip.
    """
    _, w2, w3 = weights
    one = run_network(x, weights, skip=skip, target=target)
    start = [
        Factor("dL/dy", "-2 · (t - y)", -2.0 * (target - one.y)),
        Factor("dy/dz₃", "y · (1 - y)", one.y * (1.0 - one.y)),
    ]
    unit2 = Factor("dh₂/dz₂", "h₂ · (1 - h₂)", one.h2 * (1.0 - one.h2))
    unit1 = Factor("dh₁/dz₁", "h₁ · (1 - h₁)", one.h1 * (1.0 - one.h1))
    down = [*start, Factor("dz₃/dh₂", "w₃", w3), unit2]
    return {
        "w₃": [*start, Factor("dz₃/dw₃", "h₂", one.h2)],
        "w₂": [*down, Factor("dz₂/dw₂", "h₁", one.h1)],
        "w₁": [*down, Factor("dz₂/dh₁", "w₂", w2), unit1, Factor("dz₁/dw₁", "x", x)],
        "w_r": [*start, Factor("dz₃/dh₁", "w_r", skip), unit1, Factor("dz₁/dw₁", "x", x)],
    }


def unrolled_table(weight: float = WEIGHT, num_blocks: int = NUM_BLOCKS) -> Table:
    """Return a stack of residual sigmoid units, and its value as the input plus all additions."""
    value, additions = X, 0.0
    rows: Rows = []
    for number in range(num_blocks + 1):
        added = torch.tensor(weight * value, dtype=torch.float64).sigmoid().item()
        rows.append([number, value, added, X + additions])
        value, additions = value + added, additions + added
    return Table(["i", "x_i", "F(x_i)", "x₀ + ∑ F"], rows, digits=5, title=prose("unrolled-table"))


def remaining_gradient(
    local_gradients: Sequence[float], *, signal: float = SIGNAL
) -> tuple[float, float]:
    """Return what remains of a gradient after the blocks: as a chain, and with residuals."""
    x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    chain = residual = x
    for local in local_gradients:
        chain, residual = local * chain, residual + local * residual
    gradients = [torch.autograd.grad(signal * end, x)[0].item() for end in (chain, residual)]
    return gradients[0], gradients[1]


def depth_chart(weight: float = WEIGHT, max_depth: int = MAX_DEPTH) -> Chart:
    """Plot the gradient that reaches the input of 1 to `max_depth` sigmoid units."""
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    chain = residual = x
    sizes: list[list[float]] = [[], []]
    for _ in range(max_depth):
        chain = torch.sigmoid(weight * chain)
        residual = residual + torch.sigmoid(weight * residual)
        for line, end in zip(sizes, (chain, residual), strict=True):
            line.append(abs(torch.autograd.grad(end, x, retain_graph=True)[0].item()))
    return Chart(
        "lines",
        prose("input-gradient"),
        [float(depth) for depth in range(1, max_depth + 1)],
        [Series(prose("chain-line"), [*sizes[0]]), Series(prose("residual-line"), [*sizes[1]])],
        x_label=prose("num-units"),
        y_label=prose("gradient-size"),
        log_y=True,
    )


def list_paths(num_blocks: int) -> list[tuple[bool, ...]]:
    """Return every path through a stack of residual blocks: through (True) or around each.

    >>> list_paths(1)
    [(False,), (True,)]
    """
    return sorted(product((False, True), repeat=num_blocks), key=sum)


def path_table(local_gradients: Sequence[float] = LOCAL_GRADIENTS[:NUM_BLOCKS]) -> Table:
    """Return every path through a stack of residual blocks and its gradient."""
    rows: Rows = [
        [number, format_path(path), sum(path), path_gradient(path, local_gradients)]
        for number, path in enumerate(list_paths(len(local_gradients)), 1)
    ]
    return Table(
        ["", prose("path"), prose("blocks-passed"), prose("path-gradient")],
        rows,
        title=prose("path-table"),
    )


def format_path(path: tuple[bool, ...]) -> str:
    """Return one path as text: the blocks that it passes, and lines around the others.

    >>> format_path((True, False, True))
    'x ─(f₁)────────(f₃)─ y'
    """
    steps = (
        f"─(f{SUBSCRIPTS[index]})─" if passes else "──────" for index, passes in enumerate(path)
    )
    return f"x {''.join(steps)} y"


def path_length_chart(num_blocks: int = 3) -> Chart:
    """Plot the number of paths by the number of blocks that they pass."""
    passed = [sum(path) for path in list_paths(num_blocks)]
    lengths = range(num_blocks + 1)
    return Chart(
        "bars",
        prose("path-lengths"),
        [str(length) for length in lengths],
        [Series(prose("num-paths"), [float(passed.count(length)) for length in lengths])],
        x_label=prose("blocks-passed"),
        y_label=prose("num-paths"),
    )


def path_gradient(path: tuple[bool, ...], local_gradients: Sequence[float]) -> float:
    """Return the gradient of one path: the product of the blocks that it passes."""
    passed = (local for local, passes in zip(local_gradients, path, strict=True) if passes)
    return prod(passed, start=1.0)
