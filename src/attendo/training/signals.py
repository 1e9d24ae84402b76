"""Ctrl-C and SIGTERM: the run ends after its step, with everything saved."""

from __future__ import annotations

import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Interrupted(AttendoError):  # noqa: N818 - not an error: the user asked for it
    """The run was asked to stop (Ctrl-C, SIGTERM) and has saved itself."""

    def __init__(self, step: int, number: int) -> None:
        super().__init__(
            f"stopped at step {step}; everything is saved",
            remedy="run the same command again (without --force) to go on from there",
        )
        self.exit_code = 128 + number


class StopRequest:
    """Whether somebody asked for the end, and by which signal."""

    def __init__(self) -> None:
        self.number: int | None = None

    @contextmanager
    def listen(self, say: Callable[[str], None]) -> Iterator[None]:
        """Note the first signal; a second one ends the process at once."""

        def note(number: int, _frame: object) -> None:
            self.number = number
            signal.signal(number, signal.SIG_DFL)
            with suppress(RuntimeError):  # the signal may have come in the middle of a print
                say("stopping after this step; once more to stop at once")

        handlers = {}
        with suppress(ValueError):  # not the main thread: whoever started it looks after signals
            for number in (signal.SIGINT, signal.SIGTERM):
                handlers[number] = signal.signal(number, note)
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
