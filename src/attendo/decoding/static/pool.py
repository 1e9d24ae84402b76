"""Where desks come from: made for one search, or kept with the model from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attendo.decoding.static.graphs import get_pool, round_to_bucket
from attendo.decoding.static.state import SearchShape

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from attendo.decoding.static.contract import StaticDecoderProtocol, SupportsStaticDecoding
    from attendo.decoding.static.state import StaticSearchState

    MakeSearchState = Callable[[StaticDecoderProtocol], StaticSearchState]

SHRINK_THRESHOLD = 0.75
"""Of the sentences of a desk: with fewer it is worth moving to a smaller one."""


class SearchRunner(Protocol):
    """A desk, and how its steps are run."""

    search_state: StaticSearchState

    def start(self) -> None:
        """Begin with what was put down."""
        ...

    def step(self, position: int, *, allow_end: bool) -> None:
        """Say the token at `position`."""
        ...


class SearchPool(Protocol):
    """Gives desks."""

    def acquire(self, shape: SearchShape) -> SearchRunner:
        """Give a desk that is large enough."""
        ...

    def shrink(self, search_state: StaticSearchState, num_open: int) -> SearchRunner | None:
        """Give a smaller desk for so many sentences of this one, where that is worth it."""
        ...


class EagerRunner:
    """A desk for one search, run step by step."""

    def __init__(self, search_state: StaticSearchState) -> None:
        self.search_state = search_state

    def start(self) -> None:
        """Begin with what was put down."""
        self.search_state.start()
        self.search_state.decoder.prepack_weights(
            self.search_state.decoder.src_length
        )  # about as many steps

    def step(self, position: int, *, allow_end: bool) -> None:
        """Say the token at `position`."""
        self.search_state.step(window=position + 1, allow_end=allow_end)


class EagerPool:
    """Desks of just the right size."""

    def __init__(self, model: SupportsStaticDecoding, make: MakeSearchState) -> None:
        self.model, self.make = model, make

    def acquire(self, shape: SearchShape) -> EagerRunner:
        """Make a desk."""
        return EagerRunner(self.make(self.model.make_static_decoder(**shape._asdict())))

    def shrink(self, search_state: StaticSearchState, num_open: int) -> EagerRunner | None:
        """Make a smaller one over the same weights, when a good part of the batch is done."""
        shape = shape_of(search_state.decoder)
        if num_open > SHRINK_THRESHOLD * shape.num_sentences:
            return None
        smaller = shape._replace(num_sentences=num_open)
        return EagerRunner(self.make(search_state.decoder.resize(**smaller._asdict())))


class ReusingPool:
    """Desks that are there already, of few sizes; `key` tells what else they were made for."""

    def __init__(self, model: SupportsStaticDecoding, make: MakeSearchState, key: Hashable) -> None:
        self.buffer_pool, self.make, self.key = get_pool(model), make, key

    def acquire(self, shape: SearchShape) -> SearchRunner:
        """Take a desk of a size that is met again and again."""
        return self._acquire_exact(
            shape._replace(
                num_sentences=round_to_bucket(shape.num_sentences),
                src_length=round_to_bucket(shape.src_length, minimum=16),
                max_length=round_to_bucket(shape.max_length, minimum=16),
            )
        )

    def shrink(self, search_state: StaticSearchState, num_open: int) -> SearchRunner | None:
        """Take one of half the size, when half of the batch is done."""
        shape, num = shape_of(search_state.decoder), round_to_bucket(num_open)
        if num > shape.num_sentences // 2:
            return None
        return self._acquire_exact(shape._replace(num_sentences=num))

    def _acquire_exact(self, shape: SearchShape) -> SearchRunner:
        return self.buffer_pool.acquire(self.key, shape, self.make)


def shape_of(decoder: StaticDecoderProtocol) -> SearchShape:
    """Give the shape that steps were fixed for."""
    return SearchShape(decoder.num_sentences, decoder.width, decoder.src_length, decoder.max_length)
