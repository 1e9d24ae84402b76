"""Progress of a run: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, Self

from attendo.core.logs import get_logger
from attendo.i18n.messages import translate_message

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from rich.progress import TaskID

    from attendo.i18n.messages import Lang

LOG_INTERVAL_SECONDS = 10.0
STAGE_LABELS = {
    "hash": "checking the files",
    "clean": "cleaning",
    "split": "splitting off dev",
    "tokenizer": "training the tokenizer",
    "tokenize": "tokenizing",
    "averaging": "averaging checkpoints, scoring dev",
}
"""What is shown for each stage."""
logger = get_logger(__name__)


class Reporter(Protocol):
    """Receives the progress of a run."""

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Receive the progress of a stage before or after training."""
        ...

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:
        """Receive the progress of training."""
        ...

    def message(self, text: str) -> None:
        """Receive a line of text."""
        ...


class NullReporter:
    """Shows no progress; messages go to the log. The default of library calls."""

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Do nothing."""

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:
        """Do nothing."""

    def message(self, text: str) -> None:
        """Log the text."""
        logger.info(text)


class ProgressReporter:
    """Shows a progress bar, or plain lines if the output is not a terminal."""

    def __init__(self, console: Console, *, lang: Lang = "en") -> None:
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )

        self.console, self.lang = console, lang
        self.is_interactive = console.is_terminal
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[metrics]}"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not self.is_interactive,
        )
        self.task: TaskID | None = None
        self.stage_name = ""
        self.last_print_time = 0.0

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
        """Show the progress of a stage."""
        self._update(name, done, total, "")

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:
        """Show the progress of training."""
        localized = ((translate_message(name, self.lang), value) for name, value in metrics.items())
        text = "  ".join(f"{name} {value}" for name, value in localized)
        self._update("training", step, total, text)

    def message(self, text: str) -> None:
        """Print a line above the bar."""
        self.console.print(translate_message(text, self.lang), highlight=False, markup=False)

    def _update(self, name: str, done: int, total: int | None, metrics: str) -> None:
        if self.task is None or name != self.stage_name:
            if self.task is not None:
                self.progress.remove_task(self.task)
            label = self._stage_label(name)
            self.task = self.progress.add_task(label, total=total, metrics="", count="", left="")
            self.stage_name, self.last_print_time = name, 0.0
        suffix = "" if total is None else f"/{total:,}"
        count = f"{done:,}{suffix}" if done or total else ""
        remaining_label = translate_message("left", self.lang) if total else ""
        self.progress.update(
            self.task,
            completed=done,
            total=total,
            metrics=metrics,
            count=count,
            left=remaining_label,
        )
        now = time.monotonic()
        if not self.is_interactive and (
            now - self.last_print_time > LOG_INTERVAL_SECONDS or done == total
        ):
            self.last_print_time = now
            label = self._stage_label(name)
            self.console.print(f"{label} {count or '...'}  {metrics}".rstrip(), highlight=False)

    def _stage_label(self, stage: str) -> str:
        return translate_message(STAGE_LABELS.get(stage, stage), self.lang)
