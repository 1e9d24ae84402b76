"""The progress bar of a translation: lines, lines per second, and the time that is left."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TimeRemainingColumn,
)
from rich.text import Text

from attendo.cli.console import make_console
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.translator.pipeline import LineProgress

MIN_INTEGER_SPEED = 10
"""The speed from which decimals are left out."""


@contextmanager
def progress_bar(num_lines: int, *, start: int = 0) -> Iterator[LineProgress | None]:
    """Show a progress bar on stderr for a file; yield what is called with the finished lines.

    Args:
        num_lines: of the file; 0 if it is not known, as in a pipe, which has no progress bar.
        start: lines that were translated before.

    """
    console = make_console(stderr=True)
    if not num_lines or not console.is_terminal:
        yield None
        return
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), SpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("translating", total=num_lines, completed=start)
        yield lambda num_done, _num_read: bar.update(task, completed=start + num_done)
        bar.update(task, completed=num_lines)


class SpeedColumn(ProgressColumn):
    """Lines per second, over the last half minute."""

    def render(self, task: Task) -> Text:
        """Return the text of the column."""
        return Text(translate_message(describe_speed(task.speed), choose_language()))


def describe_speed(speed: float | None) -> str:
    """Return lines per second as a text, nothing if they are not known yet.

    >>> describe_speed(2345.6), describe_speed(2.34), describe_speed(None)
    ('2,346 lines/s', '2.3 lines/s', '')
    """
    if not speed:
        return ""
    digits = 0 if speed >= MIN_INTEGER_SPEED else 1
    return message("{speed} lines/s", speed=f"{speed:,.{digits}f}")
