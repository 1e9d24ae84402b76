"""Checkpoints: safetensors and JSON, written whole or not at all, checked when read.

`step_N/` holds `weights.safetensors`, `optimizer.safetensors` and `checkpoint.json` with the
SHA-256 of both. A folder that does not match its checksums is passed over for the one before it,
with a warning.
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

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

WEIGHTS_FILE, OPTIMIZER_FILE, INDEX_FILE = (
    "weights.safetensors",
    "optimizer.safetensors",
    "checkpoint.json",
)
logger = get_logger(__name__)


class CorruptCheckpointError(AttendoError):
    """A checkpoint that is not what was written."""


class Checkpoint(NamedTuple):
    """Everything that a run needs to go on."""

    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    progress: dict[str, Any]
    """Step, epoch, batch, losses: plain JSON."""


class CheckpointStore:
    """The folder `checkpoints/` of a run."""

    def __init__(self, directory: Path, *, keep_last: int, keep_best: int) -> None:
        self.directory = directory
        self.keep_last = keep_last
        self.keep_best = keep_best
        directory.mkdir(parents=True, exist_ok=True)

    def save(self, step: int, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint, then let go of those that are neither new nor good."""
        path = self.directory / f"step_{step}"
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
                shutil.rmtree(path, ignore_errors=True)
        except OSError as error:
            latest = self.steps()
            raise AttendoError(
                message(
                    "checkpoint {name} could not be written: {detail}",
                    name=path.name,
                    detail=error.strerror or error,
                ),
                hint=message(
                    "make room, then run the same command: it goes on from step {step}",
                    step=latest[-1],
                )
                if latest
                else "make room, then run the same command again",
            ) from error
        self._prune()
        return path

    def steps(self) -> list[int]:
        """List the steps of the checkpoints that are there, oldest first."""
        names = (path.name.removeprefix("step_") for path in self.directory.glob("step_*"))
        return sorted(int(name) for name in names if name.isdigit())

    def load(self, step: int) -> Checkpoint:
        """Read a checkpoint and hold it against its checksums."""
        progress = self.verify(step)
        path = self.directory / f"step_{step}"
        return Checkpoint(
            load_file(path / WEIGHTS_FILE), load_file(path / OPTIMIZER_FILE), progress
        )

    def load_weights(self, step: int) -> dict[str, Tensor]:
        """Read the weights alone."""
        self.verify(step)
        return load_file(self.directory / f"step_{step}" / WEIGHTS_FILE)

    def verify(self, step: int) -> dict[str, Any]:
        """Hold the files of a checkpoint against their checksums; give its progress."""
        path = self.directory / f"step_{step}"
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
                hint="the checkpoint before it is used; delete this folder",
            )
        progress: dict[str, Any] = index["progress"]
        return progress

    def load_latest(self) -> Checkpoint | None:
        """Read the newest checkpoint that is whole; damaged ones are moved aside with a warning."""
        self._remove_partial()
        for step in reversed(self.steps()):
            if self.check_or_quarantine(step):
                return self.load(step)
        return None

    def check_or_quarantine(self, step: int) -> bool:
        """Tell whether a checkpoint is what was written; else move it aside with a warning."""
        try:
            self.verify(step)
        except CorruptCheckpointError as error:
            path = self.directory / f"step_{step}"
            quarantine = path.with_name(f"broken_{path.name}")
            logger.warning(
                message(
                    "warning: {detail}; it is now {name} and not used",
                    detail=error.reason,
                    name=quarantine.name,
                )
            )
            shutil.rmtree(quarantine, ignore_errors=True)
            path.rename(quarantine)
            return False
        return True

    def scheduled_steps(self) -> list[int]:
        """List the steps saved on schedule: not those of an interruption."""
        return [step for step in self.steps() if self._read_progress(step).get("is_regular")]

    def _read_progress(self, step: int) -> dict[str, Any]:
        try:
            text = (self.directory / f"step_{step}" / INDEX_FILE).read_text(encoding="utf-8")
            progress: dict[str, Any] = json.loads(text)["progress"]
        except (OSError, ValueError, KeyError):
            return {}
        return progress

    def _prune(self) -> None:
        steps = self.steps()
        scheduled = self.scheduled_steps()
        losses = {step: self._read_progress(step).get("dev_loss") for step in scheduled}
        ranked = sorted((loss, step) for step, loss in losses.items() if loss is not None)
        kept = {*scheduled[-self.keep_last :], *(step for _, step in ranked[: self.keep_best])}
        for step in set(steps) - kept - {steps[-1]}:
            # renamed first: a folder that is half deleted must not look like a checkpoint
            path = self.directory / f"step_{step}"
            path.rename(path.with_name(f".{path.name}.partial"))
        self._remove_partial()

    def _remove_partial(self) -> None:
        """Delete what is on its way out, and what a save that was killed has left."""
        for partial in self.directory.glob(".step_*.partial"):
            shutil.rmtree(partial, ignore_errors=True)


def _to_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


def _digest(index: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(index, sort_keys=True).encode()).hexdigest()
