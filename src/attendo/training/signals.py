"""Ctrl-C, SIGTERM and a closed terminal: the run saves a checkpoint after the step and stops."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)
"""Sent when the terminal is closed or the connection is lost; Windows has no such signal."""


class TrainingInterrupted(AttendoError):  # noqa: N818 - not an error: the user asked for it
    """The run was interrupted (Ctrl-C, SIGTERM, SIGHUP) after saving a checkpoint."""

    def __init__(self, step: int, signum: int) -> None:
        super().__init__(
            message("stopped at step {step}; everything is saved", step=step),
            hint="run the same command again (without --force) to resume",
        )
        self.exit_code = 128 + signum


class SignalHandler:
    """Records the signal that asked the run to stop."""

    def __init__(self) -> None:
        self.signum: int | None = None

    @contextmanager
    def install(self, report: Callable[[str], None]) -> Iterator[None]:
        """Record the first signal; a second one ends the process immediately.

        SIGHUP, when the terminal is closed, is sent by the shell and by the system: the second one
        must not end the process before it has saved. `nohup` lets it be ignored, and it stays so.
        """

        def handle(number: int, _frame: object) -> None:
            self.signum = number
            if number == HANGUP:
                return
            signal.signal(number, signal.SIG_DFL)
            with suppress(RuntimeError):  # the signal may have interrupted a print
                report("stopping after this step; send the signal again to stop immediately")

        signums = [signal.SIGINT, signal.SIGTERM]
        if HANGUP is not None and signal.getsignal(HANGUP) is not signal.SIG_IGN:
            signums.append(HANGUP)
        handlers = {}
        with suppress(ValueError):  # not the main thread: signals belong to the caller
            for signum in signums:
                handlers[signum] = signal.signal(signum, handle)
        try:
            yield
        finally:
            for signum, handler in handlers.items():
                signal.signal(signum, handler)
