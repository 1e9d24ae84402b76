"""Gradients with and without residual connections: three units, deep chains, all paths."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.lessons.blocks import Chart, Series, Table
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch09_residuals")

X, WEIGHT, SKIP, TARGET = 0.5, 0.1, 0.1, 1.0
SIGNAL, LOCAL_GRADIENT = -0.125, 1e-6
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


def remaining_gradient(
    num_blocks: int, *, local: float = LOCAL_GRADIENT, signal: float = SIGNAL
) -> tuple[float, float]:
    """Return what remains of a gradient after the blocks: as a chain, and with residuals."""
    x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    chain = residual = x
    for _ in range(num_blocks):
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


def path_table(num_blocks: int = 3, *, local: float = LOCAL_GRADIENT) -> Table:
    """Return every path through a stack of residual blocks and its gradient."""
    rows: Rows = [
        [number, format_path(path), sum(path), path_gradient(path, local)]
        for number, path in enumerate(list_paths(num_blocks), 1)
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


def path_gradient(path: tuple[bool, ...], local: float) -> float:
    """Return the gradient of one path: the product of the blocks that it passes."""
    return prod((local for passes in path if passes), start=1.0)
