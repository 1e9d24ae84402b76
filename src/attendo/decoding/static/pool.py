"""Allocates the buffers of searches, for one search or to be reused by the next ones.

CUDA graphs require reuse: a graph is bound to one shape and to fixed addresses. Sizes are therefore
rounded up to a few buckets, and a second search of similar size finds its buffers and graphs ready.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from attendo.core.protocols import StaticDecoderProtocol, SupportsStaticDecoding
    from attendo.decoding.static.state import SearchShape, StaticState

GRAPHS_VARIABLE = "ATTENDO_CUDA_GRAPHS"
POOL_KEY = "buffer_pool"
SHRINK_THRESHOLD = 0.75
"""Without reuse: the share of open sentences below which moving to smaller buffers pays."""
MIN_BUCKET_LENGTH = 16
"""With reuse: the shortest buffers, and the fewest positions that a step attends to."""
MEMORY_FRACTION = 0.25
"""The share of a GPU's memory that reused buffers may occupy."""
MIN_CAPACITY_BYTES = 2**30


class BufferPool:
    """Makes the states of searches with one model.

    Args:
        model: makes the decoders.
        reuse: keep states, and the CUDA graphs of their steps, for later searches. The least
            recently used ones are dropped when their buffers exceed `capacity_bytes`.

    """

    def __init__(self, model: SupportsStaticDecoding, *, reuse: bool) -> None:
        self.model, self.reuse = model, reuse
        self.lock = RLock()  # A state serves one search at a time.
        self.states: OrderedDict[Hashable, StaticState] = OrderedDict()
        self.decoder: StaticDecoderProtocol | None = None
        """Shares its weights with all other decoders of the pool."""
        self.uses_graphs, self.capacity_bytes = False, MIN_CAPACITY_BYTES
        self.graph_memory: Any = None
        """The memory that the graphs of all states share."""
        if reuse:
            self._prepare_reuse()

    @classmethod
    def for_model(cls, model: SupportsStaticDecoding) -> BufferPool:
        """Return the pool that is kept with a model; a new one after its weights have moved."""
        pool: BufferPool | None = model.decoding_cache.get(POOL_KEY)
        if pool is None or pool.decoder is None or not pool.decoder.weights_unchanged():
            pool = model.decoding_cache[POOL_KEY] = cls(model, reuse=True)
        return pool

    def _prepare_reuse(self) -> None:
        self.decoder = self.model.make_static_decoder(
            num_sentences=1, width=1, src_length=1, max_length=1
        )
        device = self.decoder.position.device
        if device.type == "cuda":
            memory = torch.cuda.get_device_properties(device).total_memory
            self.capacity_bytes = int(memory * MEMORY_FRACTION)
            self.uses_graphs = uses_cuda_graphs(device)
        if self.uses_graphs:
            self.graph_memory = torch.cuda.graph_pool_handle()

    def acquire(
        self,
        shape: SearchShape,
        key: Hashable,
        make_state: Callable[[StaticDecoderProtocol], StaticState],
    ) -> StaticState:
        """Return a state with buffers of this shape or larger.

        Args:
            shape: the sizes that the search needs.
            key: what else distinguishes states that were made by different `make_state`.
            make_state: builds a new state around a decoder.

        """
        if not self.reuse or self.decoder is None:
            make = self.model.make_static_decoder if self.decoder is None else self.decoder.resize
            self.decoder = make(**shape._asdict())
            return make_state(self.decoder)
        bucket = shape._replace(
            num_sentences=round_to_bucket(shape.num_sentences),
            src_length=round_to_bucket(shape.src_length, minimum=MIN_BUCKET_LENGTH),
            max_length=round_to_bucket(shape.max_length, minimum=MIN_BUCKET_LENGTH),
        )
        state = self.states.pop((key, bucket), None)
        if state is None:
            state = make_state(self.decoder.resize(**bucket._asdict()))
            if self.uses_graphs:
                from attendo.decoding.static.cuda_graphs import CudaGraphs, GraphCaptures

                captures = GraphCaptures.of_model(self.model)
                state.graphs = CudaGraphs(memory_pool=self.graph_memory, captures=captures)
        self.states[key, bucket] = state
        while len(self.states) > 2 and self._count_bytes() > self.capacity_bytes:
            self.states.popitem(last=False)  # The running search uses the last two at most.
        return state

    def shrink(self, shape: SearchShape, num_open: int) -> SearchShape | None:
        """Return a smaller shape for the `num_open` sentences that are left, if moving pays."""
        if not self.reuse:
            is_worthwhile = num_open <= SHRINK_THRESHOLD * shape.num_sentences
        else:
            num_open = round_to_bucket(num_open)
            is_worthwhile = num_open <= shape.num_sentences // 2
        return shape._replace(num_sentences=num_open) if is_worthwhile else None

    def window(self, position: int, max_length: int) -> int:
        """Return how many positions the step at `position` attends to; masks hide surplus ones."""
        if not self.reuse:
            return position + 1
        return min(round_to_bucket(position + 1, minimum=MIN_BUCKET_LENGTH), max_length)

    def _count_bytes(self) -> int:
        return sum(state.decoder.num_bytes for state in self.states.values())


def uses_cuda_graphs(device: torch.device) -> bool:
    """Return whether the steps of searches on a device are captured."""
    return device.type == "cuda" and os.environ.get(GRAPHS_VARIABLE, "1") != "0"


def round_to_bucket(number: int, *, minimum: int = 1) -> int:
    """Round up to a power of two or to one and a half times one.

    >>> [round_to_bucket(number) for number in (1, 3, 5, 7, 33)]
    [1, 3, 6, 8, 48]
    """
    power = 1 << max(max(number, minimum) - 1, 0).bit_length()
    return power * 3 // 4 if power >= 4 and max(number, minimum) <= power * 3 // 4 else power
