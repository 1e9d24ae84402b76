"""The interface of a task: its batches, its metrics and its model folder.

`attendo.tasks.run` trains every task in the same way. A task says where the batches come from, what
is measured during training, and what the finished model folder holds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from attendo.bundle import save_without_weights
from attendo.core.run_folder import RunFolder
from attendo.training.run_log import append_json_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import nn

    from attendo.architectures.registry import Model
    from attendo.bundle import SupportsSave
    from attendo.data.batching import BatchPlan
    from attendo.evaluation.calibration import Calibration
    from attendo.tasks.config import RunConfig
    from attendo.tasks.planner import DataFacts
    from attendo.training.distributed import ProcessGroup
    from attendo.training.progress import Reporter


class Task(ABC):
    """A task with its data, created by `prepare`."""

    headline_metrics: tuple[str, ...]
    """The metrics of dev that the report begins with, keys of `report.METRIC_FORMATS`."""
    codec: SupportsSave
    """The tokenizer, or the codec of series, that belongs to the model."""

    def __init__(self, config: RunConfig, directory: Path) -> None:
        self.config, self.directory = config, directory
        self.folder = RunFolder(directory)
        self._model_facts: dict[str, Any] | None = None

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
        resumed_key: str | None = None,
    ) -> Self:
        """Prepare the data in the first process and return the task; the others read the result.

        `resumed_key` is the key of the data that a resumed run has trained on.
        """

    @abstractmethod
    def data_facts(self) -> DataFacts:
        """Return what the planner needs to know about the data."""

    @abstractmethod
    def with_config(self, config: RunConfig) -> Self:
        """Return this task, with the same data, for a config with other settings."""

    @abstractmethod
    def build_model(self) -> Model:
        """Return a new model that fits the data."""

    @abstractmethod
    def load_initial_weights(self, model: Model) -> None:
        """Load the weights that training starts with, if the run names a model folder."""

    @abstractmethod
    def make_plan(self, model: Model, processes: ProcessGroup) -> BatchPlan:
        """Return the training batches."""

    @property
    @abstractmethod
    def dev(self) -> BatchPlan:
        """The batches of dev, always the same."""

    @abstractmethod
    def describe(self, plan: BatchPlan, model: Model) -> dict[str, Any]:
        """Return the facts of data and model: as JSON with the data's `key`, and as `lines`."""

    @abstractmethod
    def validation_metrics(self, model: nn.Module, step: int) -> dict[str, float]:
        """Write samples at a validation; return metrics in addition to loss and accuracy."""

    @abstractmethod
    def score(self, model: Model, processes: ProcessGroup) -> dict[str, Any]:
        """Return the scores of the finished model on dev, the headline metrics among them."""

    @abstractmethod
    def calibrate(self, model: Model, processes: ProcessGroup) -> Calibration | None:
        """Fit the temperature of the finished model; None if it outputs no probabilities."""

    @abstractmethod
    def describe_model(self, model: Model) -> dict[str, Any]:
        """Return what the model folder records about the model and its data."""

    @abstractmethod
    def save(self, model_dir: Path, model: Model, about: dict[str, Any]) -> None:
        """Write the model folder, with results in `about`, and check that it can be read."""

    def write_model_files(self, directory: Path, model: Model) -> None:
        """Write into the folder of a checkpoint what makes it a model folder."""
        if self._model_facts is None:
            self._model_facts = self.describe_model(model)
        save_without_weights(directory, model, self.codec, about=self._model_facts)

    @abstractmethod
    def explain_score(self, dev: dict[str, Any]) -> str:
        """Return one line on how the scores were measured."""

    @abstractmethod
    def usage_hint(self) -> str:
        """Return the command that uses the finished model."""

    def write_samples(self, step: int, samples: Sequence[dict[str, Any]]) -> None:
        """Append the outputs for the fixed inputs to the run folder."""
        append_json_line(self.folder.samples_path, {"step": step, "samples": samples})
