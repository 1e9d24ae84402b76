"""One call from files to a trained model folder, for every task."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.bundle import set_weights
from attendo.core.device import use_threads
from attendo.core.errors import AttendoError, ConfigError
from attendo.core.files import cache_dir, write_atomically
from attendo.core.message import message
from attendo.core.os_errors import write_error_hint
from attendo.core.run_files import delete_run, list_names, remove_partial_files
from attendo.core.run_folder import RunFolder
from attendo.core.seeding import seed_everything
from attendo.tasks.auto_settings import choose_settings, describe_choice
from attendo.tasks.config import RunConfig
from attendo.tasks.disk_space import check_run_space
from attendo.tasks.memory import check_memory, check_model_size
from attendo.tasks.registry import task_class_for
from attendo.tasks.report import format_headline, write_report
from attendo.tasks.resume import (
    another_run_error,
    check_run_folder,
    hash_initial_weights,
    is_done,
)
from attendo.tasks.warm_start import check_initial_weights
from attendo.text.lines import find_address
from attendo.training.averaging import average_weights
from attendo.training.distributed import ProcessGroup
from attendo.training.progress import NullReporter, Reporter
from attendo.training.remote_run import RemoteRun
from attendo.training.run_log import RESUME_HINT
from attendo.training.schedule import high_rate_warning
from attendo.training.train_step import validate
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torch import Tensor

    from attendo.tasks.task import Task


class FinishedRun(NamedTuple):
    """What a run leaves."""

    directory: Path
    model_dir: Path
    report: dict[str, Any]
    headline: str
    """The scores on dev."""
    explanation: str
    """How they were measured."""
    usage_hint: str
    """The command that uses the model."""

    def __repr__(self) -> str:
        """Return the folder and the scores; the report alone has hundreds of lines."""
        return f"FinishedRun({str(self.directory)!r}, dev: {self.headline})"


def train_run(
    config: RunConfig,
    out: str | Path,
    *,
    storage: str | Path | None = None,
    force: bool = False,
    device: str | None = None,
    threads: int | None = None,
    cache: Path | None = None,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Prepare the data, train, average, and write the model folder; resume an interrupted run.

    A copy of the run folder is kept at the address `storage`, if one is given.
    """
    started = time.monotonic()
    folder = RunFolder(Path(out))
    reporter = reporter or NullReporter()
    use_threads(threads)
    processes = ProcessGroup(device)
    if not processes.is_main:
        reporter = NullReporter()
    if processes.num_restarts:
        force = False  # torchrun has restarted the run that --force has just started
    try:
        remote = open_remote(storage, config, folder, processes, reporter, force=force)
        processes.run_on_main(lambda: check_run_folder(config, folder, reporter, force=force))
        check_model_size(config, processes.device)
        check_initial_weights(config)
        task = task_class_for(config).prepare(
            config,
            folder.path,
            processes=processes,
            cache=cache or cache_dir(),
            reporter=reporter,
            resumed_key=None if force else folder.read_data().get("key"),
        )
        is_resumed = folder.exists() and not force
        if config.plan.auto or is_resumed:
            task = choose_settings(
                task, processes, reporter, is_resumed=is_resumed, started=started
            )
        if not force and processes.broadcast(int(is_done(task.config, folder))):
            reporter.message(message("already finished: {model}", model=folder.model.path))
            with copy_run(remote):
                return read_results(task)
        with (
            lock_run_folder(task.config, folder, processes, reporter, force=force),
            copy_run(remote, replace=force),
        ):
            return _train(task, processes, reporter, remote)
    except OSError as error:
        raise AttendoError(
            message(
                "{path} could not be written: {detail}",
                path=error.filename or folder.path,
                detail=error.strerror or error,
            ),
            hint=write_error_hint(error, space_hint=RESUME_HINT),
        ) from error
    finally:
        processes.close()


