"""What a person sees while a model learns: a bar on a terminal, a line now and then elsewhere."""

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

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:
        """Tell how far the training is."""
        ...

    def message(self, text: str) -> None:
        """Tell something worth a line."""
        ...


class NullReporter:
    """Shows nothing: the reporter of a library call. What is worth a line goes to the log."""

    def stage(self, name: str, done: int, total: int | None) -> None:
        """Say nothing."""

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:
        """Say nothing."""

    def message(self, text: str) -> None:
        """Log it."""
        logger.info(text)


class ProgressReporter:
    """A rich progress bar; where the output is no terminal, a plain line every ten seconds."""

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
            TextColumn("{task.fields[figures]}"),
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
        """Show a stage of the preparation."""
        self._update(name, done, total, "")

    def step(self, step: int, total: int, metrics: dict[str, str]) -> None:
        """Show the training."""
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
            self.task = self.progress.add_task(label, total=total, figures="", count="", left="")
            self.stage_name, self.last_print_time = name, 0.0
        suffix = "" if total is None else f"/{total:,}"
        count = f"{done:,}{suffix}" if done or total else ""
        remaining_label = translate_message("left", self.lang) if total else ""
        self.progress.update(
            self.task,
            completed=done,
            total=total,
            figures=metrics,
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
