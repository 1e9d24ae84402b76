"""Seconds, bytes and operations of one layer, forward and backward.

Seconds: medians of rounds in which the layers take turns, so that a noisy machine hits all alike.
On a GPU events on its own clock bound each round.

Bytes: the peak of what forward and backward allocate beyond weights and input. On a GPU the
allocator keeps it. On a CPU the profiler notes every allocation and release of PyTorch's allocator,
those within fused kernels too; their running sum is exact, and a second run gives the same.

Operations: multiply-adds of the forward pass, counted by `FlopCounterMode` from the shapes alone
(on the `meta` device, where no kernel hides its parts). The projections of attention, which the
paper's table leaves out, are kept apart.
"""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import time
from contextlib import contextmanager
from copy import deepcopy
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from .layers import Recurrent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

WARM_UP = 2
FEWEST, MOST = 3, 30
"""Rounds: at least so many while time is left, at most so many where they are short."""
COUNTED_STEPS = 64
"""Steps of the recurrent layer that are counted one by one; all others are like them."""


class Timing(NamedTuple):
    """The median of some rounds, the fastest of them, and how many they were."""

    seconds: float
    fastest: float
    rounds: int


class Operations(NamedTuple):
    """Multiply-adds of one forward pass: what the table counts, and what it leaves out."""

    mixing: int
    projections: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.mixing + self.projections


def make_run(
    layer: nn.Module, length: int, d_model: int, *, batch: int, device: torch.device
) -> Callable[[], None]:
    """Give a call that runs the layer forward and backward, down to its weights and its input."""
    dtype = next(layer.parameters()).dtype
    x = torch.randn(batch, length, d_model, device=device, dtype=dtype, requires_grad=True)
    sent = torch.randn(batch, length, d_model, device=device, dtype=dtype)

    def run() -> None:
        layer(x).backward(sent)
        layer.zero_grad()
        x.grad = None

    return run


def time_in_turns(
    runs: Mapping[str, Callable[[], None]], device: torch.device, *, seconds: float
) -> dict[str, Timing]:
    """Time each run in rounds for about so many seconds in all; at least one round is timed."""
    time_once = _time_on_gpu if device.type == "cuda" else _time_on_cpu
    end = time.perf_counter() + seconds
    for number in range(WARM_UP):
        if number and time.perf_counter() > end:
            break
        for run in runs.values():
            time_once(run)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(MOST):
        begin = time.perf_counter()
        for name, run in runs.items():
            times[name].append(time_once(run))
        now = time.perf_counter()
        needed = now - begin if number >= FEWEST - 1 else 0.0
        if now + needed > end:
            break
    return {
        name: Timing(statistics.median(taken), min(taken), len(taken))
        for name, taken in times.items()
    }


def _time_on_cpu(run: Callable[[], None]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def _time_on_gpu(run: Callable[[], None]) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) / 1000


def measure_peak(run: Callable[[], None], device: torch.device) -> int:
    """Give the most bytes that a run holds at a time, beyond those held before it."""
    run()  # what is kept for good by the first run is no part of the second
    return _peak_on_gpu(run) if device.type == "cuda" else _peak_on_cpu(run)


def _peak_on_gpu(run: Callable[[], None]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _peak_on_cpu(run: Callable[[], None]) -> int:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells of each start and stop otherwise
    kinds = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=kinds, profile_memory=True) as profile:
        run()
    with tempfile.TemporaryDirectory(prefix="attendo-why-") as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    changes = [
        (event["ts"], event["args"]["Bytes"]) for event in events if event.get("name") == "[memory]"
    ]
    held = peak = 0
    for _, change in sorted(changes, key=itemgetter(0)):
        held += change
        peak = max(peak, held)
    return peak


def count_operations(layer: nn.Module, length: int, d_model: int) -> Operations:
    """Count the multiply-adds of the layer at this length, without running it."""
    counted = min(length, COUNTED_STEPS) if isinstance(layer, Recurrent) else length
    # in training attention makes its three projections at once, and under its own name
    on_meta = deepcopy(layer).to("meta").eval()
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        on_meta(torch.empty(1, counted, d_model, device="meta"))
    counts = {name: sum(found.values()) for name, found in counter.get_flop_counts().items()}
    linear = (name for name, part in on_meta.named_modules() if isinstance(part, nn.Linear))
    projections = sum(counts[f"{type(layer).__name__}.{name}"] for name in linear)
    mixing = counts["Global"] - projections
    return Operations(mixing // 2 * length // counted, projections // 2)


@contextmanager
def true_float32() -> Iterator[None]:
    """Let no kernel shorten float32 to TF32: cuDNN's would, while matrix products would not."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Compute on so many threads for a while."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
