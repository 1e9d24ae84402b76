"""End a run that was interrupted: write its model and its report from the checkpoints it has.

The folder is checked before a tensor library is imported.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.device import use_threads
from attendo.core.errors import AttendoError, InputError
from attendo.core.files import cache_dir
from attendo.core.message import message
from attendo.core.run_folder import RunFolder
from attendo.core.unfinished_run import describe_progress
from attendo.tasks.config import RunConfig
from attendo.tasks.registry import task_class_for
from attendo.text.lines import check_exists
from attendo.training.progress import NullReporter

if TYPE_CHECKING:
    from attendo.tasks.run import FinishedRun
    from attendo.training.progress import Reporter


def finish_run(
    out: str | Path,
    *,
    device: str | None = None,
    threads: int | None = None,
    cache: Path | None = None,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Write the model folder and the report of a run that has not reached its last step.

    The weights are averaged as at the end of training. Checkpoints and log stay, so that `attendo
    train` can still resume the run.

    Args:
        out: the run folder.
        device: where dev is scored; by default a GPU if there is one.
        threads: CPU threads; by default as many as there are cores.
        cache: the folder of prepared data.
        reporter: receives the progress.

    Returns:
        The run folder, its model folder and its report.

    Raises:
        InputError: not a run, or it has no checkpoint yet.
        AttendoError: a process is training in the folder.

    """
    folder = RunFolder(Path(out))
    check_can_finish(folder)

    from attendo.tasks.run import make_trainer, read_results, write_finished_model
    from attendo.training.distributed import ProcessGroup
    from attendo.training.run_log import append_event

    reporter = reporter or NullReporter()
    use_threads(threads)
    processes = ProcessGroup(device)
    config = RunConfig(**folder.read_config())
    with ExitStack() as stack:
        stack.callback(processes.close)
        _lock(folder, stack)
        task = task_class_for(config).prepare(
            config,
            folder.path,
            processes=processes,
            cache=cache or cache_dir(),
            reporter=reporter,
            resumed_key=folder.read_data().get("key"),
        )
        if _is_up_to_date(folder):
            reporter.message(message("already finished: {model}", model=folder.model.path))
            return read_results(task)
        trainer, facts = make_trainer(task, processes, reporter)
        if not trainer.step:  # all checkpoints are damaged
            raise _no_checkpoint_error(folder)
        if not folder.is_finished():
            append_event(folder.log_path, "stopped", trainer.step, reason="finish")
        text = message(
            "finishing at step {step} of {count}",
            step=f"{trainer.step:,}",
            count=f"{config.train.max_steps:,}",
        )
        reporter.message(text)
        return write_finished_model(task, trainer, facts, reporter)


def check_can_finish(folder: RunFolder) -> None:
    """Raise unless a folder has a run with a checkpoint."""
    check_exists(folder.path)
    if not folder.is_run():
        raise InputError(
            message("{path} is not a run folder", path=folder.path),
            hint="give the folder that attendo train wrote (its --out); attendo runs lists runs",
        )
    if not folder.checkpoint_steps():
        raise _no_checkpoint_error(folder)


def _is_up_to_date(folder: RunFolder) -> bool:
    """Return whether the model and the report are those of the newest checkpoint."""
    newest = folder.checkpoint_steps()[-1]
    is_written = folder.is_finished() and folder.model.exists()
    return is_written and folder.read_report().get("steps") == newest


def _no_checkpoint_error(folder: RunFolder) -> InputError:
    if folder.is_finished():
        reason = message("{run} is finished, and its checkpoints were deleted", run=folder.path)
        return InputError(reason, hint=message("use its model: {path}", path=folder.model.path))
    reason = message(
        "{run} is not finished ({progress}) and has no checkpoint yet",
        run=folder.path,
        progress=describe_progress(folder),
    )
    return InputError(
        reason, hint="wait for its first checkpoint, or start it again: attendo train"
    )


def _lock(folder: RunFolder, stack: ExitStack) -> None:
    """Lock the run folder; raise if a process is training in it."""
    try:
        stack.enter_context(folder.lock())
    except AttendoError:
        reason = message("a process is training in {run}", run=folder.path)
        hint = "stop it first with Ctrl-C or SIGTERM: it saves a checkpoint"
        raise AttendoError(reason, hint=hint) from None
