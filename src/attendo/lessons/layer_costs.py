"""The numbers and charts of lesson 15: operations by the table, paths by gradients, time by a clock.

Operations are counted by the formulas of the paper's Table 1; paths and waiting are found by
`attendo.inspection.receptive_field`; seconds are measured where the lesson runs.
"""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
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
from attendo.lessons.blocks import Chart, LocalizedText, Series
from attendo.model.attention import MultiHeadAttention
from attendo.model.fast.local_attention import LocalPattern
from attendo.model.masks import local_mask

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.inspection.receptive_field import Layer

NAMES = {
    "attention": LocalizedText("self-attention", "셀프 어텐션"),
    "recurrent": LocalizedText("recurrent", "순환"),
    "convolution": LocalizedText("convolution", "합성곱"),
    "restricted": LocalizedText("restricted attention", "제한된 어텐션"),
}
FORMULAS = {
    "attention": ("n² · d", "1", "1"),
    "recurrent": ("n · d²", "n", "n"),
    "convolution": ("k · n · d²", "1", "log_k n"),
    "restricted": ("r · n · d", "1", "n / r"),
}
"""Table 1 of the paper: operations, steps that must wait, longest path."""
LENGTHS = tuple(2**power for power in range(4, 13))
TIMED = (16, 32, 64, 128, 256, 512)
TIMED_SIZE, TIMED_HEADS, NUM_ROUNDS = 64, 4, 3
SEEN_WORDS, APART = 9, 4
SMALL = 4
"""d_model of the layers whose reach is found."""
D, K, R = 512, 3, 32
SEED = 1


def count_operations(kind: str, n: int, d: int, k: int = K, r: int = R) -> int:
    """Count multiplications of one layer as Table 1 does.

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


def find_crossing(kind: str, d: int, k: int = K, r: int = R) -> int:
    """Give the n from which on self-attention does as much as another kind, or more."""
    if kind == "restricted":
        return r
    return count_operations(kind, 1, d, k, r) // d  # the others grow with n, attention with n²


def operations_curve(d: int = D, k: int = K, r: int = R) -> Chart:
    """Draw the operations of each kind of layer over n."""
    return Chart(
        "lines",
        LocalizedText(
            f"million operations of one layer, d = {d}", f"층 하나의 연산 수(백만), d = {d}"
        ),
        x=[float(n) for n in LENGTHS],
        series=[
            Series(name, [count_operations(kind, n, d, k, r) / 1e6 for n in LENGTHS])
            for kind, name in NAMES.items()
        ],
        x_label=LocalizedText("n, words", "n, 단어 수"),
        log_x=True,
        log_y=True,
    )


def make_filter(k: int, *, dilation: int = 1, looks_back: bool = False) -> Layer:
    """Make a convolution of width k over positions, around each word or up to it."""
    conv = nn.Conv1d(SMALL, SMALL, k, dilation=dilation).double()
    whole = (k - 1) * dilation
    padding = (whole, 0) if looks_back else (whole // 2, whole - whole // 2)
    return lambda x: conv(F.pad(x.mT, padding)).mT


def make_attention(r: int | None = None) -> Layer:
    """Make self-attention, restricted to a width where one is given."""
    attention = MultiHeadAttention(SMALL, 2).double()

    def attend(x: Tensor) -> Tensor:
        mask = None if r is None else local_mask(x.size(1), r)
        mixed: Tensor = attention(x, x, x, mask)[0]
        return mixed

    return attend


@cache
def find_paths(n: int, k: int, r: int) -> dict[str, int]:
    """Find how many layers or states lie between the first word and the last, by gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)

        def count(make: Callable[[int], Layer]) -> int:
            return path_length(make, n, SMALL)

        return {
            "attention": count(lambda _: make_attention()),
            "recurrent": recurrent_path_length(nn.LSTM(SMALL, SMALL).double(), n),
            "convolution": count(lambda depth: make_filter(k, dilation=k**depth, looks_back=True)),
            "plain": count(lambda _: make_filter(k, looks_back=True)),
            "restricted": count(lambda _: make_attention(r)),
        }


@cache
def find_waiting(n: int) -> dict[str, int]:
    """Find how many steps must wait for one another in a layer, by gradients."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        x = torch.randn(1, n, SMALL, dtype=torch.float64)
        recurrent = nn.LSTM(SMALL, SMALL).double()
        layers = {
            "attention": make_attention(),
            "convolution": make_filter(3),
            "restricted": make_attention(3),
        }
        waiting = {
            name: sequential_operations(parallel_steps(one, x), n) for name, one in layers.items()
        }
        return {**waiting, "recurrent": sequential_operations(recurrent_steps(recurrent, x), n)}


@cache
def find_sight(k: int | None = None) -> Tensor:
    """Find which words (columns) each word (row) sees in a filter of width k, or in attention."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        layer = make_attention() if k is None else make_filter(k)
        return receptive_field(layer, SEEN_WORDS, SMALL)


@cache
def count_filters(k: int, apart: int = APART) -> int:
    """Find how many filters of width k must lie upon each other to see a word so far away."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(SEED)
        return path_length(lambda _: make_filter(k), apart + 1, SMALL)


@cache
def measure_times() -> dict[str, list[float]]:
    """Time one layer of each kind over n, in milliseconds: the best of some rounds."""
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
    layer(x)  # the first call prepares kernels
    best = float("inf")
    for _ in range(NUM_ROUNDS):
        start = perf_counter()
        layer(x)
        best = min(best, perf_counter() - start)
    return 1000.0 * best


def time_curve() -> Chart:
    """Draw the measured time of each kind of layer over n."""
    times = measure_times()
    return Chart(
        "lines",
        LocalizedText(
            f"milliseconds of one layer here, d = {TIMED_SIZE}",
            f"이 컴퓨터에서 층 하나에 걸린 시간(ms), d = {TIMED_SIZE}",
        ),
        x=[float(n) for n in TIMED],
        series=[Series(name, list(times[kind])) for kind, name in NAMES.items()],
        x_label=LocalizedText("n, words", "n, 단어 수"),
        log_x=True,
        log_y=True,
    )
