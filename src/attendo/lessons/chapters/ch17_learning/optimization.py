"""Gradient descent on one weight, and Adam step by step, in plain numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

INPUT, TARGET = 2.0, 6.0
"""The network is y = w · x, and the best weight is TARGET / INPUT."""
NUM_STEPS = 8


class DescentStep(NamedTuple):
    """One step of gradient descent: the forward pass, the backward pass, the new weight."""

    weight: float
    output: float
    error: float
    loss: float
    gradient: float
    new_weight: float


def descend(weight: float, rate: float, num_steps: int = NUM_STEPS) -> list[DescentStep]:
    """Return the steps of gradient descent for L = ½ (w · x − target)².

    >>> [step.gradient for step in descend(0.0, 0.1, 2)]
    [-12.0, -7.199999999999999]
    """
    steps = []
    for _ in range(num_steps):
        output = weight * INPUT
        error = output - TARGET
        gradient = error * INPUT  # dL/dw = dL/dy · dy/dw
        new_weight = weight - rate * gradient
        steps.append(DescentStep(weight, output, error, loss_of(weight), gradient, new_weight))
        weight = new_weight
    return steps


def loss_of(weight: float) -> float:
    """Return the loss of a weight."""
    return 0.5 * (weight * INPUT - TARGET) ** 2


class AdamStep(NamedTuple):
    """One update of one weight by Adam."""

    gradient: float
    first_moment: float
    second_moment: float
    corrected_first: float
    corrected_second: float
    weight: float


def update_by_adam(
    gradients: Sequence[float],
    *,
    rate: float,
    beta_1: float,
    beta_2: float,
    epsilon: float,
    weight: float = 0.0,
) -> Iterator[AdamStep]:
    """Yield the updates of a weight for one gradient after the other."""
    first = second = 0.0
    for step, gradient in enumerate(gradients, 1):
        first = beta_1 * first + (1 - beta_1) * gradient
        second = beta_2 * second + (1 - beta_2) * gradient**2
        corrected_first = first / (1 - beta_1**step)
        corrected_second = second / (1 - beta_2**step)
        weight -= rate * corrected_first / (corrected_second**0.5 + epsilon)
        yield AdamStep(gradient, first, second, corrected_first, corrected_second, weight)
