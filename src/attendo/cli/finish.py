"""`attendo finish`: end a run that was interrupted, from the checkpoints it has."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from attendo.cli.console import make_console
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    DeviceOption,
    ThreadsOption,
)


def finish(
    run: Annotated[Path, typer.Argument(help="The run folder (the --out of attendo train).")],
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    lang: LangOption = None,
) -> None:
    """End an interrupted run now: average its best checkpoints, write the model and the report."""
    from attendo.cli.train import print_finished_run
    from attendo.i18n.messages import choose_language
    from attendo.tasks.finish import finish_run
    from attendo.training.progress import ProgressReporter

    console = make_console()
    with ProgressReporter(console, lang=choose_language(lang)) as bar:
        finished_run = finish_run(run, device=device, threads=threads, reporter=bar)
    print_finished_run(console, finished_run, choose_language(lang))
