"""What the key-value cache saves: the decoder's work counted with it and without it.

A layer of the paper's base model really runs, step by step, and every matrix product is counted;
the vectors that go into each of its matrices are counted. All layers have the same shapes, so one is
enough. Nothing is timed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from attendo.core.protocols import Memory
from attendo.lessons.blocks import Chart, LocalizedText, Series, Table
from attendo.lessons.projections import watching
from attendo.model.config import TransformerConfig
from attendo.model.decoder import Decoder
from attendo.model.layers import DecoderLayer

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor, nn

    from attendo.lessons.blocks import Label
    from attendo.model.attention import MultiHeadAttention

PARTS = {
    "self_attention.query": LocalizedText("self-attention: queries", "셀프 어텐션: 쿼리"),
    "self_attention.key": LocalizedText(
        "self-attention: keys (and values)", "셀프 어텐션: 키(와 값)"
    ),
    "cross_attention.query": LocalizedText("cross-attention: queries", "교차 어텐션: 쿼리"),
    "cross_attention.key": LocalizedText(
        "cross-attention: keys (and values)", "교차 어텐션: 키(와 값)"
    ),
    "feed_forward": LocalizedText("feed-forward", "피드포워드"),
}


class Work(NamedTuple):
    """What one way of decoding costs."""

    multiply_adds: list[int]
    """Of all layers, by step; what is done once stands in the first."""
    vectors: dict[str, int]
    """Vectors computed over all steps by each of `PARTS`, in one layer."""


class Comparison(NamedTuple):
    """Both ways for the same lengths."""

    cached: Work
    plain: Work
    kept: int
    """Numbers that the cache holds after the last step, in all layers."""


@lru_cache(maxsize=64)
def count_work(source_length: int, target_length: int) -> Comparison:
    """Decode so many words over a source of so many, with the cache and without."""
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

    def step(place: int) -> None:
        nonlocal state
        if not place:
            state = decoder.start(memory)
        _, state = decoder.step(words[:, place : place + 1], state)

    def run_all(place: int) -> None:
        read = words[:, : place + 1]
        decoder(read, memory, torch.ones(read.shape[:2], dtype=torch.bool)[:, None])

    cached, plain = (
        _watch(layer, way, target_length, config.num_layers) for way in (step, run_all)
    )
    kept = sum(tensor.numel() for tensor in state.layers[0]) * config.num_layers
    return Comparison(cached, plain, kept)


@torch.no_grad()  # inference mode would hide the products inside of linear layers
def _watch(
    layer: DecoderLayer, way: Callable[[int], None], target_length: int, num_layers: int
) -> Work:
    vectors = dict.fromkeys(PARTS, 0)
    names = {part: name for name, part in layer.named_modules()}

    def note(attention: MultiHeadAttention, matrix: str, x: Tensor) -> None:
        if matrix != "value":  # as many as keys
            vectors[f"{names[attention]}.{matrix}"] += x.size(1)

    def note_network(_: nn.Module, given: tuple[Tensor, ...], result: Tensor) -> None:
        vectors["feed_forward"] += result.size(1)

    hook = layer.feed_forward.register_forward_hook(note_network)
    counts = []
    with watching(layer, note):
        for place in range(target_length):
            with _Counter() as counter:
                way(place)
            counts.append(counter.num_operations // 2 * num_layers)  # a multiply and an add: two
    hook.remove()
    return Work(counts, vectors)


class _Counter(TorchDispatchMode):
    """Adds up the operations of all matrix products, by PyTorch's own table of costs.

    Its `FlopCounterMode` follows every module too, which takes longer than the products, and does
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


def work_by_step(*, source_length: int = 20, target_length: int = 20) -> Chart:
    """Draw the multiply-adds of each step, with the cache and without."""
    work = count_work(source_length, target_length)
    return Chart(
        "lines",
        LocalizedText("multiply-adds of a step, in millions", "단계마다의 곱셈-덧셈, 백만 번"),
        [float(step) for step in range(1, target_length + 1)],
        [
            Series(
                LocalizedText("without cache", "캐시 없음"),
                [n / 1e6 for n in work.plain.multiply_adds],
            ),
            Series(
                LocalizedText("with cache", "캐시 있음"),
                [n / 1e6 for n in work.cached.multiply_adds],
            ),
        ],
        x_label=LocalizedText("step", "단계"),
        y_label=LocalizedText("millions", "백만"),
    )


def vectors_by_part(*, source_length: int = 20, target_length: int = 20) -> Table:
    """Tell how many vectors each part of a layer computes over all steps."""
    work = count_work(source_length, target_length)
    rows: list[list[Label | float | int | None]] = [
        [name, work.plain.vectors[part], work.cached.vectors[part]] for part, name in PARTS.items()
    ]
    return Table(
        [
            LocalizedText("vectors computed in a layer", "층 하나가 계산하는 벡터"),
            LocalizedText("without cache", "캐시 없음"),
            LocalizedText("with cache", "캐시 있음"),
        ],
        rows,
    )