def open_remote(
    storage: str | Path | None,
    config: RunConfig,
    folder: RunFolder,
    processes: ProcessGroup,
    reporter: Reporter,
    *,
    force: bool,
) -> RemoteRun | None:
    """Return the copy of a run, in the first process; fetch the run if the copy is ahead."""
    if storage is None:
        return None

    def fetch() -> RemoteRun:
        remote = RemoteRun(str(find_address(storage) or storage), folder, reporter.message)
        stored = remote.read_config()
        if stored is None or force:
            return remote
        differences = config.differences(RunConfig(**stored))
        if differences:
            raise another_run_error(
                remote.address,
                differences,
                "choose another --storage, or use --force to delete that run",
            )
        folder.path.mkdir(parents=True, exist_ok=True)
        with folder.lock():
            step = remote.fetch()
        if step is not None:
            text = message("fetched step {step} from {address}", step=step, address=remote.address)
            reporter.message(text)
        return remote

    return processes.run_on_main(fetch)


@contextmanager
def copy_run(remote: RemoteRun | None, *, replace: bool = False) -> Iterator[None]:
    """Copy the run folder to its address until it is complete there; delete another run first."""
    if remote is None:
        yield
        return
    if replace:
        remote.delete()
    is_complete = False
    try:
        yield
        is_complete = True
    finally:
        remote.close(is_complete=is_complete)


@contextmanager
def lock_run_folder(
    config: RunConfig,
    folder: RunFolder,
    processes: ProcessGroup,
    reporter: Reporter,
    *,
    force: bool,
) -> Iterator[None]:
    """Create the run folder and lock it, so that no second command writes into it."""

    def acquire() -> None:
        folder.path.mkdir(parents=True, exist_ok=True)
        stack.enter_context(folder.lock())
        remove_partial_files(folder)
        if force and folder.exists():
            kept = delete_run(folder)
            if kept:
                files = list_names(kept)
                text = "kept, because no run has written them: {files} in {folder}"
                reporter.message(message(text, files=files, folder=folder.path))
        if force or not folder.exists():  # that of a resumed run is replaced after more checks
            config.save(folder.config_path)

    with ExitStack() as stack:
        processes.run_on_main(acquire)
        yield


def _train(
    task: Task, processes: ProcessGroup, reporter: Reporter, remote: RemoteRun | None
) -> FinishedRun:
    config, folder = task.config, task.folder
    had_checkpoints = folder.has_checkpoints()
    after_save = remote.request_copy if remote is not None else None
    trainer, facts = make_trainer(task, processes, reporter, after_save=after_save)
    if not trainer.step and had_checkpoints:
        reporter.message("no checkpoint is intact: training starts again from the beginning")
    elif trainer.step:
        reporter.message(message("resuming from step {step}", step=trainer.step))
    processes.run_on_main(lambda: check_run_space(trainer, facts["parameters"]))
    if not trainer.step and config.plan.auto:
        for line in describe_choice(task, processes):
            reporter.message(line)
    if not trainer.is_finished:
        trainer.run()
    return write_finished_model(task, trainer, facts, reporter)


def make_trainer(
    task: Task,
    processes: ProcessGroup,
    reporter: Reporter,
    *,
    after_save: Callable[[], None] | None = None,
) -> tuple[Trainer, dict[str, Any]]:
    """Return a trainer at the newest checkpoint, and the facts of data and model."""
    config, folder = task.config, task.folder
    seed_everything(config.train.seed)
    # cuDNN's attention makes a new plan for every shape, and batches have hundreds (docs/log.md).
    torch.backends.cuda.enable_cudnn_sdp(False)
    check_memory(task, processes.device)
    model = task.build_model()
    task.load_initial_weights(model)
    plan = task.make_plan(model, processes)
    facts = task.describe(plan, model)
    processes.run_on_main(lambda: check_data_unchanged(folder, facts))
    if processes.is_main:
        config.save(folder.config_path)
        initial_weights = folder.read_data().get("initial_weights") or hash_initial_weights(config)
        facts |= {"initial_weights": initial_weights} if initial_weights else {}
        write_atomically(folder.data_path, json.dumps(facts, indent=2, ensure_ascii=False))
        for line in facts["lines"]:
            reporter.message(line)
        warning = high_rate_warning(config.train, d_model=model.config.d_model)
        if warning:
            reporter.message(warning)
    trainer = Trainer(
        model,
        plan,
        config.train,
        folder.path,
        dev=task.dev,
        after_validation=task.validation_metrics,
        processes=processes,
        reporter=reporter,
        write_model_files=lambda directory: task.write_model_files(directory, model),
        after_save=after_save,
    )
    return trainer, facts


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


