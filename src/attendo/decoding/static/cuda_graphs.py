"""CUDA graphs of the steps of a search.

A decoding step of a small batch launches hundreds of kernels that take a few microseconds each:
launching them takes longer than running them. A CUDA graph is launched as a whole.

`ATTENDO_CUDA_GRAPHS=0` switches graphs off: the same code runs kernel by kernel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import torch

from attendo.core.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

logger = get_logger(__name__)
CAPTURES_KEY = "graph_captures"


class HasDecodingCache(Protocol):
    """A model that keeps what searches need between calls."""

    @property
    def decoding_cache(self) -> dict[Any, Any]:
        """What is kept; it belongs to this model object."""
        ...


class GraphCaptures:
    """Counts the captures of a model, and forbids them once it is warm.

    A capture takes as long as dozens of steps, and all other work on the device waits for it.
    """

    def __init__(self) -> None:
        self.num_captures, self.num_late = 0, 0
        self.is_warm = False
        """No graph is captured from now on: work without one runs kernel by kernel."""

    @classmethod
    def of_model(cls, model: HasDecodingCache) -> GraphCaptures:
        """Return the counts that are kept with a model."""
        captures: GraphCaptures = model.decoding_cache.setdefault(CAPTURES_KEY, cls())
        return captures

    def count(self) -> None:
        """Count one capture."""
        self.num_captures += 1
        self.num_late += self.is_warm


class CudaGraphs:
    """Runs repeated work eagerly the first time, captures it the second time, then replays it."""

    def __init__(self, *, memory_pool: Any = None, captures: GraphCaptures | None = None) -> None:
        self.is_enabled, self.memory_pool = True, memory_pool
        self.captures = captures or GraphCaptures()
        self.captured: dict[Hashable, torch.cuda.CUDAGraph | None] = {}

    def prepare(self, key: Hashable, work: Callable[[], None]) -> Callable[[], None]:
        """Return what does `work`: the function itself, or the replay of its graph.

        For the same key `work` must launch the same kernels on the same addresses.
        """
        if not self.is_enabled:
            return work
        if key not in self.captured:
            self.captured[key] = None
            return work  # The first run is eager: libraries choose kernels and allocate memory.
        graph = self.captured[key]
        if graph is None and not self.captures.is_warm:
            graph = self._capture(key, work)
        return work if graph is None else graph.replay

    def _capture(self, key: Hashable, work: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
        """Capture `work` without running it; if that fails, disable graphs from now on."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.memory_pool, capture_error_mode="thread_local"):
                work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            logger.warning("no CUDA graph of a decoding step (%s): decoding is slower", error)
            self.is_enabled = False
            return None
        self.captured[key] = graph
        self.captures.count()
        return graph
