"""The whole study: every layer at every length, within a time budget.

The result is a dictionary of numbers for the report and the plots.
"""

from __future__ import annotations

import os
import platform
import time
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import ConfigError
from attendo.core.hardware import inspect_system
from attendo.core.seeding import seed_everything

from .growth import choose_upper, find_crossing, fit_exponent
from .layers import KERNEL, KINDS, WIDTH
from .measure import (
    Timing,
    count_operations,
    make_run,
    measure_peak,
    time_in_turns,
    true_float32,
    use_threads,
)
from .paths import count_seen, measure_dilated_path, measure_path, measure_sequential

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SHORTEST = 16
SEEN_LENGTH = 64
"""Length at which the inputs of one output are counted."""
WIDTHS_LENGTH = 512
"""Length at which d is halved, or the longest one if that is shorter."""
COSTS, WIDTHS, PATHS = 0.6, 0.05, 0.9
"""Fractions of the budget: end of time and memory, duration of the widths, end of the paths."""
RUNS = 5
"""Minimum number of runs of a layer per length, including warm-up and memory."""


@dataclass(frozen=True)
class Setting:
    """The setting of a study."""

    device: str = "cpu"
    dtype: str = "float32"
    d_model: int = 512
    num_heads: int = 8
    batch: int = 1
    max_n: int = 4096
    threads: int | None = None
    budget: float = 240.0

    def check(self) -> None:
        """Raise an error with all reasons if the setting is invalid."""
        split = 2 * self.num_heads
        wrong = {
            f"max_n is {self.max_n}; growth needs {2 * SHORTEST} or more": (
                self.max_n < 2 * SHORTEST
            ),
            f"d_model is {self.d_model}; its half must split into {self.num_heads} heads": (
                self.d_model < split or self.d_model % split != 0
            ),
            f"batch is {self.batch}; 1 or more are needed": self.batch < 1,
            f"threads is {self.threads}; 1 or more are needed": (
                self.threads is not None and self.threads < 1
            ),
            f"budget is {self.budget} seconds; more than 0 are needed": not self.budget > 0,
            "device is cuda, but PyTorch sees no GPU here": (
                self.device == "cuda" and not torch.cuda.is_available()
            ),
        }
        reasons = [reason for reason, is_so in wrong.items() if is_so]
        if reasons:
            raise ConfigError.from_reasons("why self-attention", reasons)

    @property
    def lengths(self) -> list[int]:
        """The lengths 16, 32, ... up to `max_n`.

        >>> Setting(max_n=100).lengths
        [16, 32, 64]
        """
        return [SHORTEST << number for number in range((self.max_n // SHORTEST).bit_length())]


def run_study(setting: Setting, progress: Callable[[str, int, int], None]) -> dict[str, Any]:
    """Measure everything; `progress` is called with stage, steps done and total steps."""
    setting.check()
    machine = describe_machine(setting.device)
    begin = time.perf_counter()
    seed_everything(1)
    lengths = setting.lengths
    total = 2 * len(lengths) + 1
    layers = {key: _count(key, setting) for key in KINDS}
    threads = setting.threads or torch.get_num_threads()
    with use_threads(threads), true_float32():
        _measure_costs(
            layers,
            setting,
            begin + COSTS * setting.budget,
            lambda done: progress("time and memory", done, total),
        )
        progress("widths", len(lengths), total)
        widths = _measure_widths(setting)
    with use_threads(1):  # the tensors are small: more threads would be slower
        seen = {key: count_seen(key, SEEN_LENGTH) for key in KINDS}
        dilated = _measure_paths(
            layers,
            lengths,
            begin + PATHS * setting.budget,
            lambda done: progress("paths", len(lengths) + 1 + done, total),
        )
    progress("done", total, total)
    figures = {
        "setting": {**asdict(setting), "threads": threads, "kernel": KERNEL, "width": WIDTH},
        "machine": machine,
        "seconds": round(time.perf_counter() - begin, 1),
        "lengths": lengths,
        "layers": layers,
        "dilated_path": dilated,
        "seen": {"length": SEEN_LENGTH, **seen},
        "widths": widths,
    }
    return {**figures, **analyze(figures)}


def describe_machine(device: str) -> dict[str, Any]:
    """Return the hardware and software, and the load before the study."""
    machine = inspect_system()
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else machine.cpu,
        "cores": machine.cores,
        "load": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def analyze(figures: dict[str, Any]) -> dict[str, Any]:
    """Fit the exponents and find the crossings of the measurements."""
    lengths, layers = figures["lengths"], figures["layers"]
    d_model = figures["setting"]["d_model"]
    times = layers["self_attention"]["time"]
    measured = [n for n, seconds in zip(lengths, times, strict=True) if seconds is not None]
    upper = choose_upper(measured)

    def fit(values: Sequence[float | None]) -> float | None:
        return fit_exponent(upper, [values[lengths.index(n)] for n in upper])

    exponents = {
        key: {name: fit(layer[name]) for name in ("mixing", "operations", "time", "bytes", "path")}
        for key, layer in layers.items()
    }
    own = layers["self_attention"]
    crossings = {
        key: {
            "table": kind.crossing(d_model),
            **{
                name: find_crossing(lengths, own[name], layers[key][name])
                for name in ("operations", "time")
            },
        }
        for key, kind in KINDS.items()
        if kind.crossing
    }
    dilated = fit(figures["dilated_path"])
    growth = {"lengths": upper, "exponents": exponents, "dilated_path": dilated}
    return {"growth": growth, "crossings": crossings}


def _count(key: str, setting: Setting) -> dict[str, list[Any]]:
    """Return the results of a layer that are counted rather than measured."""
    kind, d_model = KINDS[key], setting.d_model
    layer = kind.make(d_model, setting.num_heads)
    counted = [count_operations(layer, length, d_model) for length in setting.lengths]
    return {
        "mixing": [found.mixing for found in counted],
        "projections": [found.projections for found in counted],
        "operations": [found.total for found in counted],
        "table_operations": [kind.operations(length, d_model) for length in setting.lengths],
        "table_path": [kind.longest_path(length) for length in setting.lengths],
    }


def _measure_paths(
    layers: dict[str, dict[str, list[Any]]],
    lengths: list[int],
    end: float,
    progress: Callable[[int], None],
) -> list[int | None]:
    """Add paths and sequential steps to the layers; return the paths of dilated convolutions.

    A length that would exceed the time limit is skipped: plain convolutions need n layers over n
    positions, four times the work for twice the length.
    """
    dilated: list[int | None] = []
    seconds_taken = 0.0
    for number, length in enumerate(lengths):
        progress(number)
        begin = time.perf_counter()
        is_in_time = begin + 4 * seconds_taken < end or number == 0
        for key, layer in layers.items():
            path = measure_path(key, length) if is_in_time else None
            layer.setdefault("path", []).append(path)
            steps = measure_sequential(key, length) if is_in_time else None
            layer.setdefault("sequential", []).append(steps)
        dilated.append(measure_dilated_path(length) if is_in_time else None)
        seconds_taken = time.perf_counter() - begin
    return dilated


def _measure_costs(
    layers: dict[str, dict[str, list[Any]]],
    setting: Setting,
    end: float,
    progress: Callable[[int], None],
) -> None:
    """Add seconds and bytes to the layers; skip a length that would exceed the time limit."""
    seconds_taken = 0.0  # seconds of one run of each layer at the previous length
    for number, length in enumerate(setting.lengths):
        progress(number)
        left = end - time.perf_counter()
        is_in_time = 4 * RUNS * seconds_taken < max(left, 0.0) or number == 0
        timings: dict[str, Timing] = {}
        peaks: dict[str, int] = {}
        if is_in_time:
            share = left / (len(setting.lengths) - number)
            timings, peaks = measure_length(setting, length, seconds=share)
            seconds_taken = sum(timing.seconds for timing in timings.values())
        for key, layer in layers.items():
            timing = timings.get(key)
            layer.setdefault("time", []).append(round(timing.seconds, 7) if timing else None)
            fastest = round(timing.fastest, 7) if timing else None
            layer.setdefault("fastest", []).append(fastest)
            layer.setdefault("rounds", []).append(timing.rounds if timing else 0)
            layer.setdefault("bytes", []).append(peaks.get(key))


def measure_length(
    setting: Setting, length: int, *, seconds: float
) -> tuple[dict[str, Timing], dict[str, int]]:
    """Measure time and memory of one layer of each kind, in about `seconds`."""
    begin = time.perf_counter()
    device = torch.device(setting.device)
    runs = {key: _make_run(key, setting, setting.d_model, length) for key in KINDS}
    peaks = {key: measure_peak(run, device) for key, run in runs.items()}
    left = seconds - (time.perf_counter() - begin)
    return time_in_turns(runs, device, seconds=left), peaks


def _make_run(key: str, setting: Setting, d_model: int, length: int) -> Callable[[], None]:
    device, dtype = torch.device(setting.device), getattr(torch, setting.dtype)
    layer = KINDS[key].make(d_model, setting.num_heads).to(device, dtype)
    return make_run(layer, length, d_model, batch=setting.batch, device=device)


def _measure_widths(setting: Setting) -> dict[str, Any]:
    """Measure every layer at d and d / 2, and fit the exponents of d."""
    length = min(WIDTHS_LENGTH, setting.lengths[-1])
    pair = (setting.d_model // 2, setting.d_model)
    runs = {
        f"{key} {d_model}": _make_run(key, setting, d_model, length)
        for key in KINDS
        for d_model in pair
    }
    seconds = WIDTHS * setting.budget
    timings = time_in_turns(runs, torch.device(setting.device), seconds=seconds)
    found: dict[str, Any] = {"length": length, "d_model": list(pair), "layers": {}}
    for key, kind in KINDS.items():
        seconds_taken = [timings[f"{key} {d_model}"].seconds for d_model in pair]
        counted = [
            count_operations(kind.make(d_model, setting.num_heads), length, d_model)
            for d_model in pair
        ]
        found["layers"][key] = {
            "time": seconds_taken,
            "exponents": {
                "mixing": fit_exponent(pair, [each.mixing for each in counted]),
                "operations": fit_exponent(pair, [each.total for each in counted]),
                "time": fit_exponent(pair, seconds_taken),
            },
        }
    return found
