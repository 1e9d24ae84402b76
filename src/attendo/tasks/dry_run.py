"""What a run would do: data, model, settings and time, without training."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from attendo.core.device import use_threads
from attendo.core.files import cache_dir
from attendo.tasks.auto_settings import choose_settings, describe_choice, measure_step
from attendo.tasks.memory import check_memory, check_model_size
from attendo.tasks.registry import task_class_for
from attendo.training.distributed import ProcessGroup
from attendo.training.messages import estimate_message
from attendo.training.progress import NullReporter, Reporter
from attendo.training.schedule import high_rate_warning

if TYPE_CHECKING:
    from attendo.tasks.config import RunConfig


def describe_run(
    config: RunConfig,
    *,
    device: str | None = None,
    threads: int | None = None,
    cache: Path | None = None,
    reporter: Reporter | None = None,
) -> RunConfig:
    """Prepare the data, choose the settings and time ten steps; report all of it.

    The prepared data stays in the cache, for the run itself. Nothing else is written.

    Args:
        config: of the run.
        device: cpu, cuda or cuda:1; by default a GPU if there is one.
        threads: CPU threads; by default one per core.
        cache: the folder of prepared data.
        reporter: receives the data, the choice and the time.

    Returns:
        The config with every setting that was left open.

    """
    reporter = reporter or NullReporter()
    use_threads(threads)
    processes = ProcessGroup(device)
    try:
        check_model_size(config, processes.device)
        with TemporaryDirectory() as directory:
            task = task_class_for(config).prepare(
                config,
                Path(directory) / "run",
                processes=processes,
                cache=cache or cache_dir(),
                reporter=reporter,
                resumed_key=None,
            )
        if config.plan.auto:
            task = choose_settings(task, processes, reporter, is_resumed=False)
        check_memory(task, processes.device)
        model = task.build_model()
        facts = task.describe(task.make_plan(model, processes), model)
        lines = list(facts["lines"])
        if config.plan.auto:
            lines += describe_choice(task, processes)
        warning = high_rate_warning(task.config.train, d_model=model.config.d_model)
        for line in [*lines, *([warning] if warning else [])]:
            reporter.message(line)
        reporter.stage("timing", 0, None)
        num_steps = task.config.train.max_steps
        step_time = measure_step(task, processes)
        seconds = processes.broadcast(step_time.seconds) * num_steps
        reporter.message(estimate_message(num_steps, seconds, step_time.num_steps))
        return task.config
    finally:
        processes.close()
