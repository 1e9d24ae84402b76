"""Desks that stay with their model, and on a GPU the graphs of their steps.

A step of a small batch is hundreds of kernels of a few microseconds each: launching them one by one
takes longer than running them. A CUDA graph is launched at once. It holds for one shape, so sizes
are rounded up and desks are kept: the second search of about the same size finds everything there.

`ATTENDO_CUDA_GRAPHS=0` switches graphs off: the same code runs kernel by kernel.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from threading import RLock
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from attendo.decoding.static.contract import StaticDecoderProtocol, SupportsStaticDecoding
    from attendo.decoding.static.state import SearchShape, StaticSearchState

ENABLE_VARIABLE = "ATTENDO_CUDA_GRAPHS"
POOL_KEY = "desks"
MEMORY_FRACTION = 0.25
"""Of a GPU, that kept desks may fill."""
MIN_CAPACITY_BYTES = 2**30
logger = get_logger(__name__)


class CudaGraphs:
    """Runs the same work again and again: as it is, then recorded, then played back."""

    def __init__(self, *, is_enabled: bool, pool: Any = None) -> None:
        self.is_enabled, self.pool = is_enabled, pool
        self.captured: dict[Hashable, torch.cuda.CUDAGraph | None] = {}

    def run(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do `work`, which must be the same kernels on the same addresses for the same key."""
        if not self.is_enabled:
            work()
        elif key not in self.captured:
            self.captured[key] = None
            work()  # once as it is: libraries choose their kernels and take their memory
        else:
            graph = self.captured[key] or self._capture(key, work)
            if graph is None:
                work()
            else:
                graph.replay()

    def _capture(self, key: Hashable, work: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
        """Record without running; where that fails, do without graphs from now on."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            logger.warning("no CUDA graph of a decoding step (%s): slower without", error)
            self.is_enabled = False
            return None
        self.captured[key] = graph
        return graph


class GraphRunner:
    """A desk with the graphs of its steps."""

    def __init__(self, search_state: StaticSearchState, graphs: CudaGraphs) -> None:
        self.search_state, self.graphs = search_state, graphs

    def start(self) -> None:
        """Begin with what was put down."""
        self.graphs.run("start", self.search_state.start)

    def step(self, position: int, *, allow_end: bool) -> None:
        """Say the token at `position`."""
        window = kv_window(position, self.search_state.decoder.max_length)
        self.graphs.run(
            (window, allow_end), lambda: self.search_state.step(window=window, allow_end=allow_end)
        )


class BufferPool:
    """The desks of one model; those that were not used for long go when room is short."""

    def __init__(self, decoder_factory: StaticDecoderProtocol) -> None:
        self.decoder_factory = decoder_factory
        self.lock = RLock()  # a desk is for one search at a time
        self.runners: OrderedDict[Hashable, GraphRunner] = OrderedDict()
        is_cuda = decoder_factory.position.is_cuda
        self.has_graphs = is_cuda and os.environ.get(ENABLE_VARIABLE, "1") != "0"
        self.graph_pool = torch.cuda.graph_pool_handle() if self.has_graphs else None
        memory = (
            torch.cuda.get_device_properties(decoder_factory.position.device).total_memory
            if is_cuda
            else 0
        )
        self.capacity_bytes = int(memory * MEMORY_FRACTION) or MIN_CAPACITY_BYTES

    def acquire(
        self,
        key: Hashable,
        shape: SearchShape,
        make_state: Callable[[StaticDecoderProtocol], StaticSearchState],
    ) -> GraphRunner:
        """Give the desk for searches of this key and size."""
        runner = self.runners.pop((key, shape), None)
        if runner is None:
            search_state = make_state(self.decoder_factory.resize(**shape._asdict()))
            runner = GraphRunner(
                search_state, CudaGraphs(is_enabled=self.has_graphs, pool=self.graph_pool)
            )
        self.runners[key, shape] = runner
        while (
            len(self.runners) > 2 and self._count_bytes() > self.capacity_bytes
        ):  # a search has two in hand
            self.runners.popitem(last=False)
        return runner

    def _count_bytes(self) -> int:
        return sum(one.search_state.decoder.num_bytes for one in self.runners.values())


def get_pool(model: SupportsStaticDecoding) -> BufferPool:
    """Give the shelf of a model, an empty one where its weights have moved."""
    buffer_pool: BufferPool | None = model.decoding_cache.get(POOL_KEY)
    if buffer_pool is None or not buffer_pool.decoder_factory.weights_unchanged():
        decoder_factory = model.make_static_decoder(
            num_sentences=1, width=1, src_length=1, max_length=1
        )
        buffer_pool = model.decoding_cache[POOL_KEY] = BufferPool(decoder_factory)
    return buffer_pool


def kv_window(position: int, max_length: int) -> int:
    """Give the positions that the step at `position` looks back at: some more than it has to."""
    return min(round_to_bucket(position + 1, minimum=16), max_length)


def round_to_bucket(number: int, *, minimum: int = 1) -> int:
    """Give the next power of two, or one and a half times one, so that few sizes are met.

    >>> [round_up(number) for number in (1, 3, 5, 7, 33)]
    [1, 3, 6, 8, 48]
    """
    power = 1 << max(max(number, minimum) - 1, 0).bit_length()
    return power * 3 // 4 if power >= 4 and max(number, minimum) <= power * 3 // 4 else power
