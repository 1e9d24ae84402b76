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

    from attendo.decoding.desk import Desk, Sizes
    from attendo.decoding.fixed_steps import Fixable, FixedSteps

SWITCH = "ATTENDO_CUDA_GRAPHS"
SHELF = "desks"
PART_OF_MEMORY = 0.25
"""Of a GPU, that kept desks may fill."""
LEAST_ROOM = 2**30
logger = get_logger(__name__)


class Graphs:
    """Runs the same work again and again: as it is, then recorded, then played back."""

    def __init__(self, *, is_on: bool, pool: Any = None) -> None:
        self.is_on, self.pool = is_on, pool
        self.recorded: dict[Hashable, torch.cuda.CUDAGraph | None] = {}

    def run(self, key: Hashable, work: Callable[[], None]) -> None:
        """Do `work`, which must be the same kernels on the same addresses for the same key."""
        if not self.is_on:
            work()
        elif key not in self.recorded:
            self.recorded[key] = None
            work()  # once as it is: libraries choose their kernels and take their memory
        else:
            graph = self.recorded[key] or self._record(key, work)
            if graph is None:
                work()
            else:
                graph.replay()

    def _record(self, key: Hashable, work: Callable[[], None]) -> torch.cuda.CUDAGraph | None:
        """Record without running; where that fails, do without graphs from now on."""
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self.pool, capture_error_mode="thread_local"):
                work()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            logger.warning("no CUDA graph of a decoding step (%s): slower without", error)
            self.is_on = False
            return None
        self.recorded[key] = graph
        return graph


class KeptDesk:
    """A desk with the graphs of its steps."""

    def __init__(self, desk: Desk, graphs: Graphs) -> None:
        self.desk, self.graphs = desk, graphs

    def start(self) -> None:
        """Begin with what was put down."""
        self.graphs.run("start", self.desk.start)

    def advance(self, position: int, *, may_end: bool) -> None:
        """Say the token at `position`."""
        window = find_window(position, self.desk.steps.max_length)
        self.graphs.run(
            (window, may_end), lambda: self.desk.advance(window=window, may_end=may_end)
        )


class Shelf:
    """The desks of one model; those that were not used for long go when room is short."""

    def __init__(self, root: FixedSteps) -> None:
        self.root = root
        self.lock = RLock()  # a desk is for one search at a time
        self.desks: OrderedDict[Hashable, KeptDesk] = OrderedDict()
        is_cuda = root.position.is_cuda
        self.has_graphs = is_cuda and os.environ.get(SWITCH, "1") != "0"
        self.pool = torch.cuda.graph_pool_handle() if self.has_graphs else None
        memory = (
            torch.cuda.get_device_properties(root.position.device).total_memory if is_cuda else 0
        )
        self.room = int(memory * PART_OF_MEMORY) or LEAST_ROOM

    def open(self, key: Hashable, sizes: Sizes, make: Callable[[FixedSteps], Desk]) -> KeptDesk:
        """Give the desk for searches of this key and size."""
        found = self.desks.pop((key, sizes), None)
        if found is None:
            desk = make(self.root.resize(**sizes._asdict()))
            found = KeptDesk(desk, Graphs(is_on=self.has_graphs, pool=self.pool))
        self.desks[key, sizes] = found
        while len(self.desks) > 2 and self._count_bytes() > self.room:  # a search has two in hand
            self.desks.popitem(last=False)
        return found

    def _count_bytes(self) -> int:
        return sum(one.desk.steps.num_bytes for one in self.desks.values())


def find_shelf(model: Fixable) -> Shelf:
    """Give the shelf of a model, an empty one where its weights have moved."""
    shelf: Shelf | None = model.kept.get(SHELF)
    if shelf is None or not shelf.root.is_current():
        root = model.fix(num_sentences=1, width=1, src_length=1, max_length=1)
        shelf = model.kept[SHELF] = Shelf(root)
    return shelf


def find_window(position: int, max_length: int) -> int:
    """Give the positions that the step at `position` looks back at: some more than it has to."""
    return min(round_up(position + 1, least=16), max_length)


def round_up(number: int, *, least: int = 1) -> int:
    """Give the next power of two, or one and a half times one, so that few sizes are met.

    >>> [round_up(number) for number in (1, 3, 5, 7, 33)]
    [1, 3, 6, 8, 48]
    """
    power = 1 << max(max(number, least) - 1, 0).bit_length()
    return power * 3 // 4 if power >= 4 and max(number, least) <= power * 3 // 4 else power
