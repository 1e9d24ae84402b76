"""Checkpoints: safetensors and JSON, written atomically and verified when read.

`step_N/` holds `weights.safetensors`, `optimizer.safetensors` and `checkpoint.json` with the
SHA-256 of both. If a checkpoint does not match its checksums, the previous one is used, with a
warning.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, Any, NamedTuple

from safetensors.torch import load_file

from attendo.core.errors import AttendoError
from attendo.core.files import checksum, new_directory, write_tensors
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.core.os_errors import SPACE_HINT, write_error_hint
from attendo.core.run_folder import CHECKPOINT_INDEX_FILE as INDEX_FILE
from attendo.core.run_folder import CHECKPOINT_OPTIMIZER_FILE as OPTIMIZER_FILE
from attendo.core.run_folder import CHECKPOINT_WEIGHTS_FILE as WEIGHTS_FILE
from attendo.core.run_folder import (
    CheckpointFolder,
    checkpoint_dir,
    list_checkpoint_steps,
    rank_checkpoints,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor

logger = get_logger(__name__)


class CorruptCheckpointError(AttendoError):
    """A checkpoint that does not match its checksums."""


class Checkpoint(NamedTuple):
    """Everything that a run needs to resume."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    progress: dict[str, Any]
    """Step, epoch, batch, losses: plain JSON."""


class CheckpointStore:
    """The folder `checkpoints/` of a run.

    `write_model_files` writes what makes a checkpoint a model folder: the config, the tokenizer.
    """

    def __init__(
        self,
        directory: Path,
        *,
        keep_last: int,
        keep_best: int,
        write_model_files: Callable[[Path], None] | None = None,
    ) -> None:
        self.directory = directory
        self.write_model_files = write_model_files
        self.keep_last = keep_last
        self.keep_best = keep_best
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint, then delete those that are neither recent nor among the best."""
        path = checkpoint_dir(self.directory, step)
        try:
            with new_directory(path) as partial:
                write_tensors(partial / WEIGHTS_FILE, _to_cpu(checkpoint.weights))
                write_tensors(partial / OPTIMIZER_FILE, _to_cpu(checkpoint.optimizer))
                index = {
                    "progress": checkpoint.progress,
                    "files": {
                        name: checksum(partial / name) for name in (WEIGHTS_FILE, OPTIMIZER_FILE)
                    },
                }
                text = json.dumps(index | {"sum": _digest(index)}, indent=2)
                (partial / INDEX_FILE).write_text(text, encoding="utf-8")
                if self.write_model_files is not None:
                    self.write_model_files(partial)
                shutil.rmtree(path, ignore_errors=True)
        except OSError as error:
            latest = self.steps()
            raise AttendoError(
                message(
                    "checkpoint {name} could not be written: {detail}",
                    name=path.name,
                    detail=error.strerror or error,
                ),
                hint=write_error_hint(error, space_hint=_space_hint(latest)),
            ) from error
        self._prune()
        return path

    def steps(self) -> list[int]:
        """Return the steps that have a checkpoint, oldest first."""
        return list_checkpoint_steps(self.directory)

    def load(self, step: int) -> Checkpoint:
        """Return a checkpoint after verifying its checksums."""
        progress = self.verify(step)
        path = checkpoint_dir(self.directory, step)
        return Checkpoint(
            load_file(path / WEIGHTS_FILE), load_file(path / OPTIMIZER_FILE), progress
        )

    def load_weights(self, step: int) -> dict[str, Tensor]:
        """Return the weights of a checkpoint alone."""
        self.verify(step)
        return load_file(checkpoint_dir(self.directory, step) / WEIGHTS_FILE)

    def verify(self, step: int) -> dict[str, Any]:
        """Verify the checksums of a checkpoint; return its progress."""
        path = checkpoint_dir(self.directory, step)
        try:
            index = json.loads((path / INDEX_FILE).read_text(encoding="utf-8"))
            expected_digest = index.pop("sum")
            is_intact = expected_digest == _digest(index) and all(
                checksum(path / name) == value for name, value in index["files"].items()
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            is_intact = False
        if not is_intact:
            raise CorruptCheckpointError(
                message("{path} is damaged: it does not match its checksums", path=path),
                hint="delete this folder; the previous checkpoint is used",
            )
        progress: dict[str, Any] = index["progress"]
        return progress

    def load_latest(self) -> Checkpoint | None:
        """Return the newest intact checkpoint; damaged ones are renamed with a warning."""
        self._remove_partial()
        for step in reversed(self.steps()):
            if self.check_or_quarantine(step):
                return self.load(step)
        return None

    def check_or_quarantine(self, step: int) -> bool:
        """Return whether a checkpoint is intact; rename it with a warning if it is not."""
        try:
            self.verify(step)
        except CorruptCheckpointError as error:
            path = checkpoint_dir(self.directory, step)
            quarantine = path.with_name(f"broken_{path.name}")
            text = "warning: {detail}; renamed to {name} and ignored"
            logger.warning(message(text, detail=error.reason, name=quarantine.name))
            shutil.rmtree(quarantine, ignore_errors=True)
            path.rename(quarantine)
            return False
        return True

    def scheduled_steps(self) -> list[int]:
        """Return the steps that were saved on schedule, not because of an interruption."""
        return [
            step for step in self.steps() if self._folder(step).read_progress().get("is_regular")
        ]

    def best_steps(self) -> list[int]:
        """Return the scheduled steps that were validated, the best one first."""
        return rank_checkpoints(self._folder(step) for step in self.scheduled_steps())

    def _folder(self, step: int) -> CheckpointFolder:
        return CheckpointFolder(checkpoint_dir(self.directory, step))

    def _prune(self) -> None:
        steps = self.steps()
        best = self.best_steps()[: self.keep_best]
        kept = {*self.scheduled_steps()[-self.keep_last :], *best}
        for step in set(steps) - kept - {steps[-1]}:
            # Renamed first: a folder that is half deleted must not look like a checkpoint.
            path = checkpoint_dir(self.directory, step)
            path.rename(path.with_name(f".{path.name}.partial"))
        self._remove_partial()

    def _remove_partial(self) -> None:
        """Delete checkpoints that were being written or deleted when a process died."""
        for partial in self.directory.glob(".step_*.partial"):
            shutil.rmtree(partial, ignore_errors=True)


def _space_hint(steps: list[int]) -> str:
    """Return what to do about a full disk."""
    if not steps:
        return SPACE_HINT
    return message(
        "free some disk space and run the same command again: it resumes from step {step}",
        step=steps[-1],
    )


def _to_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _digest(index: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(index, sort_keys=True).encode()).hexdigest()
