"""The messages of training: how long it takes, how dev was scored, why it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.message import join_messages, message
from attendo.training.progress import format_duration

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.training.early_stopping import EarlyStopping


def estimate_message(num_steps: int, seconds: float, num_timed: int) -> str:
    """Return how long `num_steps` take, which was measured on the first `num_timed`."""
    return message(
        "{steps} steps take {duration}, measured on the first {count}; validation comes on top",
        steps=f"{num_steps:,}",
        duration=format_duration(seconds),
        count=num_timed,
    )


def validation_message(step: int, metrics: Mapping[str, float]) -> str:
    """Return the scores of a validation."""
    scores = [
        message("{name} {value:.3f}", name=message(name), value=value)
        for name, value in metrics.items()
    ]
    return message("step {step}: dev {detail}", step=step, detail=join_messages("  ", scores))


def patience_message(stopping: EarlyStopping) -> str:
    """Return how many validations are left until training stops."""
    return message(
        "{metric} on dev has not improved since step {best}; training stops after {count} "
        "more validations without a gain",
        metric=message(stopping.label),
        best=f"{stopping.best_step:,}",
        count=(stopping.patience or 0) - stopping.num_without_gain,
    )


def stop_message(
    reason: str | None, step: int, stopping: EarlyStopping, max_minutes: float | None
) -> str | None:
    """Return why training ended; None if all steps were done."""
    if reason == "patience":
        return message(
            "stopped at step {step}: {metric} on dev has not improved since step {best}",
            step=f"{step:,}",
            metric=message(stopping.label),
            best=f"{stopping.best_step:,}",
        )
    if reason == "max_minutes":
        minutes = max_minutes or 0.0
        return message(
            "stopped at step {step}: the time limit of {minutes} minutes is reached",
            step=f"{step:,}",
            minutes=f"{minutes:,.0f}" if minutes >= 10 else f"{minutes:.2g}",
        )
    return None
