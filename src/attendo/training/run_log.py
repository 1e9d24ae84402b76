"""The log of a run: one event per line in `log.jsonl`, the same for TensorBoard, and throughput."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import AttendoError
from attendo.core.files import write_atomically
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.core.os_errors import write_error_hint
from attendo.core.run_folder import RunFolder, read_json_lines

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

logger = get_logger(__name__)
RESUME_HINT = (
    "free some disk space and run the same command again: it resumes from the last checkpoint"
)
"""What to do about a full disk during training."""


class RunLog:
    """Appends events to the log of a run; a resumed run drops those after its checkpoint."""

    def __init__(self, directory: Path, *, step: int = 0) -> None:
        folder = RunFolder(directory)
        self.path = folder.log_path
        for path in (folder.log_path, folder.samples_path):
            truncate_after(path, step)
        self.tensorboard = _open_tensorboard(folder.tensorboard_dir, step)

    def write(self, event: str, step: int, **values: Any) -> None:
        """Append an event; numbers go to TensorBoard too."""
        append_event(self.path, event, step, **values)
        for name, value in values.items():
            if self.tensorboard is not None and isinstance(value, (int, float)):
                self.tensorboard.add_scalar(f"{event}/{name}", value, step)

    def close(self) -> None:
        """Flush TensorBoard."""
        if self.tensorboard is not None:
            self.tensorboard.close()


class ThroughputMeter:
    """Mean loss and throughput since the last log line.

    Losses stay on the device until they are asked for, so that a step does not wait for the GPU.
    """

    def __init__(self) -> None:
        self.losses: list[Tensor] = []
        self.tokens = 0
        self.start_time = time.perf_counter()

    def add(self, loss: Tensor, tokens: int) -> None:
        """Count a step."""
        self.losses.append(loss)
        self.tokens += tokens

    def exclude(self, seconds: float) -> None:
        """Leave out time that was not spent on training."""
        self.start_time += seconds

    @property
    def loss(self) -> float:
        """The mean loss of the steps."""
        return float(torch.stack(self.losses).mean())

    @property
    def tokens_per_second(self) -> float:
        """Target tokens per second."""
        return self.tokens / (time.perf_counter() - self.start_time)


def truncate_after(path: Path, step: int) -> None:
    """Drop the events after `step`: a resumed run writes them again."""
    if path.exists():
        kept = [event for event in read_json_lines(path) if event["step"] <= step]
        lines = (json.dumps(event, ensure_ascii=False) + "\n" for event in kept)
        write_atomically(path, "".join(lines))


def append_event(path: Path, event: str, step: int, **values: Any) -> None:
    """Append an event to a log, with the time."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    append_json_line(path, {"time": now, "event": event, "step": step, **values})


def append_json_line(path: Path, event: dict[str, Any]) -> None:
    """Append one line of JSON to a file."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event, ensure_ascii=False) + "\n")
    except OSError as error:
        raise AttendoError(
            message(
                "{path} could not be written: {detail}", path=path, detail=error.strerror or error
            ),
            hint=write_error_hint(error, space_hint=RESUME_HINT),
        ) from error


def _open_tensorboard(directory: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        logger.info("TensorBoard is not installed; the log file holds the same values")
        return None
    return SummaryWriter(directory, purge_step=step + 1 if step else None)
