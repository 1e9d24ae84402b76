"""Searches the sentences of several windows at the same time, in a stream.

The slots of the stream never wait for the last sentences of a window: those of the next one join as
soon as the first ones are done. The windows come back in order.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from attendo.core.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from attendo.decoding.hypothesis import SearchResult
    from attendo.translator.pipeline import DecodingStream
    from attendo.translator.windows import Window, WindowTranslator

_log = get_logger(__name__)
REPORT_STEPS = 16
"""Steps between two reports of the progress."""


@dataclass
class OpenWindow:
    """A window whose items are being searched."""

    window: Window
    num_items: int
    results: dict[int, SearchResult] = field(default_factory=dict)
    errors: dict[int, Exception] = field(default_factory=dict)

    @property
    def num_done(self) -> int:
        """The number of items that finished or failed."""
        return len(self.results) + len(self.errors)

    @property
    def is_complete(self) -> bool:
        """Return whether nothing is searched any more."""
        return self.num_done == self.num_items

    def receive(self, number: int, result: SearchResult | Exception) -> None:
        """Take the result of an item."""
        if isinstance(result, Exception):
            self.errors[number] = result
        else:
            self.results[number] = result


class StreamSearch:
    """Searches windows in a stream.

    Args:
        steps: completes the windows.
        stream: searches.
        has_next: returns whether the next window, or the end, is there without waiting.
        report: called with lines of a window, items that are done, and items of it.

    """

    def __init__(
        self,
        steps: WindowTranslator,
        stream: DecodingStream,
        has_next: Callable[[], bool],
        report: Callable[[int, int, int], None],
    ) -> None:
        self.steps, self.stream, self.has_next, self.report = steps, stream, has_next, report
        self._pending: deque[OpenWindow] = deque()
        self._owners: dict[Hashable, tuple[OpenWindow, int]] = {}
        self._tickets = count()

    def run(self, windows: Iterator[Window]) -> Iterator[Window]:
        """Yield the windows, in order, with their results."""
        is_open, num_steps = True, 0
        while is_open or self._pending:
            while is_open and self._has_capacity():
                window = next(windows, None)
                if window is None:
                    is_open = False
                else:
                    self._add(window)
            for ticket, result in self.stream.step() if self._owners else ():
                owner, number = self._owners.pop(ticket)
                owner.receive(number, result)
            while self._pending and self._pending[0].is_complete:
                yield self._complete(self._pending.popleft())
            num_steps += 1
            if self._pending and num_steps % REPORT_STEPS == 0:
                first = self._pending[0]
                self.report(len(first.window.texts), first.num_done, first.num_items)

    def _has_capacity(self) -> bool:
        """Return whether to take the next window; wait for it only if there is nothing else."""
        if not self._pending:
            return True
        return len(self.stream) < 2 * self.stream.num_slots and self.has_next()

    def _add(self, window: Window) -> None:
        """Add the items of a window to the stream, the longest first."""
        items = window.searched_items
        one = OpenWindow(window, len(items))
        self._pending.append(one)
        too_long = []
        for number in sorted(range(len(items)), key=lambda n: -len(items[n].ids)):
            ticket = next(self._tickets)
            if self.stream.add(ticket, items[number].ids, self.steps.options):
                self._owners[ticket] = one, number
            else:
                too_long.append(number)
        if too_long:
            self._search_batch(one, too_long)

    def _search_batch(self, one: OpenWindow, numbers: list[int]) -> None:
        """Search items that are too long for the stream."""
        items = one.window.searched_items
        found: Sequence[SearchResult | Exception]
        try:
            backend = self.steps.translator.backend
            found = backend.search([items[number] for number in numbers], self.steps.options)
        except (MemoryError, RuntimeError) as error:
            found = [error] * len(numbers)
        for number, result in zip(numbers, found, strict=True):
            one.receive(number, result)

    def _complete(self, one: OpenWindow) -> Window:
        """Complete a window; what failed is searched once more, in batches, with the others."""
        if one.window.error is None and not one.errors:
            try:
                self.steps.complete(one.window, [one.results[n] for n in range(one.num_items)])
            except (MemoryError, RuntimeError) as error:
                one.errors[0] = error
        if one.errors:
            name = type(next(iter(one.errors.values()))).__name__
            _log.warning("a window of %d lines is searched again: %s", len(one.window.texts), name)
        if one.errors or one.window.error is not None:
            self.steps.search(one.window)
        return one.window
