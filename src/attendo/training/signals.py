"""Ctrl-C and SIGTERM: the run ends after its step, with everything saved."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class TrainingInterrupted(AttendoError):  # noqa: N818 - not an error: the user asked for it
    """The run was asked to stop (Ctrl-C, SIGTERM) and has saved itself."""

    def __init__(self, step: int, signum: int) -> None:
        super().__init__(
            message("stopped at step {step}; everything is saved", step=step),
            hint="run the same command again (without --force) to go on from there",
        )
        self.exit_code = 128 + signum


class SignalHandler:
    """Whether somebody asked for the end, and by which signal."""

    def __init__(self) -> None:
        self.signum: int | None = None

    @contextmanager
    def install(self, report: Callable[[str], None]) -> Iterator[None]:
        """Note the first signal; a second one ends the process at once."""

        def handle(number: int, _frame: object) -> None:
            self.signum = number
            signal.signal(number, signal.SIG_DFL)
            with suppress(RuntimeError):  # the signal may have come in the middle of a print
                report("stopping after this step; once more to stop at once")

        handlers = {}
        with suppress(ValueError):  # not the main thread: whoever started it looks after signals
            for signum in (signal.SIGINT, signal.SIGTERM):
                handlers[signum] = signal.signal(signum, handle)
        try:
            yield
        finally:
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
