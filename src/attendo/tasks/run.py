"""The builder's main job: files in, a trained model folder out, by one call, whatever the task."""

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
from attendo.core.process_lock import process_lock
from attendo.core.seeding import seed_everything
from attendo.tasks.config import RunConfig
from attendo.tasks.registry import task_class_for
from attendo.tasks.report import format_headline, write_report
from attendo.training.averaging import average_weights
from attendo.training.distributed import ProcessGroup
from attendo.training.progress import NullReporter, Reporter
from attendo.training.run_log import read_events
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.tasks.task import Task

CONFIG_FILE, DATA_FILE = "config.json", "data.json"
BYTES_PER_WEIGHT, CHECKPOINT_BYTES_PER_PARAMETER = (
    4,
    12,
)  # of a parameter: Adam keeps two moments of each
LOCK_FILE = ".lock"


class FinishedRun(NamedTuple):
    """What a run leaves."""

    directory: Path
    model_dir: Path
    report: dict[str, Any]
    headline: str
    """Its figures on dev, in words, and how they were measured."""
    usage_hint: str
    """What uses the model."""


def train_run(
    config: RunConfig,
    out: str | Path,
    *,
    force: bool = False,
    cache: Path | None = None,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Prepare, train, average and write the folder `out/model`; go on where a run stopped."""
    directory = Path(out)
    reporter = reporter or NullReporter()
    processes = ProcessGroup()
    if not processes.is_main:
        reporter = NullReporter()
    if processes.num_restarts:
        force = False  # what torchrun's agent restarts is the run that was begun anew
    try:
        processes.run_on_main(lambda: check_run_directory(config, directory, force=force))
        task = task_class_for(config).prepare(
            config, directory, processes=processes, cache=cache or cache_dir(), reporter=reporter
        )
        with lock_run_directory(config, directory, processes, force=force):
            return _train(task, processes, reporter)
    except OSError as error:
        raise AttendoError(
            message(
                "{path} could not be written: {detail}",
                path=error.filename or directory,
                detail=error.strerror or error,
            ),
            hint="make room, then run the same command: it goes on from its last checkpoint",
        ) from error
    finally:
        processes.close()


def check_run_directory(config: RunConfig, directory: Path, *, force: bool) -> None:
    """Make sure that the folder is new or this run's own, before any work; change nothing."""
    path = directory / CONFIG_FILE
    if path.exists() and not force:
        differences = config.differences(RunConfig.load(path))
        if differences:
            raise ConfigError(
                message(
                    "{folder} holds another run:{differences}",
                    folder=directory,
                    differences=join_messages("\n  - ", ["", *differences[:8]]),
                ),
                hint="choose another --out, or --force to delete that run and start anew",
            )
    if not path.exists() and directory.exists() and any(map(_is_user_file, directory.iterdir())):
        raise InputError(
            message("{folder} is not empty and holds no run", folder=directory),
            hint="choose another --out: nothing in it was touched",
        )


def _is_user_file(path: Path) -> bool:
    """Tell a file of the user from those of a run that was killed while it made its folder."""
    return path.name != LOCK_FILE and not (path.name.startswith(".") and path.suffix == ".partial")


@contextmanager
def lock_run_directory(
    config: RunConfig, directory: Path, processes: ProcessGroup, *, force: bool
) -> Iterator[None]:
    """Make the run folder and hold it, so that no second command writes into it."""

    def acquire() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        stack.enter_context(process_lock(directory / LOCK_FILE, wait=False))
        if force:
            _clear_directory(directory)
        config.save(directory / CONFIG_FILE)

    with ExitStack() as stack:
        processes.run_on_main(acquire)
        yield


def _clear_directory(directory: Path) -> None:
    """Delete a run, its config last: until then the folder is known as one."""
    for path in sorted(directory.iterdir(), key=lambda path: path.name == CONFIG_FILE):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK_FILE:
            path.unlink()


def _train(task: Task, processes: ProcessGroup, reporter: Reporter) -> FinishedRun:
    config, directory = task.config, task.directory
    seed_everything(config.train.seed)
    # cuDNN's attention plans anew for every shape, and batches have hundreds (docs/log.md)
    torch.backends.cuda.enable_cudnn_sdp(False)
    model = task.build_model()
    task.load_initial_weights(model)
    plan = task.make_plan(model, processes)
    facts = task.describe(plan, model)
    processes.run_on_main(lambda: check_data_unchanged(directory / DATA_FILE, facts))
    if processes.is_main:
        write_atomically(directory / DATA_FILE, json.dumps(facts, indent=2, ensure_ascii=False))
        for line in facts["lines"]:
            reporter.message(line)
    trainer = Trainer(
        model,
        plan,
        config.train,
        directory,
        dev=task.dev,
        after_validation=task.validation_metrics,
        processes=processes,
        reporter=reporter,
    )
    if not trainer.step:
        processes.run_on_main(lambda: check_disk_space(directory, model.num_parameters()))
    elif processes.is_main:
        reporter.message(message("going on from step {step}", step=trainer.step))
    if not trainer.is_finished:
        trainer.run()
    return _finish(task, trainer, facts, reporter)


def check_data_unchanged(path: Path, facts: dict[str, Any]) -> None:
    """Make sure that a run goes on with the data it began with: its ids mean those texts."""
    recorded = json.loads(path.read_text(encoding="utf-8")) if path.exists() else facts
    if recorded["key"] != facts["key"]:
        raise ConfigError(
            message("the corpora have changed since the run in {folder} began", folder=path.parent),
            hint="put them back, choose another --out, or --force to start anew",
        )


def check_disk_space(directory: Path, num_parameters: int) -> None:
    """Refuse to begin where not even two checkpoints and the finished model would fit."""
    needed = num_parameters * (2 * CHECKPOINT_BYTES_PER_PARAMETER + BYTES_PER_WEIGHT)
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise InputError(
            message(
                "training needs at least {needed} GB on the disk of {folder}, {free} GB are free",
                needed=f"{needed / 1000000000.0:.2f}",
                folder=directory,
                free=f"{free / 1000000000.0:.2f}",
            ),
            hint="make room, or choose --out on another disk",
        )


def _finish(task: Task, trainer: Trainer, facts: dict[str, Any], reporter: Reporter) -> FinishedRun:
    """Average, score dev once more, and write the bundle and the report."""
    directory = task.directory
    model_dir = directory / "model"
    report_path = directory / "report.json"

    def write_results() -> None:
        reporter.stage("averaging", 0, None)
        single_process = trainer.processes.single()
        model = task.build_model().to(single_process.device)
        averaged = final_weights(trainer)
        set_weights(model, averaged["weights"])
        dev_scores = task.score(model, single_process)
        calibration = task.calibrate(model, single_process)
        events = read_events(directory / "log.jsonl")
        report = write_report(task, facts, dev_scores, calibration, events, averaged["steps"])
        about = {
            "step": trainer.step,
            "averaged_steps": averaged["steps"],
            "dev": dev_scores,
            "calibration": report["calibration"],
        }
        task.save(model_dir, model.cpu(), about)
        write_atomically(report_path, json.dumps(report, indent=2, ensure_ascii=False))

    trainer.processes.run_on_main(write_results)
    report = json.loads(report_path.read_text(encoding="utf-8"))
    summary = f"{format_headline(task.headline_metrics, report['dev'])}\n{task.explain_score(report['dev'])}"
    return FinishedRun(directory, model_dir, report, summary, task.usage_hint())


def final_weights(trainer: Trainer) -> dict[str, Any]:
    """Give the finished model's weights: the exponential mean, or that of checkpoints.

    Both lie in checkpoints, so that one process finds them whole, however they are spread.
    """
    store = trainer.store
    if trainer.ema is not None:
        saved = store.load(trainer.step).optimizer
        return {
            "weights": {name: saved[f"ema.{name}"] for name in trainer.ema.averages},
            "steps": [],
        }
    steps = [step for step in store.scheduled_steps() if store.check_or_quarantine(step)]
    steps = steps[-trainer.config.average_last :]
    return {"weights": average_weights(map(store.load_weights, steps)), "steps": steps}
