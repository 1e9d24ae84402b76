"""What lesson 11 measures: shapes at every stage, where Q, K and V come from, parameters by part.

All is read off the model's own modules by hooks while ids pass through it. The model lies on the
meta device: its tensors have shapes and no numbers, so that any size takes neither memory nor time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import torch

from attendo.core.protocols import Memory
from attendo.lessons.blocks import LocalizedText, Table
from attendo.lessons.projections import watching
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attendo.lessons.blocks import Label
    from attendo.model.attention import MultiHeadAttention
    from attendo.model.layers import EncoderLayer

    Stage = tuple[str, str, str, Tensor]
    """Its name in both languages, its shape in letters, and what was measured."""


class Seen(NamedTuple):
    """What went into a module first, and what came out first."""

    given: Tensor
    result: Tensor


class Journey(NamedTuple):
    """One pass: every module, and the attention weights of the first layers."""

    seen: dict[nn.Module, Seen]
    fed: dict[tuple[nn.Module, str], Tensor]
    """What went into "query", "key" and "value" of every attention."""
    memory: Tensor  # (B, S, D)
    encoder_self: Tensor  # (B, H, S, S)
    decoder_self: Tensor  # (B, H, T, T)
    cross: Tensor  # (B, H, T, S)


def build(preset: str, vocab_size: int) -> Transformer:
    """Build a model of a named size that has shapes but no numbers."""
    with torch.device("meta"):
        return Transformer.from_preset(preset, vocab_size=vocab_size).eval()


def send(model: Transformer, batch: int, source_length: int, target_length: int) -> Journey:
    """Pass ids through the model as `Transformer.explain` does, which would look at their values."""
    src_ids, tgt_ids = (
        torch.zeros(batch, length, dtype=torch.long, device="meta")
        for length in (source_length, target_length)
    )
    src_mask, tgt_mask = (
        torch.ones_like(ids, dtype=torch.bool)[:, None] for ids in (src_ids, tgt_ids)
    )
    seen: dict[nn.Module, Seen] = {}
    fed: dict[tuple[nn.Module, str], Tensor] = {}

    def note_fed(attention: MultiHeadAttention, matrix: str, x: Tensor) -> None:
        fed[attention, matrix] = x

    def note(module: nn.Module, given: tuple[Tensor, ...], result: Tensor | tuple[Tensor]) -> None:
        if given:
            seen[module] = Seen(given[0], result[0] if isinstance(result, tuple) else result)

    hooks = [module.register_forward_hook(note) for module in model.modules()]
    try:
        with watching(model, note_fed):
            x = model.src_positions(model.src_embedding(src_ids))
            memory, encoder_self = model.encoder(x, src_mask, need_weights=True)
            x = model.tgt_positions(model.tgt_embedding(tgt_ids))
            x, decoder_self, cross = model.decoder(
                x, Memory(memory, src_mask), tgt_mask, need_weights=True
            )
            model.output(x)
    finally:
        for hook in hooks:
            hook.remove()
    return Journey(seen, fed, memory, encoder_self[0], decoder_self[0], cross[0])


def shapes_of_encoder(model: Transformer, journey: Journey) -> Table:
    """Tell the shape at every stage of the encoder."""
    seen, layer = journey.seen, cast("EncoderLayer", model.encoder.layers[0])
    attention, inner = layer.self_attention, layer.feed_forward.inner
    x = seen[layer].given
    stages = [
        ("source ids", "원문 번호", "(B, S)", x[..., 0]),
        ("embedding + position", "임베딩 + 위치", "(B, S, D)", x),
        ("queries, by head", "쿼리, 헤드별", "(B, H, S, K)", _split(attention, x)),
        ("attention weights", "어텐션 가중치", "(B, H, S, S)", journey.encoder_self),
        (
            "heads joined, times W_O",
            "헤드를 이어 W_O와 곱함",
            "(B, S, D)",
            seen[attention.output].result,
        ),
        ("feed-forward, inside", "피드포워드 안쪽", "(B, S, F)", seen[inner].result),
        ("feed-forward, out", "피드포워드 출력", "(B, S, D)", seen[layer.feed_forward].result),
        ("after all layers", "모든 층을 지난 뒤", "(B, S, D)", journey.memory),
    ]
    return _make_shape_table(LocalizedText("encoder", "인코더"), stages)


def shapes_of_decoder(model: Transformer, journey: Journey) -> Table:
    """Tell the shape at every stage of the decoder."""
    seen, layer = journey.seen, model.decoder.layers[0]
    cross, inner = layer.cross_attention, layer.feed_forward.inner
    x, asking, answering = seen[layer].given, journey.fed[cross, "query"], journey.fed[cross, "key"]
    stages = [
        ("target ids", "번역문 번호", "(B, T)", x[..., 0]),
        ("embedding + position", "임베딩 + 위치", "(B, T, D)", x),
        ("masked self-attention weights", "가려진 셀프 어텐션 가중치", "(B, H, T, T)", journey.decoder_self),
        ("cross-attention queries", "교차 어텐션 쿼리", "(B, H, T, K)", _split(cross, asking)),
        ("cross-attention keys", "교차 어텐션 키", "(B, H, S, K)", _split(cross, answering)),
        ("cross-attention weights", "교차 어텐션 가중치", "(B, H, T, S)", journey.cross),
        ("feed-forward, inside", "피드포워드 안쪽", "(B, T, F)", seen[inner].result),
        ("after all layers", "모든 층을 지난 뒤", "(B, T, D)", seen[model.output].given),
        ("logits", "로짓(logit)", "(B, T, V)", seen[model.output].result),
    ]  # fmt: skip
    return _make_shape_table(LocalizedText("decoder", "디코더"), stages)


def _make_shape_table(title: LocalizedText, stages: list[Stage]) -> Table:
    return Table(
        [
            LocalizedText("stage", "단계"),
            LocalizedText("letters", "기호"),
            LocalizedText("measured", "측정"),
        ],
        [
            [LocalizedText(english, korean), letters, f"({', '.join(map(str, tensor.shape))})"]
            for english, korean, letters, tensor in stages
        ],
        title=title,
    )


def _split(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """Project and cut into heads; keys here, whose shape is that of queries and values."""
    return attention.project_key_value(x, x)[0]


def sources_of_attention(model: Transformer, journey: Journey) -> Table:
    """Tell where queries, keys and values of the three kinds come from, by what entered them."""
    encoder = cast("EncoderLayer", model.encoder.layers[-1])
    decoder = model.decoder.layers[-1]
    padding = LocalizedText("source padding", "원문의 패딩")
    future = LocalizedText("the future, padding", "미래와 패딩")
    kinds: list[tuple[Label, MultiHeadAttention, nn.Module, Label]] = [
        (LocalizedText("encoder self", "인코더 셀프"), encoder.self_attention, encoder, padding),
        (LocalizedText("decoder self", "디코더 셀프"), decoder.self_attention, decoder, future),
        (
            LocalizedText("encoder-decoder", "인코더-디코더"),
            decoder.cross_attention,
            decoder,
            padding,
        ),
    ]
    froms = [LocalizedText(f"{letter} from", f"{letter}의 출처") for letter in "QKV"]
    return Table(
        [LocalizedText("attention", "어텐션"), *froms, LocalizedText("mask hides", "가리는 것")],
        [
            [
                name,
                *(
                    _name_source(journey, layer, journey.fed[attention, matrix])
                    for matrix in ("query", "key", "value")
                ),
                hidden,
            ]
            for name, attention, layer, hidden in kinds
        ],
    )


def _name_source(journey: Journey, layer: nn.Module, given: Tensor) -> LocalizedText:
    """Name the very tensor that was projected."""
    known = {
        id(journey.seen[layer.get_submodule("self_add.norm")].result): LocalizedText(
            "decoder self-attention", "디코더 셀프 어텐션"
        ),
        id(journey.seen[layer].given): LocalizedText("layer below", "바로 아래 층"),
        id(journey.memory): LocalizedText("encoder's last output", "인코더의 마지막 출력"),
    }
    return known[id(given)]


def count_fed_layers(model: Transformer, journey: Journey) -> int:
    """Count the decoder layers whose cross-attention reads the encoder's last output."""
    return sum(
        all(journey.fed[attention, matrix] is journey.memory for matrix in ("key", "value"))
        for attention in (layer.cross_attention for layer in model.decoder.layers)
    )


