"""Messages about a run that is not finished: how far it is, which checkpoint stands for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.core.run_folder import METRIC_LABELS, MODEL_DIR, RunFolder

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.core.run_folder import CheckpointFolder

logger = get_logger(__name__)


def warn_about_checkpoint(directory: str | Path, checkpoint: CheckpointFolder) -> None:
    """Log that a checkpoint is used instead of the model of the run in `directory`."""
    logger.warning(
        message(
            "{run} is not finished: {progress}; using the checkpoint of {score} (attendo finish "
            "{run} writes the model now)",
            run=directory,
            progress=describe_progress(checkpoint.run),
            score=describe_checkpoint(checkpoint),
        )
    )


def raise_if_unfinished(path: Path) -> None:
    """Raise an error for the folder of a run that has no model and no checkpoint to use."""
    run = RunFolder(path.parent if path.name == MODEL_DIR else path)
    if not run.is_run():
        return
    progress = describe_progress(run)
    if run.checkpoint_steps():
        reason = message("{run} is not finished ({progress})", run=run.path, progress=progress)
        hint = message("write its model now: attendo finish {run}", run=run.path)
    else:
        reason = message(
            "{run} is not finished ({progress}) and has no checkpoint yet",
            run=run.path,
            progress=progress,
        )
        hint = message("wait for its first checkpoint, or start it again: attendo train")
    raise InputError(reason, hint=hint)


def describe_progress(run: RunFolder) -> str:
    """Return how far an unfinished run has come, for messages."""
    max_steps = run.max_steps()
    if max_steps is None:
        return message("step {step}", step=f"{run.last_step():,}")
    return message("step {step} of {count}", step=f"{run.last_step():,}", count=f"{max_steps:,}")


def describe_checkpoint(checkpoint: CheckpointFolder) -> str:
    """Return the step of a checkpoint and its score on dev, for messages."""
    score = checkpoint.read_score()
    if score is None:
        return message("step {step}", step=f"{checkpoint.step:,}")
    train = checkpoint.run.read_config().get("train", {})
    metric = train.get("early_stopping_metric", "loss")
    return message(
        "step {step}, {metric} {value}",
        step=f"{checkpoint.step:,}",
        metric=METRIC_LABELS.get(metric, metric),
        value=f"{-score:.3f}" if metric == "loss" else f"{score:.1f}",
    )
