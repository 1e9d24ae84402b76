"""The folders that training writes: where each file is, and how it is read.

A run folder (`attendo train --out RUN`)::

    RUN/
      config.json       the settings of the run, resolved
      data.json         facts about its data and its model
      log.jsonl         one event per line: training loss, validation, interruption
      samples.jsonl     outputs for fixed inputs, one line per validation
      checkpoints/      step_N/, each with weights, optimizer state, progress, and the files that
                        make it a model folder
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
from attendo.core.shipped_models import resolve_shipped

if TYPE_CHECKING:
    from collections.abc import Iterable
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

EXPORT_INDEX_FILES = {"ctranslate2": "attendo.json", "onnx": "onnx.json"}
"""By engine: the file of an exported folder that describes the model."""

CHECKPOINT_PREFIX = "step_"
CHECKPOINT_INDEX_FILE = "checkpoint.json"
CHECKPOINT_WEIGHTS_FILE = "weights.safetensors"
CHECKPOINT_OPTIMIZER_FILE = "optimizer.safetensors"

METRIC_LABELS = {"loss": "loss", "bleu": "BLEU", "chrf": "chrF"}
"""How the metrics are shown that choose the best checkpoint."""
OUTDATED_LOSS = 0.4
"""A checkpoint is outdated if a later one has a dev loss that is this much lower: the perplexity
fell by a third. Until then a high chrF may be that of bad outputs."""

RENAMED_SETTINGS = {
    "train.average_last": "average_checkpoints",
    "train.accumulate": "accumulation_steps",  # vocabulary: ok, a stored key
    "train.consistency": "rdrop_weight",  # vocabulary: ok, a stored key
    "train.graph": "cuda_graph",  # vocabulary: ok, a stored key
    "train.pack": "sequence_packing",  # vocabulary: ok, a stored key
    "train.peak_rate": "peak_lr",  # vocabulary: ok, a stored key
    "train.rate_scale": "lr_scale",  # vocabulary: ok, a stored key
    "train.shard": "fsdp",  # vocabulary: ok, a stored key
}
"""Settings that had another name when a run was stored: the old key, and its name today."""


def export_engine(directory: str | Path) -> str | None:
    """Return the engine that a folder was exported for, unless it has the model itself.

    Such a folder is translated by that engine, without PyTorch.
    """
    for engine, index_file in EXPORT_INDEX_FILES.items():
        if (Path(directory) / index_file).is_file():
            return None if ModelFolder.find(directory).exists() else engine
    return None


@dataclass(frozen=True)
class ModelFolder:
    """A model folder: `bundle.json`, `model.safetensors`, and its tokenizer or codec."""

    path: Path

    @classmethod
    def find(cls, directory: str | Path) -> ModelFolder:
        """Return the model folder that is named, or that of the run folder that is named.

        Of a run that is not finished, that is its best checkpoint. The name of a shipped model
        stands for its folder.
        """
        named = cls(resolve_shipped(directory))
        run = RunFolder(named.path)
        if named.exists() or not (run.exists() or run.model.exists()):
            return named
        if run.model.exists():
            return run.model
        checkpoint = run.best_checkpoint()
        return named if checkpoint is None else checkpoint.model

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
        is_checkpoint = self.checkpoint.exists()
        return self.path / (CHECKPOINT_WEIGHTS_FILE if is_checkpoint else MODEL_WEIGHTS_FILE)

    @property
    def checkpoint(self) -> CheckpointFolder:
        """The same folder as a checkpoint, which it may be."""
        return CheckpointFolder(self.path)

    @property
    def run(self) -> RunFolder:
        """The run that wrote the model, if one did."""
        return self.checkpoint.run if self.checkpoint.exists() else RunFolder(self.path.parent)

    def read_index(self) -> dict[str, Any]:
        """Return what `bundle.json` holds, without checking that it is complete."""
        return read_settings(self.index_path)


@dataclass(frozen=True)
class CheckpointFolder:
    """The folder of a checkpoint; it is a model folder as well, unless it is an old one."""

    path: Path

    def exists(self) -> bool:
        """Return whether there is a checkpoint."""
        return (self.path / CHECKPOINT_INDEX_FILE).is_file()

    @property
    def step(self) -> int:
        """The step of the checkpoint."""
        return int(self.path.name.removeprefix(CHECKPOINT_PREFIX))

    @property
    def model(self) -> ModelFolder:
        """The same folder as a model folder."""
        return ModelFolder(self.path)

    @property
    def run(self) -> RunFolder:
        """The run that wrote the checkpoint."""
        return RunFolder(self.path.parent.parent)

    def read_index(self) -> dict[str, Any]:
        """Return what `checkpoint.json` holds; nothing if it cannot be read."""
        try:
            text = (self.path / CHECKPOINT_INDEX_FILE).read_text("utf-8")
            index: dict[str, Any] = json.loads(text)
            dict(**index["progress"])
        except (OSError, ValueError, KeyError, TypeError):
            return {}
        return index

    def read_progress(self) -> dict[str, Any]:
        """Return step, epoch, losses and others; nothing if they cannot be read."""
        progress: dict[str, Any] = self.read_index().get("progress", {})
        return progress

    def read_loss(self) -> float | None:
        """Return the loss on dev; None if the weights were not validated."""
        loss: float | None = self.read_progress().get("dev_loss")
        return loss

    def read_score(self) -> float | None:
        """Return the score on dev, higher is better; None if the weights were not validated."""
        progress = self.read_progress()
        loss = progress.get("dev_loss")  # checkpoints once had the loss only
        score: float | None = progress.get("dev_score", None if loss is None else -loss)
        return score


@dataclass(frozen=True)
class RunFolder:
    """The folder of a training run, finished or not."""

    path: Path

    def exists(self) -> bool:
        """Return whether a run was started here."""
        return self.config_path.is_file()

    def is_run(self) -> bool:
        """Return whether `config.json` has the settings of a run; other software uses the name."""
        return self.exists() and {"model", "train"} <= set(self.read_config())

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

    def has_checkpoints(self) -> bool:
        """Return whether there is a checkpoint, even a damaged one that was renamed."""
        return any(self.checkpoints_dir.glob(f"*{CHECKPOINT_PREFIX}*"))

    def newest_checkpoint(self) -> Path | None:
        """Return the folder of the newest checkpoint."""
        steps = self.checkpoint_steps()
        return checkpoint_dir(self.checkpoints_dir, steps[-1]) if steps else None

    def checkpoints(self) -> list[CheckpointFolder]:
        """Return the checkpoints, oldest first."""
        steps = self.checkpoint_steps()
        return [CheckpointFolder(checkpoint_dir(self.checkpoints_dir, step)) for step in steps]

    def best_checkpoint(self) -> CheckpointFolder | None:
        """Return the checkpoint with the best score on dev, or the newest one if none has a score.

        Checkpoints that are not model folders are left out.
        """
        usable = [one for one in self.checkpoints() if one.model.exists() and one.exists()]
        ranked = rank_checkpoints(usable)
        if ranked:
            return next(one for one in usable if one.step == ranked[0])
        return usable[-1] if usable else None

    def last_step(self) -> int:
        """Return the last step that the log or a checkpoint records."""
        steps = [event["step"] for event in self.read_events() if "step" in event]
        return max([*steps, *self.checkpoint_steps()[-1:]], default=0)

    def max_steps(self) -> int | None:
        """Return the steps that were planned, if the settings say so."""
        train = self.read_config().get("train")
        return train.get("max_steps") if isinstance(train, dict) else None

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder, so that no second process trains in it; raise if one already does."""
        from attendo.core.process_lock import process_lock

        return process_lock(self.lock_path, wait=False)


def is_outdated(loss: float | None, later_loss: float | None) -> bool:
    """Return whether a validation says nothing any more, since the loss is much lower now."""
    return loss is not None and later_loss is not None and later_loss < loss - OUTDATED_LOSS


def rank_checkpoints(checkpoints: Iterable[CheckpointFolder]) -> list[int]:
    """Return the steps of the checkpoints that were validated, the best one first.

    One that is outdated comes after all others, whatever its score.
    """
    scored = [
        (score, one.step, one.read_loss())
        for one in checkpoints
        if (score := one.read_score()) is not None
    ]
    ranked = [
        (any(is_outdated(loss, later) for _, at, later in scored if at > step), -score, step)
        for score, step, loss in scored
    ]
    return [step for *_, step in sorted(ranked)]


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
