"""Progress of a run: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Protocol, Self

from attendo.core.logs import get_logger
from attendo.core.message import message
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
    "timing": "timing ten steps",
    "averaging": "averaging checkpoints, scoring dev",
}
"""What is shown for each stage."""
logger = get_logger(__name__)


def format_clock(seconds: float) -> str:
    """Return a duration as hours, minutes and seconds.

    >>> format_clock(3725.4)
    '1:02:05'
    """
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def format_duration(seconds: float) -> str:
    """Return a rough duration in words.

    >>> [format_duration(seconds) for seconds in (70.0, 700.0, 7_000.0, 300_000.0)]
    ['about 70 seconds', 'about 12 minutes', 'about 1.9 hours', 'about 3.5 days']
    """
    if seconds < 100:
        return message("about {count} seconds", count=f"{seconds:.0f}")
    if seconds < 90 * 60:
        return message("about {count} minutes", count=round(seconds / 60))
    if seconds < 48 * 3600:
        return message("about {count} hours", count=f"{seconds / 3600:.1f}")
    return message("about {count} days", count=f"{seconds / 86400:.1f}")


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
            console=console,
            disable=not self.is_interactive,
        )
        self.task: TaskID | None = None
        self.stage_name = ""
        self.last_print_time = 0.0
        self.origin: tuple[float, int] | None = None

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
        is_whole_line = not self.is_interactive  # a broken line cannot be searched
        localized = translate_message(text, self.lang)
        self.console.print(localized, highlight=False, markup=False, soft_wrap=is_whole_line)

    def _update(self, name: str, done: int, total: int | None, metrics: str) -> None:
        if self.task is None or name != self.stage_name:
            if self.task is not None:
                self.progress.remove_task(self.task)
            label = self._stage_label(name)
            self.task = self.progress.add_task(label, total=total, metrics="", count="", left="")
            self.stage_name, self.last_print_time, self.origin = name, 0.0, None
        suffix = "" if total is None else f"/{total:,}"
        count = f"{done:,}{suffix}" if done or total else ""
        now = time.monotonic()
        left = self._time_left(now, done, total)
        self.progress.update(
            self.task, completed=done, total=total, metrics=metrics, count=count, left=left
        )
        if not self.is_interactive and (
            now - self.last_print_time > LOG_INTERVAL_SECONDS or done == total
        ):
            self.last_print_time = now
            label = self._stage_label(name)
            parts = (f"{label} {count or '...'}", metrics, left)
            self.console.print("  ".join(filter(None, parts)), highlight=False, soft_wrap=True)

    def _time_left(self, now: float, done: int, total: int | None) -> str:
        """Return the time that is left at the speed since the first report after the start."""
        if not total or not done or done >= total:
            return ""
        if self.origin is None:
            self.origin = (now, done)
        start, first = self.origin
        if done == first:
            return ""
        seconds = (now - start) / (done - first) * (total - done)
        return translate_message(message("{time} left", time=format_clock(seconds)), self.lang)

    def _stage_label(self, stage: str) -> str:
        return translate_message(STAGE_LABELS.get(stage, stage), self.lang)
