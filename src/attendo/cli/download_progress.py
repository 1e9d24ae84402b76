"""Progress of downloads on the terminal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rich.console import Console
    from rich.progress import TaskID

LOG_INTERVAL_SECONDS = 10.0


class DownloadProgress:
    """A progress bar per file; without a terminal, a line every ten seconds."""

    def __init__(self, console: Console, *, is_resumable: bool) -> None:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        self.console = console
        self.is_resumable = is_resumable
        self.tasks: dict[str, TaskID] = {}
        self.current: tuple[str, int] | None = None
        self.last_print_time = time.monotonic()
        self.progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self._finish_file()
        self.progress.stop()

    def update(self, name: str, done: int, total: int | None) -> None:
        """Show how many bytes of a file are downloaded."""
        if self.current is None or self.current[0] != name:
            self._finish_file()
            self._start_file(name, done, total)
        self.current = (name, done)
        # After the download, verifying and extracting still take a while.
        note = "finishing" if done == total else ""
        self.progress.update(self.tasks[name], completed=done, total=total, note=note)
        if (
            not self.console.is_terminal
            and time.monotonic() - self.last_print_time > LOG_INTERVAL_SECONDS
        ):
            self._print_line(name, done, total)

    def _start_file(self, name: str, done: int, total: int | None) -> None:
        from attendo.corpora.download import CHUNK_BYTES

        # More than one chunk at the first call: an earlier download was interrupted.
        if self.is_resumable and done > CHUNK_BYTES:
            self.console.print(f"{name}: download resumed", markup=False)
        self.tasks[name] = self.progress.add_task(name, total=total, completed=done, note="")

    def _finish_file(self) -> None:
        if self.current is None:
            return
        name, done = self.current
        self.progress.update(self.tasks[name], completed=done, total=done, note="done")
        if not self.console.is_terminal:
            self._print_line(name, done, done)

    def _print_line(self, name: str, done: int, total: int | None) -> None:
        from rich.filesize import decimal

        self.last_print_time = time.monotonic()
        suffix = "" if total in (None, done) else f" of {decimal(total or 0)}"
        self.console.print(f"{name}: {decimal(done)}{suffix}", markup=False)
