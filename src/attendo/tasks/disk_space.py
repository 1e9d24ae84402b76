"""The space that the checkpoints and the model of a run take on its disk."""

from __future__ import annotations

import math
import shutil
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.training.config import TrainConfig
    from attendo.training.progress import Reporter
    from attendo.training.trainer import Trainer

BYTES_PER_WEIGHT = 4
WEIGHTS_PER_CHECKPOINT = 3
"""A weight and the two moments that Adam keeps of it."""


def check_run_space(trainer: Trainer, num_parameters: int) -> None:
    """Raise if two checkpoints of a new run do not fit on the disk; warn if all of them do not."""
    if trainer.is_finished:
        return
    need = estimate_disk_space(trainer.config, num_parameters)
    used = sum(path.stat().st_size for path in trainer.store.directory.rglob("*.safetensors"))
    check_disk_space(
        trainer.directory,
        least=0 if trainer.step else need.least,
        most=need.most - used,
        reporter=trainer.reporter,
    )


class DiskSpace(NamedTuple):
    """The bytes that a run needs on its disk."""

    least: int
    """To save a checkpoint while there is another one, and the model."""
    most: int
    """For all checkpoints that are kept, and the one that is being written."""


def estimate_disk_space(config: TrainConfig, num_parameters: int) -> DiskSpace:
    """Return how much space checkpoints and the finished model take."""
    weights = num_parameters * BYTES_PER_WEIGHT
    checkpoint = weights * (WEIGHTS_PER_CHECKPOINT + bool(config.ema_decay))
    num_scheduled = math.ceil(config.max_steps / config.save_every)
    num_kept = min(config.keep_last + config.num_best_kept, num_scheduled)
    num_unscheduled = 1  # saved by time or after a signal
    return DiskSpace(
        least=2 * checkpoint + weights,
        most=(num_kept + num_unscheduled + 1) * checkpoint + weights,
    )


def check_disk_space(directory: Path, *, least: int, most: int, reporter: Reporter) -> None:
    """Raise if the disk has less than `least` bytes free; warn if it has less than `most`."""
    free = shutil.disk_usage(directory).free
    sizes = {"folder": directory, "free": _format_bytes(free)}
    if free < least:
        raise InputError(
            message(
                "training needs at least {needed} on the disk of {folder}, {free} are free",
                needed=_format_bytes(least),
                **sizes,
            ),
            hint="free some disk space, or choose --out on another disk",
        )
    if free < most:
        text = (
            "warning: all checkpoints need up to {needed} on the disk of {folder}, {free} are "
            "free; free some space, or keep fewer checkpoints (train.keep_last, train.keep_best, "
            "train.average_checkpoints)"
        )
        reporter.message(message(text, needed=_format_bytes(most), **sizes))


def _format_bytes(count: int) -> str:
    """Return a size in three digits.

    >>> [_format_bytes(count) for count in (1_300_000, 45_600_000, 1_008_000_000)]
    ['1.30 MB', '45.6 MB', '1.01 GB']
    """
    size, unit = (count / 1e9, "GB") if count >= 1e9 else (count / 1e6, "MB")
    num_decimals = max(3 - len(f"{size:.0f}"), 0)
    return f"{size:,.{num_decimals}f} {unit}"
