"""What the key-value cache saves: the work of the decoder with and without it.

A layer of the paper's base model runs step by step; every matrix product and every vector that goes
into a matrix is counted. All layers have the same shapes, so one is enough. Nothing is timed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from attendo.core.protocols import Memory
from attendo.lessons.blocks import Chart, Series, Table
from attendo.lessons.projections import record_projections
from attendo.lessons.prose import Prose
from attendo.model.config import TransformerConfig
from attendo.model.decoder import Decoder
from attendo.model.layers import DecoderLayer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from attendo.lessons.blocks import Label
    from attendo.model.attention import MultiHeadAttention

prose = Prose("attendo.lessons.chapters.ch14_decoding")

PARTS = {
    "self_attention.query": prose("part-self-query"),
    "self_attention.key": prose("part-self-key"),
    "cross_attention.query": prose("part-cross-query"),
    "cross_attention.key": prose("part-cross-key"),
    "feed_forward": prose("part-feed-forward"),
}


class DecodingWork(NamedTuple):
    """The cost of decoding in one way."""

    multiply_adds: list[int]
    """Multiply-adds of all layers by step; work that is done once counts in the first."""
    vectors: dict[str, int]
    """Vectors that each of `PARTS` computes over all steps, in one layer."""


class CacheComparison(NamedTuple):
    """The cost with and without the cache for the same lengths."""

    cached: DecodingWork
    plain: DecodingWork
    num_cached: int
    """The number of values in the cache after the last step, in all layers."""


@lru_cache(maxsize=64)
def count_work(source_length: int, target_length: int) -> CacheComparison:
    """Return the cost of decoding with and without the cache."""
    config = TransformerConfig(vocab_size=1)
    with torch.random.fork_rng(devices=[]):
        layer = DecoderLayer(config.d_model, config.d_ff, config.num_heads, dropout=0.0)
    decoder = Decoder([layer]).eval()
    memory = Memory(
        torch.zeros(1, source_length, config.d_model),
        torch.ones(1, 1, source_length, dtype=torch.bool),
    )
    words = torch.zeros(1, target_length, config.d_model)
    state = decoder.start(memory)

    def step(position: int) -> None:
        nonlocal state
        if not position:
            state = decoder.start(memory)
        _, state = decoder.step(words[:, position : position + 1], state)

    def run_all(position: int) -> None:
        prefix = words[:, : position + 1]
        decoder(prefix, memory, torch.ones(prefix.shape[:2], dtype=torch.bool)[:, None])

    cached, plain = (
        _count_decoding(layer, run_step, target_length, config.num_layers)
        for run_step in (step, run_all)
    )
    num_cached = sum(tensor.numel() for tensor in state.layers[0]) * config.num_layers
    return CacheComparison(cached, plain, num_cached)


@torch.no_grad()  # inference mode would hide the products inside linear layers
def _count_decoding(
    layer: DecoderLayer, run_step: Callable[[int], None], target_length: int, num_layers: int
) -> DecodingWork:
    vectors = dict.fromkeys(PARTS, 0)
    names = {part: name for name, part in layer.named_modules()}

    def count_projection(attention: MultiHeadAttention, matrix: str, x: Tensor) -> None:
        if matrix != "value":  # there are as many values as keys
            vectors[f"{names[attention]}.{matrix}"] += x.size(1)

    def count_network(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        vectors["feed_forward"] += output.size(1)

    hook = layer.feed_forward.register_forward_hook(count_network)
    counts = []
    with record_projections(layer, count_projection):
        for position in range(target_length):
            with _Counter() as counter:
                run_step(position)
            counts.append(
                counter.num_operations // 2 * num_layers
            )  # one multiply-add is two operations
    hook.remove()
    return DecodingWork(counts, vectors)


class _Counter(TorchDispatchMode):
    """Count the operations of all matrix products with the cost table of PyTorch.

    Its `FlopCounterMode` also tracks every module, which takes longer than the products, and does
    not know the fused attention of CPUs.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.num_operations = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        kind = func.overloadpacket
        if kind is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            self.num_operations += sdpa_flop_count(*(tensor.shape for tensor in args[:3]))
        elif kind in flop_registry:
            self.num_operations += flop_registry[kind](*args, **(kwargs or {}), out_val=result)
        return result


def work_chart(*, source_length: int = 20, target_length: int = 20) -> Chart:
    """Plot the multiply-adds of each step, with and without the cache."""
    work = count_work(source_length, target_length)
    return Chart(
        "lines",
        prose("work-by-step"),
        [float(step) for step in range(1, target_length + 1)],
        [
            Series(prose("without-cache"), [n / 1e6 for n in work.plain.multiply_adds]),
            Series(prose("with-cache"), [n / 1e6 for n in work.cached.multiply_adds]),
        ],
        x_label=prose("step"),
        y_label=prose("millions"),
    )


def vector_table(*, source_length: int = 20, target_length: int = 20) -> Table:
    """Return how many vectors each part of a layer computes over all steps."""
    work = count_work(source_length, target_length)
    rows: list[list[Label | float | int | None]] = [
        [name, work.plain.vectors[part], work.cached.vectors[part]] for part, name in PARTS.items()
    ]
    return Table([prose("vectors-by-part"), prose("without-cache"), prose("with-cache")], rows)
