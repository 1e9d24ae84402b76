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
from attendo.core.seeding import seed_everything
from attendo.data.process_lock import hold_lock
from attendo.training.averaging import average
from attendo.training.config import RunConfig
from attendo.training.distributed import Processes
from attendo.training.metrics import read_events
from attendo.training.progress import Reporter, Silence
from attendo.training.report import headline, render
from attendo.training.tasks import find_task
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.training.task import Task

CONFIG, DATA = "config.json", "data.json"
WEIGHT_BYTES, CHECKPOINT_BYTES = 4, 12  # of a parameter: Adam keeps two moments of each
LOCK = ".lock"


class FinishedRun(NamedTuple):
    """What a run leaves."""

    directory: Path
    model_dir: Path
    report: dict[str, Any]
    headline: str
    """Its figures on dev, in words, and how they were measured."""
    next_command: str
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
    reporter = reporter or Silence()
    processes = Processes()
    if not processes.is_main:
        reporter = Silence()
    if processes.num_restarts:
        force = False  # what torchrun's agent restarts is the run that was begun anew
    try:
        processes.lead(lambda: check_folder(config, directory, force=force))
        task = find_task(config).prepare(
            config, directory, processes=processes, cache=cache or cache_dir(), reporter=reporter
        )
        with open_run(config, directory, processes, force=force):
            return _train(task, processes, reporter)
    except OSError as error:
        raise AttendoError(
            f"{error.filename or directory} could not be written: {error.strerror or error}",
            remedy="make room, then run the same command: it goes on from its last checkpoint",
        ) from error
    finally:
        processes.close()


def check_folder(config: RunConfig, directory: Path, *, force: bool) -> None:
    """Make sure that the folder is new or this run's own, before any work; change nothing."""
    path = directory / CONFIG
    if path.exists() and not force:
        differences = config.differences(RunConfig.load(path))
        if differences:
            listing = "".join(f"\n  - {line}" for line in differences[:8])
            raise ConfigError(
                f"{directory} holds another run:{listing}",
                remedy="choose another --out, or --force to delete that run and start anew",
            )
    if not path.exists() and directory.exists() and any(map(_is_foreign, directory.iterdir())):
        raise InputError(
            f"{directory} is not empty and holds no run",
            remedy="choose another --out: nothing in it was touched",
        )


def _is_foreign(path: Path) -> bool:
    """Tell a file of the user from those of a run that was killed while it made its folder."""
    return path.name != LOCK and not (path.name.startswith(".") and path.suffix == ".partial")


@contextmanager
def open_run(
    config: RunConfig, directory: Path, processes: Processes, *, force: bool
) -> Iterator[None]:
    """Make the run folder and hold it, so that no second command writes into it."""

    def enter() -> None:
        directory.mkdir(parents=True, exist_ok=True)
        held.enter_context(hold_lock(directory / LOCK, wait=False))
        if force:
            _empty(directory)
        config.save(directory / CONFIG)

    with ExitStack() as held:
        processes.lead(enter)
        yield


def _empty(directory: Path) -> None:
    """Delete a run, its config last: until then the folder is known as one."""
    for path in sorted(directory.iterdir(), key=lambda path: path.name == CONFIG):
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != LOCK:
            path.unlink()


def _train(task: Task, processes: Processes, reporter: Reporter) -> FinishedRun:
    config, directory = task.config, task.directory
    seed_everything(config.train.seed)
    # cuDNN's attention plans anew for every shape, and batches have hundreds (docs/log.md)
    torch.backends.cuda.enable_cudnn_sdp(False)
    model = task.build_model()
    task.begin(model)
    plan = task.make_plan(model, processes)
    facts = task.describe(plan, model)
    processes.lead(lambda: check_data(directory / DATA, facts))
    if processes.is_main:
        write_atomically(directory / DATA, json.dumps(facts, indent=2, ensure_ascii=False))
        for line in facts["lines"]:
            reporter.say(line)
    trainer = Trainer(
        model,
        plan,
        config.train,
        directory,
        dev=task.dev,
        after_validation=task.measure,
        processes=processes,
        reporter=reporter,
    )
    if not trainer.step:
        processes.lead(lambda: check_room(directory, model.num_parameters()))
    elif processes.is_main:
        reporter.say(f"going on from step {trainer.step}")
    if not trainer.is_finished:
        trainer.run()
    return _finish(task, trainer, facts, reporter)


def check_data(path: Path, facts: dict[str, Any]) -> None:
    """Make sure that a run goes on with the data it began with: its ids mean those texts."""
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else facts
    if before["key"] != facts["key"]:
        raise ConfigError(
            f"the corpora have changed since the run in {path.parent} began",
            remedy="put them back, choose another --out, or --force to start anew",
        )


def check_room(directory: Path, num_parameters: int) -> None:
    """Refuse to begin where not even two checkpoints and the finished model would fit."""
    needed = num_parameters * (2 * CHECKPOINT_BYTES + WEIGHT_BYTES)
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise InputError(
            f"training needs at least {needed / 1e9:.2f} GB on the disk of {directory}, "
            f"{free / 1e9:.2f} GB are free",
            remedy="make room, or choose --out on another disk",
        )


def _finish(task: Task, trainer: Trainer, facts: dict[str, Any], reporter: Reporter) -> FinishedRun:
    """Average, score dev once more, and write the bundle and the report."""
    directory = task.directory
    model_dir = directory / "model"
    report_path = directory / "report.json"

    def write() -> None:
        reporter.stage("averaging", 0, None)
        alone = trainer.processes.alone()
        model = task.build_model().to(alone.device)
        averaged = finished_weights(trainer)
        set_weights(model, averaged["weights"])
        found = task.score(model, alone)
        calibration = task.calibrate(model, alone)
        events = read_events(directory / "log.jsonl")
        report = render(task, facts, found, calibration, events, averaged["steps"])
        about = {
            "step": trainer.step,
            "averaged_steps": averaged["steps"],
            "dev": found,
            "calibration": report["calibration"],
        }
        task.save(model_dir, model.cpu(), about)
        write_atomically(report_path, json.dumps(report, indent=2, ensure_ascii=False))

    trainer.processes.lead(write)
    report = json.loads(report_path.read_text(encoding="utf-8"))
    told = f"{headline(task.headline, report['dev'])}\n{task.explain_score(report['dev'])}"
    return FinishedRun(directory, model_dir, report, told, task.next_command())


def finished_weights(trainer: Trainer) -> dict[str, Any]:
    """Give the finished model's weights: the exponential mean, or that of checkpoints.

    Both lie in checkpoints, so that one process finds them whole, however they are spread.
    """
    store = trainer.store
    if trainer.ema is not None:
        saved = store.load(trainer.step).optimizer
        return {"weights": {name: saved[f"ema.{name}"] for name in trainer.ema.means}, "steps": []}
    steps = [step for step in store.regular_steps() if store.is_whole(step)]
    steps = steps[-trainer.config.average_last :]
    return {"weights": average(map(store.load_weights, steps)), "steps": steps}