def parameters_by_part(model: Transformer) -> Table:
    """Count the parameters part by part; what is shared counts where it stands first."""
    rows: list[list[Label | float | int | None]] = []
    counted: set[int] = set()
    total = model.num_parameters()
    for name, modules in _list_parts(model):
        sizes = [_count_fresh(module, counted) for module in modules]
        real = [size for size in sizes if size]  # positions by sinusoids have none
        if real:
            rows.append([name, real[0], len(real), sum(real), f"{sum(real) / total:.2%}"])
    rows.append([LocalizedText("together", "모두"), None, None, total, "100.00%"])
    heads = [("part", "부분"), ("in one", "하나에"), ("how many", "개수")]
    heads += [("parameters", "매개변수"), ("share", "비율")]
    title = LocalizedText("parameters by part", "부분별 매개변수")
    return Table([LocalizedText(*head) for head in heads], rows, title=title)


def _list_parts(model: Transformer) -> list[tuple[Label, list[nn.Module]]]:
    return [
        (LocalizedText("embedding", "임베딩"), [model.src_embedding]),
        (LocalizedText("target embedding", "번역문 임베딩"), [model.tgt_embedding]),
        (LocalizedText("positions", "위치"), [model.src_positions, model.tgt_positions]),
        *_list_stack(model.encoder, LocalizedText("encoder", "인코더")),
        *_list_stack(model.decoder, LocalizedText("decoder", "디코더")),
        (LocalizedText("output", "출력"), [model.output]),
    ]


def _list_stack(stack: nn.Module, title: LocalizedText) -> list[tuple[Label, list[nn.Module]]]:
    """Name the parts of one side, layer after layer in each."""
    kinds = {
        "self_attention": LocalizedText("self-attention", "셀프 어텐션"),
        "cross_attention": LocalizedText("cross-attention", "교차 어텐션"),
        "feed_forward": LocalizedText("feed-forward", "피드포워드"),
        "norm": LocalizedText("layer norm", "층 정규화"),
    }
    named = list(stack.named_modules())
    return [
        (
            LocalizedText(f"{title.en}: {kind.en}", f"{title.ko}: {kind.ko}"),
            [
                module
                for path, module in named
                if path.split(".")[-1] in (ending, f"final_{ending}")
            ],
        )
        for ending, kind in kinds.items()
    ]


def _count_fresh(module: nn.Module, counted: set[int]) -> int:
    """Count the parameters of a part but for those that were counted before, and note them."""
    fresh = [weight for weight in module.parameters() if id(weight) not in counted]
    counted.update(map(id, fresh))
    return sum(weight.numel() for weight in fresh)
