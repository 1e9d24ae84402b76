"""One call from files to a trained model folder, for every task."""

from __future__ import annotations

import json
import shutil
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.bundle import set_weights
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.files import cache_dir, write_atomically
from attendo.core.message import join_messages, message
from attendo.core.run_folder import RunFolder
from attendo.core.seeding import seed_everything
from attendo.tasks.config import RunConfig
from attendo.tasks.registry import task_class_for
from attendo.tasks.report import format_headline, write_report
from attendo.training.averaging import average_weights
from attendo.training.distributed import ProcessGroup
from attendo.training.progress import NullReporter, Reporter
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torch import Tensor

    from attendo.tasks.task import Task

BYTES_PER_WEIGHT = 4
CHECKPOINT_BYTES_PER_PARAMETER = 3 * BYTES_PER_WEIGHT
"""A weight and the two moments that Adam keeps of it."""


class FinishedRun(NamedTuple):
    """What a run leaves."""

    directory: Path
    model_dir: Path
    report: dict[str, Any]
    headline: str
    """The scores on dev, and how they were measured."""
    usage_hint: str
    """The command that uses the model."""


def train_run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    cache: Path | None = None,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Prepare the data, train, average, and write the model folder; resume an interrupted run."""
    folder = RunFolder(Path(out))
    reporter = reporter or NullReporter()
    processes = ProcessGroup()
    if not processes.is_main:
        reporter = NullReporter()
    if processes.num_restarts:
        force = False  # torchrun has restarted the run that --force has just started
    try:
        processes.run_on_main(lambda: check_run_folder(config, folder, force=force))
        task = task_class_for(config).prepare(
            config, folder.path, processes=processes, cache=cache or cache_dir(), reporter=reporter
        )
        with lock_run_folder(config, folder, processes, force=force):
            return _train(task, processes, reporter)
    except OSError as error:
        raise AttendoError(
            message(
                "{path} could not be written: {detail}",
                path=error.filename or folder.path,
                detail=error.strerror or error,
            ),
            hint="free some disk space and run the same command again: it resumes from the last "
            "checkpoint",
        ) from error
    finally:
        processes.close()


def check_run_folder(config: RunConfig, folder: RunFolder, *, force: bool) -> None:
    """Raise unless the folder is new or holds this run; write nothing."""
    path = folder.path
    if folder.exists():
        differences = [] if force else config.differences(RunConfig(**folder.read_config()))
        if differences:
            raise ConfigError(
                message(
                    "{folder} contains another run:{differences}",
                    folder=path,
                    differences=join_messages("\n  - ", ["", *differences[:8]]),
                ),
                hint="choose another --out, or use --force to delete that run",
            )
    elif path.exists() and any(_is_user_file(entry, folder) for entry in path.iterdir()):
        raise InputError(
            message("{folder} is not empty and does not contain a run", folder=path),
            hint="choose another --out: nothing in it was changed",
        )


def _is_user_file(path: Path, folder: RunFolder) -> bool:
    """Return whether a file is not one that a run leaves if it is killed while it starts."""
    return path != folder.lock_path and not (
        path.name.startswith(".") and path.suffix == ".partial"
    )


@contextmanager
def lock_run_folder(
    config: RunConfig, folder: RunFolder, processes: ProcessGroup, *, force: bool
) -> Iterator[None]:
    """Create the run folder and lock it, so that no second command writes into it."""

    def acquire() -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        stack.enter_context(folder.lock())
        if force:
            _delete_run(folder)
        config.save(folder.config_path)

    with ExitStack() as stack:
        processes.run_on_main(acquire)
        yield


def _delete_run(folder: RunFolder) -> None:
    """Delete a run, its config last: until then the folder is known to be one."""
    for path in sorted(folder.path.iterdir(), key=lambda path: path == folder.config_path):
        if path.is_dir():
            shutil.rmtree(path)
        elif path != folder.lock_path:
            path.unlink()


def _train(task: Task, processes: ProcessGroup, reporter: Reporter) -> FinishedRun:
    config, folder = task.config, task.folder
    seed_everything(config.train.seed)
    # cuDNN's attention makes a new plan for every shape, and batches have hundreds (docs/log.md).
    torch.backends.cuda.enable_cudnn_sdp(False)
    model = task.build_model()
    task.load_initial_weights(model)
    plan = task.make_plan(model, processes)
    facts = task.describe(plan, model)
    processes.run_on_main(lambda: check_data_unchanged(folder, facts))
    if processes.is_main:
        write_atomically(folder.data_path, json.dumps(facts, indent=2, ensure_ascii=False))
        for line in facts["lines"]:
            reporter.message(line)
    trainer = Trainer(
        model,
        plan,
        config.train,
        folder.path,
        dev=task.dev,
        after_validation=task.validation_metrics,
        processes=processes,
        reporter=reporter,
    )
    if not trainer.step:
        processes.run_on_main(lambda: check_disk_space(folder.path, model.num_parameters()))
    elif processes.is_main:
        reporter.message(message("resuming from step {step}", step=trainer.step))
    if not trainer.is_finished:
        trainer.run()
    return _finish(task, trainer, facts, reporter)


def check_data_unchanged(folder: RunFolder, facts: dict[str, Any]) -> None:
    """Raise if the data of a resumed run has changed: token ids would mean other tokens."""
    recorded = folder.read_data() or facts
    if recorded["key"] != facts["key"]:
        raise ConfigError(
            message(
                "the corpora have changed since the run in {folder} started", folder=folder.path
            ),
            hint="restore them, choose another --out, or use --force to start again",
        )


def check_disk_space(directory: Path, num_parameters: int) -> None:
    """Raise if two checkpoints and the finished model do not fit on the disk."""
    needed = num_parameters * (2 * CHECKPOINT_BYTES_PER_PARAMETER + BYTES_PER_WEIGHT)
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise InputError(
            message(
                "training needs at least {needed} GB on the disk of {folder}, {free} GB are free",
                needed=f"{needed / 1e9:.2f}",
                folder=directory,
                free=f"{free / 1e9:.2f}",
            ),
            hint="free some disk space, or choose --out on another disk",
        )


def _finish(task: Task, trainer: Trainer, facts: dict[str, Any], reporter: Reporter) -> FinishedRun:
    """Average the weights, score dev, and write the model folder and the report."""
    folder = task.folder

    def write_results() -> None:
        reporter.stage("averaging", 0, None)
        single_process = trainer.processes.single()
        model = task.build_model().to(single_process.device)
        averaged = final_weights(trainer)
        set_weights(model, averaged.weights)
        dev_scores = task.score(model, single_process)
        calibration = task.calibrate(model, single_process)
        report = write_report(
            task, facts, dev_scores, calibration, folder.read_events(), averaged.steps
        )
        about = {
            "step": trainer.step,
            "averaged_steps": averaged.steps,
            "dev": dev_scores,
            "calibration": report["calibration"],
        }
        task.save(folder.model.path, model.cpu(), about)
        write_atomically(folder.report_path, json.dumps(report, indent=2, ensure_ascii=False))

    trainer.processes.run_on_main(write_results)
    report = folder.read_report()
    headline = format_headline(task.headline_metrics, report["dev"])
    return FinishedRun(
        directory=folder.path,
        model_dir=folder.model.path,
        report=report,
        headline=f"{headline}\n{task.explain_score(report['dev'])}",
        usage_hint=task.usage_hint(),
    )


class AveragedWeights(NamedTuple):
    """The weights of the finished model, and the steps of the checkpoints that were averaged."""

    weights: dict[str, Tensor]
    steps: list[int]


def final_weights(trainer: Trainer) -> AveragedWeights:
    """Return the weights of the finished model: the moving average, or the mean of checkpoints.

    Both are read from checkpoints, where they are whole even if training has sharded them.
    """
    store = trainer.store
    if trainer.ema is not None:
        saved = store.load(trainer.step).optimizer
        return AveragedWeights({name: saved[f"ema.{name}"] for name in trainer.ema.averages}, [])
    steps = [step for step in store.scheduled_steps() if store.check_or_quarantine(step)]
    steps = steps[-trainer.config.average_last :]
    return AveragedWeights(average_weights(map(store.load_weights, steps)), steps)
