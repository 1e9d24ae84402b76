"""Which validation was the best, and when training has stopped improving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from attendo.core.run_folder import METRIC_LABELS, is_outdated

if TYPE_CHECKING:
    from attendo.training.config import TrainConfig


@dataclass(slots=True)
class EarlyStopping:
    """The scores on dev so far; a score is higher for better weights (a loss is negated)."""

    metric: str
    patience: int | None
    loss: float | None = None
    """Of the current weights, if they were validated."""
    score: float | None = None
    best_loss: float | None = None
    best_score: float | None = None
    best_score_loss: float | None = None
    """The loss of the validation with the best score."""
    best_step: int = 0
    num_without_gain: int = 0
    """Validations since score or loss was the best one."""

    @classmethod
    def from_config(cls, config: TrainConfig) -> Self:
        """Return the state before the first validation."""
        return cls(config.early_stopping_metric, config.patience)

    @property
    def label(self) -> str:
        """The name of the metric, for messages."""
        return METRIC_LABELS[self.metric]

    @property
    def best_value(self) -> str:
        """The best value of the metric, for messages."""
        if self.best_score is None:
            return ""
        return f"{-self.best_score:.3f}" if self.metric == "loss" else f"{self.best_score:.1f}"

    @property
    def is_exhausted(self) -> bool:
        """Whether the last `patience` validations brought no gain, neither in score nor in loss."""
        return self.patience is not None and self.num_without_gain >= self.patience

    @property
    def is_half_exhausted(self) -> bool:
        """Whether half of the patience was used up by the last validation."""
        return self.patience is not None and self.num_without_gain == (self.patience + 1) // 2

    def update(self, step: int, loss: float, score: float) -> None:
        """Record a validation.

        Bad outputs of an early validation may happen to have a high score: it is outdated once the
        loss is much lower.
        """
        self.loss, self.score = loss, score
        is_better = self.best_score is None or score > self.best_score
        is_better |= is_outdated(self.best_score_loss, loss)
        if is_better:
            self.best_score, self.best_score_loss, self.best_step = score, loss, step
        has_gain = is_better or self.best_loss is None or loss < self.best_loss
        self.best_loss = loss if self.best_loss is None else min(loss, self.best_loss)
        self.num_without_gain = 0 if has_gain else self.num_without_gain + 1

    def forget_current(self) -> None:
        """Forget the scores of the current weights: they have changed."""
        self.loss = self.score = None

    def to_progress(self) -> dict[str, Any]:
        """Return the state as stored in a checkpoint."""
        return {
            "num_worse": self.num_without_gain,
            "best_loss": self.best_loss,
            "dev_loss": self.loss,
            "best_score": self.best_score,
            "best_score_loss": self.best_score_loss,
            "dev_score": self.score,
            "best_step": self.best_step,
        }

    def restore(self, progress: dict[str, Any]) -> None:
        """Take over the state of a checkpoint; those of earlier versions have the losses only."""
        self.num_without_gain = progress["num_worse"]
        self.best_loss, self.loss = progress["best_loss"], progress["dev_loss"]
        self.best_score = progress.get("best_score", _negate(self.best_loss))
        self.best_score_loss = progress.get("best_score_loss")
        self.score = progress.get("dev_score", _negate(self.loss))
        self.best_step = progress.get("best_step", 0)


def _negate(loss: float | None) -> float | None:
    return None if loss is None else -loss
