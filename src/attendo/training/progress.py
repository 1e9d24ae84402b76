"""What a person sees while a model learns: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, Self

from attendo.core.logs import get_logger

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from rich.progress import TaskID

LINE_SECONDS = 10.0
STAGES = {
    "hash": "checking the files",
    "clean": "cleaning",
    "split": "splitting dev off",
    "tokenizer": "learning the tokenizer",
    "tokenise": "tokenising",
    "averaging": "averaging, scoring dev",
}
"""What a person reads for the stages of the preparation."""
logger = get_logger(__name__)


class Reporter(Protocol):
    """Whom the trainer tells how far it is."""

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Tell how far a stage of the preparation is."""
        ...

    def step(self, step: int, total: int, figures: dict[str, str]) -> None:
        """Tell how far the training is."""
        ...

    def say(self, text: str) -> None:
        """Tell something worth a line."""
        ...


class Silence:
    """Shows nothing: the reporter of a library call. What is worth a line goes to the log."""

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Say nothing."""

    def step(self, step: int, total: int, figures: dict[str, str]) -> None:
        """Say nothing."""

    def say(self, text: str) -> None:
        """Log it."""
        logger.info(text)


class Bar:
    """A rich progress bar; where the output is no terminal, a plain line every ten seconds."""

    def __init__(self, console: Console) -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.console = console
        self.is_live = console.is_terminal
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[figures]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not self.is_live,
        )
        self.task: TaskID | None = None
        self.stage_name = ""
        self.last_line = 0.0

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.progress.stop()

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Show a stage of the preparation."""
        self._show(name, done, total, "")

    def step(self, step: int, total: int, figures: dict[str, str]) -> None:
        """Show the training."""
        text = "  ".join(f"{name} {value}" for name, value in figures.items())
        self._show("training", step, total, text)

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(text, highlight=False, markup=False)

    def _show(self, name: str, done: int, total: int | None, figures: str) -> None:
        if self.task is None or name != self.stage_name:
            if self.task is not None:
                self.progress.remove_task(self.task)
            shown = STAGES.get(name, name)
            self.task = self.progress.add_task(shown, total=total, figures="", count="", left="")
            self.stage_name, self.last_line = name, 0.0
        of = "" if total is None else f"/{total:,}"
        count = f"{done:,}{of}" if done or total else ""
        left = "left" if total else ""
        self.progress.update(
            self.task, completed=done, total=total, figures=figures, count=count, left=left
        )
        now = time.monotonic()
        if not self.is_live and (now - self.last_line > LINE_SECONDS or done == total):
            self.last_line = now
            shown = STAGES.get(name, name)
            self.console.print(f"{shown} {count or '...'}  {figures}".rstrip(), highlight=False)
