"""Where desks come from: made for one search, or kept with the model from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attendo.decoding.desk import Sizes
from attendo.decoding.graphs import find_shelf, round_up

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from attendo.decoding.desk import Desk
    from attendo.decoding.fixed_steps import Fixable, FixedSteps

    MakeDesk = Callable[[FixedSteps], Desk]

MOST_OPEN = 0.75
"""Of the sentences of a desk: with fewer it is worth moving to a smaller one."""


class Place(Protocol):
    """A desk, and how its steps are run."""

    desk: Desk

    def start(self) -> None:
        """Begin with what was put down."""
        ...

    def advance(self, position: int, *, may_end: bool) -> None:
        """Say the token at `position`."""
        ...


class Room(Protocol):
    """Gives desks."""

    def open(self, sizes: Sizes) -> Place:
        """Give a desk that is large enough."""
        ...

    def shrink(self, desk: Desk, num_open: int) -> Place | None:
        """Give a smaller desk for so many sentences of this one, where that is worth it."""
        ...


class FreshPlace:
    """A desk for one search, run step by step."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    def start(self) -> None:
        """Begin with what was put down."""
        self.desk.start()
        self.desk.steps.pack(self.desk.steps.src_length)  # about as many steps

    def advance(self, position: int, *, may_end: bool) -> None:
        """Say the token at `position`."""
        self.desk.advance(window=position + 1, may_end=may_end)


class FreshRoom:
    """Desks of just the right size."""

    def __init__(self, model: Fixable, make: MakeDesk) -> None:
        self.model, self.make = model, make

    def open(self, sizes: Sizes) -> FreshPlace:
        """Make a desk."""
        return FreshPlace(self.make(self.model.fix(**sizes._asdict())))

    def shrink(self, desk: Desk, num_open: int) -> FreshPlace | None:
        """Make a smaller one over the same weights, when a good part of the batch is done."""
        sizes = sizes_of(desk.steps)
        if num_open > MOST_OPEN * sizes.num_sentences:
            return None
        smaller = sizes._replace(num_sentences=num_open)
        return FreshPlace(self.make(desk.steps.resize(**smaller._asdict())))


class KeptRoom:
    """Desks that are there already, of few sizes; `key` tells what else they were made for."""

    def __init__(self, model: Fixable, make: MakeDesk, key: Hashable) -> None:
        self.shelf, self.make, self.key = find_shelf(model), make, key

    def open(self, sizes: Sizes) -> Place:
        """Take a desk of a size that is met again and again."""
        return self._take(
            sizes._replace(
                num_sentences=round_up(sizes.num_sentences),
                src_length=round_up(sizes.src_length, least=16),
                max_length=round_up(sizes.max_length, least=16),
            )
        )

    def shrink(self, desk: Desk, num_open: int) -> Place | None:
        """Take one of half the size, when half of the batch is done."""
        sizes, num = sizes_of(desk.steps), round_up(num_open)
        if num > sizes.num_sentences // 2:
            return None
        return self._take(sizes._replace(num_sentences=num))

    def _take(self, sizes: Sizes) -> Place:
        return self.shelf.open(self.key, sizes, self.make)


def sizes_of(steps: FixedSteps) -> Sizes:
    """Give the shape that steps were fixed for."""
    return Sizes(steps.num_sentences, steps.width, steps.src_length, steps.max_length)
