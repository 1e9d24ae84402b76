"""What a run learns: where its batches come from, what is measured on the way, what it leaves.

`attendo.tasks.run` trains any task the same way; text pairs, plain text and series differ only
in what stands here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pathlib import Path

    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.data.batching import BatchPlan
    from attendo.evaluation.calibration import Calibration
    from attendo.tasks.config import RunConfig
    from attendo.training.distributed import ProcessGroup
    from attendo.training.progress import Reporter


class Task(ABC):
    """One job for a model, with its data at hand.

    Made by `prepare`, which does the long work once for all processes.
    """

    headline_metrics: tuple[str, ...]
    """Figures of dev that the report begins with, by their names in `FIGURES`."""

    def __init__(self, config: RunConfig, directory: Path) -> None:
        self.config, self.directory = config, directory

    @classmethod
    @abstractmethod
    def prepare(
        cls,
        config: RunConfig,
        directory: Path,
        *,
        processes: ProcessGroup,
        cache: Path,
        reporter: Reporter,
    ) -> Self:
        """Read and prepare the data in the first process; the others find the work done."""

    @abstractmethod
    def build_model(self) -> Model:
        """Make a new model that fits the data."""

    @abstractmethod
    def load_initial_weights(self, model: Model) -> None:
        """Fill a new model with what training begins with, where the run names a model folder."""

    @abstractmethod
    def make_plan(self, model: Model, processes: ProcessGroup) -> BatchPlan:
        """Plan the batches to train on."""

    @property
    @abstractmethod
    def dev(self) -> BatchPlan:
        """The batches of dev, always the same."""

    @abstractmethod
    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Gather the facts of data and model: as JSON with the data's `key`, and as `lines`."""

    @abstractmethod
    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Write samples at a validation; give figures beside loss and accuracy."""

    @abstractmethod
    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Score dev with the finished model: the figures of the `headline` and more."""

    @abstractmethod
    def calibrate(self, model: Model, processes: ProcessGroup) -> Calibration | None:
        """Fit the temperature of what the finished model says; None where it says no chances."""

    @abstractmethod
    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write the model folder, and make sure that it can be read."""

    @abstractmethod
    def explain_score(self, dev: dict[str, Any]) -> str:
        """Say how the figures of `score` were measured, in one line."""

    @abstractmethod
    def usage_hint(self) -> str:
        """Name the command that uses the finished model."""
