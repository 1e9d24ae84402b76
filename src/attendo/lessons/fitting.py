"""What fits into a terminal: columns are narrowed or shared out before anything is cut off."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult


@dataclass(frozen=True)
class Fitted:
    """What is set by the room that there is: `make` gets the columns of the terminal."""

    make: Callable[[int], RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Make it for this terminal."""
        yield self.make(options.max_width)


def share_out(widths: Sequence[int], room: int) -> list[list[int]]:
    """Share columns, by their places, out into parts that fit; one lies between two of them.

    >>> share_out([4, 4, 4], 10)
    [[0, 1], [2]]
    """
    parts: list[list[int]] = []
    left = 0
    for place, width in enumerate(widths):
        if width + 1 > left:
            parts.append([])
            left = max(room, width + 1)
        parts[-1].append(place)
        left -= width + 1
    return parts


def narrow(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """Take from the widest columns what is too much, but no more than their longest words bear.

    >>> narrow([10, 30, 20], [8, 9, 20], 50)
    [10, 20, 20]
    """
    widths = list(natural)
    while sum(widths) > room:
        bearing = [place for place, width in enumerate(widths) if width > least[place]]
        if not bearing:
            break
        widths[max(bearing, key=widths.__getitem__)] -= 1
    return widths
