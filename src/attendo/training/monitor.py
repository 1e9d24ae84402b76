"""What a training reports: the log, the progress, the time it takes, validations and its end."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.device import synchronize
from attendo.core.message import message
from attendo.training.messages import (
    estimate_message,
    patience_message,
    stop_message,
    validation_message,
)
from attendo.training.run_log import RunLog, ThroughputMeter
from attendo.training.schedule import learning_rate

if TYPE_CHECKING:
    from pathlib import Path

    import torch
    from torch import Tensor

    from attendo.training.config import TrainConfig
    from attendo.training.early_stopping import EarlyStopping
    from attendo.training.progress import Reporter

EARLY_STEPS = (1, 2, 5, 10)
"""Steps that are shown before the first regular report, so that a slow start is visible."""
NUM_TIMED_STEPS, MIN_REPORTED_SECONDS = 10, 60
NUM_WARMUP_STEPS = 3
MAX_TIMED_SECONDS = 20.0
"""No step is measured that would begin later."""
"""Steps that are slower than the others: memory is allocated, kernels are chosen."""


def synchronized_time(device: torch.device) -> float:
    """Return the time in seconds, once a GPU has computed everything."""
    synchronize(device)
    return time.perf_counter()


class StepTime(NamedTuple):
    """The time of a training step."""

    seconds: float
    num_steps: int
    """Steps on which it was measured."""


class TrainingMonitor:
    """Logs a training, and shows its progress.

    Args:
        config: of the training.
        early_stopping: the best validation so far.
        reporter: shows the progress.
        d_model: of the model, for the learning rate.
        device: the device that trains.

    """

    def __init__(
        self,
        config: TrainConfig,
        early_stopping: EarlyStopping,
        reporter: Reporter,
        *,
        d_model: int,
        device: torch.device,
    ) -> None:
        self.config, self.early_stopping, self.reporter = config, early_stopping, reporter
        self.d_model, self.device = d_model, device
        self.log: RunLog | None = None
        """Of the first process; the others log nothing."""
        self.meter = ThroughputMeter()
        self._first_step = 0
        self._timing_start = 0.0

    def open_log(self, directory: Path, step: int) -> None:
        """Open the log of the run folder, to continue it after `step`."""
        self.log = RunLog(directory, step=step)

    def close_log(self) -> None:
        """Close the log, if it is open."""
        if self.log is not None:
            self.log.close()

    def write(self, event: str, step: int, **values: Any) -> None:
        """Write an event to the log."""
        if self.log is not None:
            self.log.write(event, step, **values)

    def start(self, step: int) -> None:
        """Show that the steps after `step` begin."""
        self.meter, self._first_step = ThroughputMeter(), step
        self._show(step, {})

    def add_step(self, step: int, loss: Tensor, num_tokens: int) -> None:
        """Count a step; show the first ones of this process, then how long all will take."""
        self.meter.add(loss, num_tokens)
        count = step - self._first_step
        if count in EARLY_STEPS and step % self.config.log_every:
            self._show(step, {"loss": f"{self.meter.loss:.3f}"})
        if count == NUM_WARMUP_STEPS:
            self._timing_start = synchronized_time(self.device)
        elif count == NUM_WARMUP_STEPS + NUM_TIMED_STEPS:
            seconds = synchronized_time(self.device) - self._timing_start
            self._show_estimate(step, seconds / NUM_TIMED_STEPS)

    def log_progress(self, step: int, epoch: int) -> float:
        """Log and show the steps since the last call.

        Returns:
            Their mean loss. Nothing is logged if it is not finite.

        """
        meter, self.meter = self.meter, ThroughputMeter()
        loss = meter.loss
        if math.isfinite(loss):
            lr = learning_rate(step, self.config, d_model=self.d_model)
            speed = meter.tokens_per_second
            self.write("train", step, loss=loss, rate=lr, tokens_per_second=speed, epoch=epoch)
            self._show(step, {"loss": f"{loss:.3f}", "tok/s": f"{speed:,.0f}", "lr": f"{lr:.2e}"})
        return loss

    def report_validation(self, step: int, metrics: dict[str, float]) -> None:
        """Log and print the scores of a validation, and how much patience is left."""
        self.write("validation", step, **metrics)
        self.reporter.message(validation_message(step, metrics))
        if self.early_stopping.is_half_exhausted:
            self.reporter.message(patience_message(self.early_stopping))

    def report_stop(self, step: int, reason: str | None) -> None:
        """Log why training ended, and print it unless all steps were done."""
        self.write("stopped", step, reason=reason, best_step=self.early_stopping.best_step)
        text = stop_message(reason, step, self.early_stopping, self.config.max_minutes)
        if text:
            self.reporter.message(text)

    def _show(self, step: int, metrics: dict[str, str]) -> None:
        if self.early_stopping.best_value:
            label = message("best {metric}", metric=message(self.early_stopping.label))
            metrics = {**metrics, label: self.early_stopping.best_value}
        self.reporter.step(step, self.config.max_steps, metrics)

    def _show_estimate(self, step: int, seconds_per_step: float) -> None:
        """Print how long training will take, unless it is over soon."""
        num_steps = self.config.max_steps - step
        seconds = seconds_per_step * num_steps
        if seconds >= MIN_REPORTED_SECONDS:
            self.reporter.message(estimate_message(num_steps, seconds, NUM_TIMED_STEPS))
