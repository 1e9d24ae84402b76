"""Learning-rate schedules: plain functions of the step, counted from 1.

`attendo doctor` reads them without loading a tensor library, so this module must not import one.
"""

from __future__ import annotations

from math import cos, pi
from typing import TYPE_CHECKING

from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.training.config import TrainConfig

PAPER_WARMUP_STEPS = 4000
HIGH_RATE_RATIO = 4.0
"""Above this multiple of the paper's peak, post-norm Transformers often collapse. The quickstart,
which has two layers, trains well at 3.7."""


def learning_rate(step: int, config: TrainConfig, *, d_model: int) -> float:
    """Return the learning rate of a step."""
    warmup_steps = config.warmup_steps
    match config.schedule:
        case "paper":
            return noam(step, d_model=d_model, warmup_steps=warmup_steps, scale=config.lr_scale)
        case "inverse_sqrt":
            return inverse_sqrt(step, peak=config.peak_lr, warmup_steps=warmup_steps)
        case "cosine":
            max_steps = config.max_steps
            return cosine(step, peak=config.peak_lr, warmup_steps=warmup_steps, max_steps=max_steps)


def high_rate_warning(config: TrainConfig, *, d_model: int) -> str | None:
    """Return a warning if a short warm-up raises the peak of the paper's schedule far above it."""
    if config.schedule != "paper":
        return None
    peak = learning_rate(config.warmup_steps, config, d_model=d_model)
    ratio = peak / noam(PAPER_WARMUP_STEPS, d_model=d_model, warmup_steps=PAPER_WARMUP_STEPS)
    if ratio < HIGH_RATE_RATIO:
        return None
    return message(
        "warning: with {steps} warm-up steps the learning rate rises to {rate}, {ratio} times the "
        "paper's, and training may collapse; --set train.schedule=inverse_sqrt --set "
        "train.peak_lr=1e-3 keeps it lower",
        steps=f"{config.warmup_steps:,}",
        rate=f"{peak:.1e}",
        ratio=f"{ratio:.1f}",
    )


def noam(step: int, *, d_model: int, warmup_steps: int, scale: float = 1.0) -> float:
    """Return equation 3: d_model^-0.5 x min(step^-0.5, step x warmup_steps^-1.5).

    >>> round(noam(4000, d_model=512, warmup_steps=4000), 6)
    0.000699
    """
    return float(scale * d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5))


def inverse_sqrt(step: int, *, peak: float, warmup_steps: int) -> float:
    """Return the curve of equation 3, given by its peak.

    It rises linearly to `peak`, then falls with the inverse square root of the step.
    """
    return float(peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5))


def cosine(step: int, *, peak: float, warmup_steps: int, max_steps: int) -> float:
    """Return a linear rise to `peak`, then half a cosine that reaches zero at `max_steps`."""
    if step <= warmup_steps:
        return peak * step / warmup_steps
    progress = min(1.0, (step - warmup_steps) / max(1, max_steps - warmup_steps))
    return peak * 0.5 * (1 + cos(pi * progress))
