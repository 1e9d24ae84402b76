"""Chooses the settings of a run that were left open, within a time budget if there is one."""

from __future__ import annotations

import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from attendo.core.device import num_compute_threads
from attendo.core.seeding import seed_everything
from attendo.tasks.config import RunConfig
from attendo.tasks.planner import (
    Machine,
    apply_plan,
    budget_error,
    describe_plan,
    fit_steps,
    smaller_models,
)
from attendo.training.trainer import Trainer

if TYPE_CHECKING:
    from attendo.tasks.planner import DataFacts
    from attendo.tasks.task import Task
    from attendo.training.distributed import ProcessGroup
    from attendo.training.monitor import StepTime
    from attendo.training.progress import Reporter


def choose_settings(
    task: Task,
    processes: ProcessGroup,
    reporter: Reporter,
    *,
    is_resumed: bool,
    started: float | None = None,
) -> Task:
    """Return the task with every setting that was left open: as stored, or chosen now.

    `started` is when the command began, by `time.monotonic`: a time budget runs from then on.
    """
    if is_resumed:
        return task.with_config(task.config.resume_plan(RunConfig(**task.folder.read_config())))
    facts = task.data_facts()
    config = apply_plan(task.config, facts, _find_machine(processes))
    if config.plan.budget_minutes is not None:
        now = time.monotonic()
        config = _fit_budget(task, config, facts, processes, reporter, started=started or now)
    return task.with_config(config)


def describe_choice(task: Task, processes: ProcessGroup) -> list[str]:
    """Return what was chosen and why, as lines to print."""
    return describe_plan(task.config, task.data_facts(), _find_machine(processes))


def _find_machine(processes: ProcessGroup) -> Machine:
    return Machine(processes.device.type == "cuda", num_compute_threads())


def _fit_budget(
    task: Task,
    config: RunConfig,
    facts: DataFacts,
    processes: ProcessGroup,
    reporter: Reporter,
    *,
    started: float,
) -> RunConfig:
    """Return the config of the largest model that can be trained in time, by measured steps."""
    candidate, fitting, seconds, elapsed = config, None, 0.0, 0.0
    for candidate in (config, *smaller_models(config)):
        reporter.stage("timing", 0, None)
        seconds = processes.broadcast(measure_step(task.with_config(candidate), processes).seconds)
        elapsed = processes.broadcast(time.monotonic() - started)
        fitting = fit_steps(candidate, facts, seconds, elapsed=elapsed)
        # A smaller model that can do most of its steps is better than a larger one that cannot.
        if fitting is not None and 2 * fitting.train.max_steps >= candidate.train.max_steps:
            break
    if fitting is None:
        raise budget_error(candidate, facts, seconds, elapsed=elapsed)
    return fitting


def measure_step(task: Task, processes: ProcessGroup) -> StepTime:
    """Return the time of a training step, measured over a few steps that are then discarded."""
    with TemporaryDirectory() as directory:
        seed_everything(task.config.train.seed)
        model = task.build_model()
        trainer = Trainer(
            model,
            task.make_plan(model, processes),
            task.config.train.replace(compile=False),
            Path(directory),
            processes=processes,
        )
        return trainer.measure_step()
