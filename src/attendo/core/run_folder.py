"""The folders that training writes: where each file is, and how it is read.

A run folder (`attendo train --out RUN`)::

    RUN/
      config.json       the settings of the run, resolved
      data.json         facts about its data and its model
      log.jsonl         one event per line: training loss, validation, interruption
      samples.jsonl     outputs for fixed inputs, one line per validation
      checkpoints/      step_N/, each with weights, optimizer state and progress
      tensorboard/
      model/            the finished model, a model folder
      report.json       the scores of the finished model; written last
      report.md
      .lock             held while a process trains

Only `RunFolder` and `ModelFolder` know these names. They read JSON only; the
weights belong to `attendo.bundle` and `attendo.training.checkpoint`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.core.config import read_settings
from attendo.core.process_lock import process_lock

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

CONFIG_FILE = "config.json"
DATA_FILE = "data.json"
LOG_FILE = "log.jsonl"
SAMPLES_FILE = "samples.jsonl"
REPORT_FILE = "report.json"
REPORT_PAGE_FILE = "report.md"
LOCK_FILE = ".lock"
CHECKPOINTS_DIR = "checkpoints"
TENSORBOARD_DIR = "tensorboard"
MODEL_DIR = "model"

MODEL_INDEX_FILE = "bundle.json"
MODEL_WEIGHTS_FILE = "model.safetensors"

CHECKPOINT_PREFIX = "step_"
CHECKPOINT_INDEX_FILE = "checkpoint.json"
CHECKPOINT_WEIGHTS_FILE = "weights.safetensors"
CHECKPOINT_OPTIMIZER_FILE = "optimizer.safetensors"

RENAMED_SETTINGS = {
    "train.accumulate": "accumulation_steps",  # vocabulary: ok, a stored key
    "train.consistency": "rdrop_weight",  # vocabulary: ok, a stored key
    "train.graph": "cuda_graph",  # vocabulary: ok, a stored key
    "train.pack": "sequence_packing",  # vocabulary: ok, a stored key
    "train.peak_rate": "peak_lr",  # vocabulary: ok, a stored key
    "train.rate_scale": "lr_scale",  # vocabulary: ok, a stored key
    "train.shard": "fsdp",  # vocabulary: ok, a stored key
}
"""Settings that had another name when a run was stored: the old key, and its name today."""


@dataclass(frozen=True)
class ModelFolder:
    """A model folder: `bundle.json`, `model.safetensors`, and its tokenizer or codec."""

    path: Path

    @classmethod
    def find(cls, directory: str | Path) -> ModelFolder:
        """Return the model folder that is named, or that of the run folder that is named."""
        named = cls(Path(directory))
        of_run = RunFolder(named.path).model
        return of_run if of_run.exists() and not named.exists() else named

    def exists(self) -> bool:
        """Return whether there is a model."""
        return self.index_path.is_file()

    @property
    def index_path(self) -> Path:
        """The file that names the kind, the options and the origin of the model."""
        return self.path / MODEL_INDEX_FILE

    @property
    def weights_path(self) -> Path:
        """The file of the weights."""
        return self.path / MODEL_WEIGHTS_FILE

    def read_index(self) -> dict[str, Any]:
        """Return what `bundle.json` holds, without checking that it is complete."""
        return read_settings(self.index_path)


@dataclass(frozen=True)
class RunFolder:
    """The folder of a training run, finished or not."""

    path: Path

    def exists(self) -> bool:
        """Return whether a run was started here."""
        return self.config_path.is_file()

    def is_finished(self) -> bool:
        """Return whether the run has written its report, which it does last."""
        return self.report_path.is_file()

    # -- paths

    @property
    def config_path(self) -> Path:
        """The settings of the run."""
        return self.path / CONFIG_FILE

    @property
    def data_path(self) -> Path:
        """Facts about the data and the model."""
        return self.path / DATA_FILE

    @property
    def log_path(self) -> Path:
        """The events of the run."""
        return self.path / LOG_FILE

    @property
    def samples_path(self) -> Path:
        """Outputs for fixed inputs, at each validation."""
        return self.path / SAMPLES_FILE

    @property
    def report_path(self) -> Path:
        """The scores of the finished model."""
        return self.path / REPORT_FILE

    @property
    def report_page_path(self) -> Path:
        """The report as Markdown."""
        return self.path / REPORT_PAGE_FILE

    @property
    def lock_path(self) -> Path:
        """The file that a training process locks."""
        return self.path / LOCK_FILE

    @property
    def checkpoints_dir(self) -> Path:
        """The folder of the checkpoints."""
        return self.path / CHECKPOINTS_DIR

    @property
    def tensorboard_dir(self) -> Path:
        """The folder of the TensorBoard events."""
        return self.path / TENSORBOARD_DIR

    @property
    def model(self) -> ModelFolder:
        """The finished model."""
        return ModelFolder(self.path / MODEL_DIR)

    # -- content

    def read_config(self) -> dict[str, Any]:
        """Return the settings of the run, under the names that they have today."""
        return migrate_settings(read_settings(self.config_path))

    def read_data(self) -> dict[str, Any]:
        """Return the facts about data and model; nothing if training has not started."""
        return read_settings(self.data_path) if self.data_path.exists() else {}

    def read_report(self) -> dict[str, Any]:
        """Return the report, its settings under today's names; nothing for an unfinished run."""
        if not self.is_finished():
            return {}
        report = read_settings(self.report_path)
        if isinstance(report.get("config"), dict):
            report["config"] = migrate_settings(report["config"])
        return report

    def read_events(self) -> list[dict[str, Any]]:
        """Return the events of the log, oldest first."""
        return read_json_lines(self.log_path)

    def checkpoint_steps(self) -> list[int]:
        """Return the steps that have a checkpoint, oldest first."""
        return list_checkpoint_steps(self.checkpoints_dir)

    def newest_checkpoint(self) -> Path | None:
        """Return the folder of the newest checkpoint."""
        steps = self.checkpoint_steps()
        return checkpoint_dir(self.checkpoints_dir, steps[-1]) if steps else None

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder, so that no second process trains in it; raise if one already does."""
        return process_lock(self.lock_path, wait=False)


def checkpoint_dir(checkpoints_dir: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return checkpoints_dir / f"{CHECKPOINT_PREFIX}{step}"


def list_checkpoint_steps(checkpoints_dir: Path) -> list[int]:
    """Return the steps of the checkpoints in a folder, oldest first."""
    paths = checkpoints_dir.glob(f"{CHECKPOINT_PREFIX}*")
    names = (path.name.removeprefix(CHECKPOINT_PREFIX) for path in paths)
    return sorted(int(name) for name in names if name.isdigit())


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    """Return the lines of a JSON Lines file up to the first damaged one; none for a missing file.

    A crash may have cut the last line short.
    """
    if not path.exists():
        return []
    events = []
    # A crash may have cut a character too. Split at line feeds alone: a text may hold other
    # separators, which JSON leaves as they are.
    text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.removesuffix("\n").split("\n"):
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events


def migrate_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Return stored settings of a run under the names that they have today.

    >>> migrate_settings({"train": {"max_steps": 9, "pack": False}})
    {'train': {'max_steps': 9, 'sequence_packing': False}}
    """
    return _rename_keys(settings, "")


def _rename_keys(table: dict[str, Any], prefix: str) -> dict[str, Any]:
    return {
        RENAMED_SETTINGS.get(f"{prefix}{key}", key): _rename_keys(value, f"{prefix}{key}.")
        if isinstance(value, dict)
        else value
        for key, value in table.items()
    }
