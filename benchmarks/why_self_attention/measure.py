"""Seconds, bytes and operations of one layer, forward and backward.

Seconds: medians of alternating rounds, so that noise affects all layers alike. On a GPU each round
is timed with CUDA events.

Bytes: the peak that forward and backward allocate beyond weights and input. On a GPU the allocator
reports it. On a CPU the profiler records every allocation and release of PyTorch's allocator,
including fused kernels; their running sum is exact and reproducible.

Operations: multiply-adds of the forward pass, counted by `FlopCounterMode` from the shapes (on the
`meta` device, where no fused kernel hides operations). The projections of attention, which the
paper's table omits, are counted separately.
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
MIN_ROUNDS, MAX_ROUNDS = 3, 30
"""Minimum number of rounds while time is left, and maximum number of rounds."""
COUNTED_STEPS = 64
"""Steps of the recurrent layer that are counted; the others are equal."""


class Timing(NamedTuple):
    """Median and minimum over the rounds, and their number."""

    seconds: float
    fastest: float
    rounds: int


class Operations(NamedTuple):
    """Multiply-adds of one forward pass: those in the table, and those that it omits."""

    mixing: int
    projections: int

    @property
    def total(self) -> int:
        """The sum of both."""
        return self.mixing + self.projections


def make_run(
    layer: nn.Module, length: int, d_model: int, *, batch: int, device: torch.device
) -> Callable[[], None]:
    """Return a function that runs the layer forward and backward."""
    dtype = next(layer.parameters()).dtype
    x = torch.randn(batch, length, d_model, device=device, dtype=dtype, requires_grad=True)
    grad_output = torch.randn(batch, length, d_model, device=device, dtype=dtype)

    def run() -> None:
        layer(x).backward(grad_output)
        layer.zero_grad()
        x.grad = None

    return run


def time_in_turns(
    runs: Mapping[str, Callable[[], None]], device: torch.device, *, seconds: float
) -> dict[str, Timing]:
    """Time each function in alternating rounds, for about `seconds` in total."""
    time_once = _time_on_gpu if device.type == "cuda" else _time_on_cpu
    end = time.perf_counter() + seconds
    for number in range(WARM_UP):
        if number and time.perf_counter() > end:
            break
        for run in runs.values():
            time_once(run)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(MAX_ROUNDS):
        begin = time.perf_counter()
        for name, run in runs.items():
            times[name].append(time_once(run))
        now = time.perf_counter()
        needed = now - begin if number >= MIN_ROUNDS - 1 else 0.0
        if now + needed > end:
            break
    return {
        name: Timing(statistics.median(seconds_taken), min(seconds_taken), len(seconds_taken))
        for name, seconds_taken in times.items()
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
    """Return the peak memory of a run beyond the memory that was allocated before."""
    run()  # the first run allocates caches, which do not count
    return _peak_on_gpu(run) if device.type == "cuda" else _peak_on_cpu(run)


def _peak_on_gpu(run: Callable[[], None]) -> int:
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before


def _peak_on_cpu(run: Callable[[], None]) -> int:
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # otherwise it logs each start and stop
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
    allocated = peak = 0
    for _, change in sorted(changes, key=itemgetter(0)):
        allocated += change
        peak = max(peak, allocated)
    return peak


def count_operations(layer: nn.Module, length: int, d_model: int) -> Operations:
    """Return the multiply-adds of the layer at this length, without running it."""
    counted = min(length, COUNTED_STEPS) if isinstance(layer, Recurrent) else length
    # In training mode attention fuses its three projections under another name.
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
    """Disable TF32 in cuDNN, since matrix products do not use it either."""
    before = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = False
    try:
        yield
    finally:
        torch.backends.cudnn.allow_tf32 = before


@contextmanager
def use_threads(count: int) -> Iterator[None]:
    """Use `count` CPU threads within the context."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
