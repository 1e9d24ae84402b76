"""Fit columns into a terminal: shrink or split them before anything is cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


@dataclass(frozen=True)
class WidthAware:
    """A renderable that depends on the width of the terminal."""

    render: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the content for the width of this console."""
        yield self.render(options.max_width)


def split_columns(widths: Sequence[int], max_width: int) -> list[list[int]]:
    """Return the indices of columns in parts that fit, with one space between columns.

    >>> split_columns([4, 4, 4], 10)
    [[0, 1], [2]]
    """
    parts: list[list[int]] = []
    remaining = 0
    for index, width in enumerate(widths):
        if width + 1 > remaining:
            parts.append([])
            remaining = max(max_width, width + 1)
        parts[-1].append(index)
        remaining -= width + 1
    return parts


def shrink_columns(
    natural_widths: Sequence[int], min_widths: Sequence[int], max_width: int
) -> list[int]:
    """Return widths that fit, taken from the widest columns, but never below the minimum.

    >>> shrink_columns([10, 30, 20], [8, 9, 20], 50)
    [10, 20, 20]
    """
    widths = list(natural_widths)
    while sum(widths) > max_width:
        shrinkable = [index for index, width in enumerate(widths) if width > min_widths[index]]
        if not shrinkable:
            break
        widths[max(shrinkable, key=widths.__getitem__)] -= 1
    return widths
