"""Progress of a run that is started from Python: a bar on a terminal or in a notebook.

A notebook shows one line that is rewritten, which needs no widgets and stays in the saved notebook.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from attendo.i18n.messages import choose_language, translate_message
from attendo.training.progress import NullReporter, ProgressReporter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.training.progress import Reporter

UPDATE_SECONDS = 0.25
BAR_WIDTH = 24


@contextmanager
def show_progress(reporter: Reporter | Literal["auto"] | None) -> Iterator[Reporter]:
    """Yield the reporter: the one that is given, or one that suits where the output goes.

    "auto" is a bar on a terminal and in a notebook, and lines in the log elsewhere; None is silent
    but for the log.
    """
    if reporter != "auto":
        yield reporter or NullReporter()
        return
    from rich.console import Console

    console, lang = Console(), choose_language()
    if console.is_jupyter:
        with NotebookReporter(Console(force_jupyter=False), lang=lang) as line:
            yield line
    elif console.is_terminal:
        with ProgressReporter(console, lang=lang) as bar:
            yield bar
    else:
        yield NullReporter()


class NotebookReporter(ProgressReporter):
    """Shows progress as one line of the cell's output; messages are printed."""

    def __init__(self, console: Console, *, lang: Lang = "en") -> None:
        super().__init__(console, lang=lang)
        self._handle: Any = None
        self._last_update = 0.0

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Show that nothing is in progress any more."""
        super().__exit__(kind, error, trace)
        if self._handle is not None and kind is None:
            self._show(translate_message("done", self.lang))

    def message(self, text: str) -> None:
        """Print a line."""
        self.console.print(
            translate_message(text, self.lang), highlight=False, markup=False, soft_wrap=True
        )

    def _update(self, name: str, done: int, total: int | None, metrics: str) -> None:
        now = time.monotonic()
        is_new = name != self.stage_name
        if is_new:
            self.stage_name, self.origin = name, None
        left = self._time_left(now, done, total)
        if not is_new and done != total and now - self._last_update < UPDATE_SECONDS:
            return
        self._last_update = now
        suffix = "" if total is None else f"/{total:,}"
        count = f"{done:,}{suffix}" if done or total else "..."
        bar = format_bar(done, total) if total else ""
        label = self._stage_label(name)
        self._show("  ".join(filter(None, (label, bar, count, metrics, left))))

    def _show(self, line: str) -> None:
        from IPython.display import display

        content = {"text/plain": line}
        if self._handle is None:
            show: Any = display  # IPython has no types
            self._handle = show(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def format_bar(done: int, total: int) -> str:
    """Return a bar of characters.

    >>> format_bar(6, 8)
    '━━━━━━━━━━━━━━━━━━──────'
    """
    filled = round(BAR_WIDTH * min(done / total, 1.0))
    return "━" * filled + "─" * (BAR_WIDTH - filled)
