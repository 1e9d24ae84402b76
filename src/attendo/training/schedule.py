"""Learning-rate schedules: plain functions of the step, counted from 1."""

from __future__ import annotations

from math import cos, pi
from typing import Literal

ScheduleKind = Literal["paper", "inverse_sqrt", "cosine"]


def noam(step: int, *, d_model: int, warmup_steps: int, scale: float = 1.0) -> float:
    """Equation 3: d_model^-0.5 x min(step^-0.5, step x warmup_steps^-1.5).

    >>> round(paper(4000, d_model=512, warmup_steps=4000), 6)
    0.000699
    """
    return float(scale * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_sqrt(step: int, *, peak: float, warmup_steps: int) -> float:
    """Rise to `peak` in a line, then fall with the root of the step: equation 3 by its peak."""
    return float(peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5))


def cosine(step: int, *, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Rise to `peak` in a line, then fall to nothing at `max_steps` along a cosine."""
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, max_steps - warmup_steps))
    return peak * 0.5 * (1 + cos(pi * progress))