def write_finished_model(
    task: Task, trainer: Trainer, facts: dict[str, Any], reporter: Reporter
) -> FinishedRun:
    """Average the weights, score dev, and write the model folder and the report."""
    folder = task.folder

    def write_results() -> None:
        reporter.stage("averaging", 0, None)
        single_process = trainer.processes.single()
        model = task.build_model().to(single_process.device)

        def dev_loss(weights: dict[str, Tensor]) -> float:
            set_weights(model, weights)
            batches = (task.dev.read(rows) for rows in task.dev.epoch(0))
            return validate(
                model, batches, precision=trainer.precision, processes=single_process
            ).loss

        averaged = final_weights(trainer, dev_loss)
        set_weights(model, averaged.weights)
        if averaged.steps:
            text = "the model is the mean of the checkpoints of steps {steps}"
            if len(averaged.steps) == 1:
                text = "the model is the checkpoint of step {steps}"
            steps = ", ".join(f"{step:,}" for step in averaged.steps)
            reporter.message(message(text, steps=steps))
        dev_scores = task.score(model, single_process)
        calibration = task.calibrate(model, single_process)
        events = [event for event in folder.read_events() if event["step"] <= trainer.step]
        report = write_report(task, facts, dev_scores, calibration, events, averaged.steps)
        about = {
            "step": trainer.step,
            "averaged_steps": averaged.steps,
            "dev": dev_scores,
            "calibration": report["calibration"],
        }
        task.save(folder.model.path, model.cpu(), about)
        write_atomically(folder.report_path, json.dumps(report, indent=2, ensure_ascii=False))

    trainer.processes.run_on_main(write_results)
    return read_results(task)


def read_results(task: Task) -> FinishedRun:
    """Return what the run has left, from its files."""
    folder = task.folder
    report = folder.read_report()
    return FinishedRun(
        directory=folder.path,
        model_dir=folder.model.path,
        report=report,
        headline=format_headline(task.headline_metrics, report["dev"]),
        explanation=task.explain_score(report["dev"]),
        usage_hint=task.usage_hint(),
    )


class AveragedWeights(NamedTuple):
    """The weights of the finished model, and the steps of the checkpoints that were averaged."""

    weights: dict[str, Tensor]
    steps: list[int]


def final_weights(
    trainer: Trainer, dev_loss: Callable[[dict[str, Tensor]], float]
) -> AveragedWeights:
    """Return the weights of the finished model: the moving average, or the mean of checkpoints.

    All are read from checkpoints, where they are whole even if training has sharded them. The mean
    of the best checkpoints is only used if its loss on dev is not above that of the best one.
    """
    store = trainer.store
    if trainer.ema is not None:
        saved = store.load(trainer.step).optimizer
        return AveragedWeights({name: saved[f"ema.{name}"] for name in trainer.ema.averages}, [])
    # A run that ends early may have no checkpoint but that of an interruption.
    scheduled = store.scheduled_steps() or store.steps()[-1:]
    intact = [step for step in scheduled if store.check_or_quarantine(step)]
    count = trainer.config.average_checkpoints
    best = [step for step in store.best_steps() if step in intact]
    if not (trainer.config.averages_best and best):
        steps = intact[-count:]
        return AveragedWeights(average_weights(map(store.load_weights, steps)), steps)
    steps = sorted(best[:count])
    averaged = AveragedWeights(average_weights(map(store.load_weights, steps)), steps)
    single = AveragedWeights(store.load_weights(best[0]), best[:1])
    # Checkpoints that lie far apart, before and after a collapse, have no useful mean.
    return min((averaged, single), key=lambda candidate: dev_loss(candidate.weights))
