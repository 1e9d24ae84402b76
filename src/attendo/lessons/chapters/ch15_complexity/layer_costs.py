"""Operations by Table 1 of the paper, paths by gradients, times by a clock.

Paths and sequential steps are measured by `attendo.inspection.receptive_field`; times are measured
on the computer that shows the lesson.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - the usual PyTorch name
from torch import Tensor, nn

from attendo.architectures.rnn_layers import RecurrentLayer
from attendo.inspection.receptive_field import (
    parallel_steps,
    path_length,
    receptive_field,
    recurrent_path_length,
    recurrent_steps,
    sequential_operations,
)
from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose
from attendo.model.attention import MultiHeadAttention
from attendo.model.fast.local_attention import LocalPattern
from attendo.model.masks import local_mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.inspection.receptive_field import Layer

prose = Prose("attendo.lessons.chapters.ch15_complexity")

NAMES = {
    "attention": prose("kind-attention"),
    "recurrent": prose("kind-recurrent"),
    "convolution": prose("kind-convolution"),
    "restricted": prose("kind-restricted"),
}
FORMULAS = {
    "attention": ("n² · d", "1", "1"),
    "recurrent": ("n · d²", "n", "n"),
    "convolution": ("k · n · d²", "1", "log_k n"),
    "restricted": ("r · n · d", "1", "n / r"),
}
"""Table 1 of the paper: operations, sequential steps, longest path."""
LENGTHS = tuple(2**power for power in range(4, 13))
TIMED = (16, 32, 64, 128, 256, 512)
TIMED_SIZE, TIMED_HEADS, NUM_ROUNDS = 64, 4, 3
NUM_WORDS, DISTANCE = 6, 4
D_SMALL = 4
"""d_model of the layers whose receptive field is measured."""
D, K, R = 512, 3, 32
SEED = 1


def count_operations(kind: str, n: int, d: int, k: int = K, r: int = R) -> int:
    """Return the number of multiplications of one layer as Table 1 does.

    >>> count_operations("attention", 10, 512), count_operations("recurrent", 10, 512)
    (51200, 2621440)
    """
    counts = {
        "attention": n * n * d,
        "recurrent": n * d * d,
        "convolution": k * n * d * d,
        "restricted": min(r, n) * n * d,
    }
    return counts[kind]


def crossing_length(kind: str, d: int, k: int = K, r: int = R) -> int:
    """Return the n from which self-attention does at least as much work as another kind."""
    if kind == "restricted":
        return r
    return count_operations(kind, 1, d, k, r) // d  # the others grow with n, attention with n²


def operations_chart(d: int = D, k: int = K, r: int = R) -> Chart:
    """Plot the operations of each kind of layer over n."""
    return Chart(
        "lines",
        prose("operations-curve", d=d),
        x=[float(n) for n in LENGTHS],
        series=[
            Series(name, [count_operations(kind, n, d, k, r) / 1e6 for n in LENGTHS])
            for kind, name in NAMES.items()
        ],
        x_label=prose("input-n"),
        log_x=True,
        log_y=True,
    )


def make_filter(k: int, *, dilation: int = 1, looks_back: bool = False) -> Layer:
    """Return a convolution of width k, centered on each word or ending at it."""
    conv = nn.Conv1d(D_SMALL, D_SMALL, k, dilation=dilation).double()
    total = (k - 1) * dilation
    padding = (total, 0) if looks_back else (total // 2, total - total // 2)
    return lambda x: conv(F.pad(x.mT, padding)).mT


def make_attention(r: int | None = None) -> Layer:
    """Return self-attention, restricted to r neighbors if r is given."""
    attention = MultiHeadAttention(D_SMALL, 2).double()

    def attend(x: Tensor) -> Tensor:
        mask = None if r is None else local_mask(x.size(1), r)
        mixed: Tensor = attention(x, x, x, mask)[0]
        return mixed

    return attend


@cache
def path_lengths(n: int, k: int, r: int) -> dict[str, int]:
    """Return how many layers or states are between the first and the last word, by gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)

        def count(make: Callable[[int], Layer]) -> int:
            return path_length(make, n, D_SMALL)

        return {
            "attention": count(lambda _: make_attention()),
            "recurrent": recurrent_path_length(nn.LSTM(D_SMALL, D_SMALL).double(), n),
            "convolution": count(lambda depth: make_filter(k, dilation=k**depth, looks_back=True)),
            "plain": count(lambda _: make_filter(k, looks_back=True)),
            "restricted": count(lambda _: make_attention(r)),
        }


@cache
def sequential_steps(n: int) -> dict[str, int]:
    """Return the number of sequential steps of each kind of layer, by gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        x = torch.randn(1, n, D_SMALL, dtype=torch.float64)
        recurrent = nn.LSTM(D_SMALL, D_SMALL).double()
        layers = {
            "attention": make_attention(),
            "convolution": make_filter(3),
            "restricted": make_attention(3),
        }
        sequential = {
            name: sequential_operations(parallel_steps(one, x), n) for name, one in layers.items()
        }
        return {**sequential, "recurrent": sequential_operations(recurrent_steps(recurrent, x), n)}


@cache
def visible_words(k: int | None = None) -> Tensor:
    """Return which words (columns) each word (row) sees with a filter of width k or attention."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        layer = make_attention() if k is None else make_filter(k)
        return receptive_field(layer, NUM_WORDS, D_SMALL)


@cache
def filters_needed(k: int, distance: int = DISTANCE) -> int:
    """Return how many layers of width-k filters are needed to see a word at a distance."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        return path_length(lambda _: make_filter(k), distance + 1, D_SMALL)


@cache
def measure_times() -> dict[str, list[float]]:
    """Return the milliseconds of one layer of each kind over n: the best of a few rounds."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        attention = MultiHeadAttention(TIMED_SIZE, TIMED_HEADS)
        recurrent = RecurrentLayer("lstm", TIMED_SIZE, TIMED_SIZE)
        conv = nn.Conv1d(TIMED_SIZE, TIMED_SIZE, K, padding=K // 2)
        words = torch.randn(1, TIMED[-1], TIMED_SIZE)
    layers: dict[str, Callable[[Tensor], object]] = {
        "attention": lambda x: attention(x, x, x),
        "recurrent": recurrent,
        "convolution": lambda x: conv(x.mT),
        "restricted": lambda x: attention(x, x, x, LocalPattern(R)),
    }
    return {name: [_time(layer, words[:, :n]) for n in TIMED] for name, layer in layers.items()}


@torch.inference_mode()
def _time(layer: Callable[[Tensor], object], x: Tensor) -> float:
    layer(x)  # the first call sets up the kernels
    best = float("inf")
    for _ in range(NUM_ROUNDS):
        start = perf_counter()
        layer(x)
        best = min(best, perf_counter() - start)
    return 1000.0 * best


def time_chart() -> Chart:
    """Plot the measured time of each kind of layer over n."""
    times = measure_times()
    return Chart(
        "lines",
        prose("time-curve", d=TIMED_SIZE),
        x=[float(n) for n in TIMED],
        series=[Series(name, list(times[kind])) for kind, name in NAMES.items()],
        x_label=prose("input-n"),
        log_x=True,
        log_y=True,
    )
