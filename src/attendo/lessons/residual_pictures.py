"""The numbers and pictures of lesson 9: three units with a skip, chains, unravelled paths."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.lessons.blocks import Chart, LocalizedText, Series, Table

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label

    Rows = list[list[Label | float | int | None]]

X, WEIGHT, SKIP, TARGET = 0.5, 0.1, 0.1, 1.0
SIGNAL, LOCAL = -0.125, 1e-6
DEEPEST = 12
SUBSCRIPTS = "₁₂₃₄₅₆"


class Run(NamedTuple):
    """One pass through the three units, forward and back."""

    h1: float
    h2: float
    y: float
    loss: float
    w1: float
    """dL/dw₁, and so on."""
    w2: float
    w3: float
    long_way: float
    """The part of dL/dw₁ that came through all three units."""
    short_way: float
    """The part that came over the skip."""


def run(
    x: float = X,
    weights: tuple[float, float, float] = (WEIGHT, WEIGHT, WEIGHT),
    *,
    skip: float = SKIP,
    target: float = TARGET,
) -> Run:
    """Send x through three sigmoid units, with a skip from h₁ to the last sum; take gradients."""
    w1, w2, w3 = (torch.tensor(own, dtype=torch.float64, requires_grad=True) for own in weights)
    h1 = torch.sigmoid(w1 * x)
    h2 = torch.sigmoid(w2 * h1)

    def finish(through: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.sigmoid(w3 * through + skip * around)
        return y, (target - y) ** 2

    y, loss = finish(h2, h1)
    gradients = torch.autograd.grad(loss, (w1, w2, w3), retain_graph=True)
    # A path is closed where its value goes on, but no gradient comes back.
    _, only_long = finish(h2, h1.detach())
    (long_way,) = torch.autograd.grad(only_long, w1, retain_graph=True)
    _, only_short = finish(h2.detach(), h1)
    (short_way,) = torch.autograd.grad(only_short, w1)
    numbers = (h1, h2, y, loss, *gradients, long_way, short_way)
    return Run(*(number.item() for number in numbers))


def pass_on(
    num_blocks: int, *, local: float = LOCAL, signal: float = SIGNAL
) -> tuple[float, float]:
    """Send a gradient back through blocks of one local gradient: as a chain, with residuals."""
    x = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    chained = carried = x
    for _ in range(num_blocks):
        chained, carried = local * chained, carried + local * carried
    found = [torch.autograd.grad(signal * end, x)[0].item() for end in (chained, carried)]
    return found[0], found[1]


def gradient_by_depth(weight: float = WEIGHT, deepest: int = DEEPEST) -> Chart:
    """Draw how much gradient reaches the input of 1 to `deepest` sigmoid units, both ways."""
    x = torch.tensor(X, dtype=torch.float64, requires_grad=True)
    chained = carried = x
    sizes: list[list[float]] = [[], []]
    for _ in range(deepest):
        chained = torch.sigmoid(weight * chained)
        carried = carried + torch.sigmoid(weight * carried)
        for own, end in zip(sizes, (chained, carried), strict=True):
            own.append(abs(torch.autograd.grad(end, x, retain_graph=True)[0].item()))
    return Chart(
        "lines",
        LocalizedText("Gradient that reaches the input", "입력에 닿는 기울기"),
        [float(depth) for depth in range(1, deepest + 1)],
        [
            Series(LocalizedText("without residuals", "잔차 연결 없이"), [*sizes[0]]),
            Series(LocalizedText("with residuals", "잔차 연결로"), [*sizes[1]]),
        ],
        x_label=LocalizedText("units, one on the other", "쌓은 유닛의 수"),
        y_label=LocalizedText("size of dy/dx", "dy/dx의 크기"),
        log_y=True,
    )


def list_paths(num_blocks: int) -> list[tuple[bool, ...]]:
    """Give every way through a stack of residual blocks: through (True) or around each.

    >>> list_paths(1)
    [(False,), (True,)]
    """
    return sorted(product((False, True), repeat=num_blocks), key=sum)


def unravel(num_blocks: int = 3, *, local: float = LOCAL) -> Table:
    """Draw every path through a stack of residual blocks, with the gradient that it carries."""
    rows: Rows = [
        [number, draw_path(path), sum(path), carry(path, local)]
        for number, path in enumerate(list_paths(num_blocks), 1)
    ]
    return Table(
        [
            "",
            LocalizedText("path", "길"),
            LocalizedText("blocks passed", "지난 블록"),
            LocalizedText("carries", "나르는 기울기"),
        ],
        rows,
        title=LocalizedText("Every path from x to y", "x에서 y로 가는 모든 길"),
    )


def draw_path(path: tuple[bool, ...]) -> str:
    """Draw one path: a block that it passes, a line around one that it does not.

    >>> draw_path((True, False, True))
    'x ─(f₁)────────(f₃)─ y'
    """
    steps = (
        f"─(f{SUBSCRIPTS[place]})─" if passes else "──────" for place, passes in enumerate(path)
    )
    return f"x {''.join(steps)} y"


def path_lengths(num_blocks: int = 3) -> Chart:
    """Draw how many paths pass how many blocks."""
    passed = [sum(path) for path in list_paths(num_blocks)]
    lengths = range(num_blocks + 1)
    return Chart(
        "bars",
        LocalizedText("How many paths pass so many blocks", "블록을 그만큼 지나는 길의 수"),
        [str(length) for length in lengths],
        [Series(LocalizedText("paths", "길"), [float(passed.count(length)) for length in lengths])],
        x_label=LocalizedText("blocks passed", "지난 블록"),
        y_label=LocalizedText("paths", "길"),
    )


def carry(path: tuple[bool, ...], local: float) -> float:
    """Give the gradient that one path carries: the product of the blocks that it passes."""
    return prod((local for passes in path if passes), start=1.0)
