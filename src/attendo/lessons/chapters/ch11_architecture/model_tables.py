"""The tables of lesson 11: shapes at every stage, the sources of Q, K and V, parameters by part.

Everything is read off the modules of the model by hooks during a forward pass. The model is on the
meta device: its tensors have shapes but no data, so that any size takes neither memory nor time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import torch

from attendo.core.protocols import Memory
from attendo.lessons.blocks import Table
from attendo.lessons.projections import record_projections
from attendo.lessons.prose import Prose
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attendo.lessons.blocks import Label
    from attendo.model.attention import MultiHeadAttention
    from attendo.model.layers import EncoderLayer

    Stage = tuple[Label, str, Tensor]
    """The name of a stage, its shape in symbols, and its tensor."""

prose = Prose("attendo.lessons.chapters.ch11_architecture")


class ModuleIO(NamedTuple):
    """The first input and the first output of a module."""

    input: Tensor
    output: Tensor


class ForwardTrace(NamedTuple):
    """One forward pass: every module, and the attention weights of the first layers."""

    modules: dict[nn.Module, ModuleIO]
    projection_inputs: dict[tuple[nn.Module, str], Tensor]
    """The inputs of "query", "key" and "value" of every attention."""
    memory: Tensor  # (B, S, D)
    encoder_self: Tensor  # (B, H, S, S)
    decoder_self: Tensor  # (B, H, T, T)
    cross: Tensor  # (B, H, T, S)


def build_meta_model(preset: str, vocab_size: int, num_layers: int = 6) -> Transformer:
    """Return a model of a named size on the meta device."""
    with torch.device("meta"):
        model = Transformer.from_preset(preset, vocab_size=vocab_size, num_layers=num_layers)
    return model.eval()


def trace_forward(
    model: Transformer, batch: int, source_length: int, target_length: int
) -> ForwardTrace:
    """Return a trace of a forward pass; `Transformer.explain` would read the values of the ids."""
    src_ids, tgt_ids = (
        torch.zeros(batch, length, dtype=torch.long, device="meta")
        for length in (source_length, target_length)
    )
    src_mask, tgt_mask = (
        torch.ones_like(ids, dtype=torch.bool)[:, None] for ids in (src_ids, tgt_ids)
    )
    modules: dict[nn.Module, ModuleIO] = {}
    projection_inputs: dict[tuple[nn.Module, str], Tensor] = {}

    def record_projection(attention: MultiHeadAttention, matrix: str, x: Tensor) -> None:
        projection_inputs[attention, matrix] = x

    def record_module(
        module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor | tuple[Tensor]
    ) -> None:
        if inputs:
            first = output[0] if isinstance(output, tuple) else output
            modules[module] = ModuleIO(inputs[0], first)

    hooks = [module.register_forward_hook(record_module) for module in model.modules()]
    try:
        with record_projections(model, record_projection):
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
    return ForwardTrace(
        modules, projection_inputs, memory, encoder_self[0], decoder_self[0], cross[0]
    )


def encoder_shape_table(model: Transformer, trace: ForwardTrace) -> Table:
    """Return the shape at every stage of the encoder."""
    modules, layer = trace.modules, cast("EncoderLayer", model.encoder.layers[0])
    attention, inner = layer.self_attention, layer.feed_forward.inner
    x = modules[layer].input
    stages: list[Stage] = [
        (prose("stage-source-ids"), "(B, S)", x[..., 0]),
        (prose("stage-input"), "(B, S, D)", x),
        (prose("stage-queries"), "(B, H, S, K)", _split_heads(attention, x)),
        (prose("stage-weights"), "(B, H, S, S)", trace.encoder_self),
        (prose("stage-output"), "(B, S, D)", modules[attention.output].output),
        (prose("stage-hidden"), "(B, S, F)", modules[inner].output),
        (prose("stage-feed-forward"), "(B, S, D)", modules[layer.feed_forward].output),
        (prose("stage-all-layers"), "(B, S, D)", trace.memory),
    ]
    return _shape_table(prose("encoder"), stages)


def decoder_shape_table(model: Transformer, trace: ForwardTrace) -> Table:
    """Return the shape at every stage of the decoder."""
    modules, layer = trace.modules, model.decoder.layers[0]
    cross, inner = layer.cross_attention, layer.feed_forward.inner
    queries, keys = (trace.projection_inputs[cross, matrix] for matrix in ("query", "key"))
    x = modules[layer].input
    stages: list[Stage] = [
        (prose("stage-target-ids"), "(B, T)", x[..., 0]),
        (prose("stage-input"), "(B, T, D)", x),
        (prose("stage-masked-weights"), "(B, H, T, T)", trace.decoder_self),
        (prose("stage-cross-queries"), "(B, H, T, K)", _split_heads(cross, queries)),
        (prose("stage-cross-keys"), "(B, H, S, K)", _split_heads(cross, keys)),
        (prose("stage-cross-weights"), "(B, H, T, S)", trace.cross),
        (prose("stage-hidden"), "(B, T, F)", modules[inner].output),
        (prose("stage-all-layers"), "(B, T, D)", modules[model.output].input),
        (prose("stage-logits"), "(B, T, V)", modules[model.output].output),
    ]
    return _shape_table(prose("decoder"), stages)


def _shape_table(title: Label, stages: list[Stage]) -> Table:
    return Table(
        [prose("stage"), prose("symbols"), prose("measured")],
        [
            [name, symbols, f"({', '.join(map(str, tensor.shape))})"]
            for name, symbols, tensor in stages
        ],
        title=title,
    )


def _split_heads(attention: MultiHeadAttention, x: Tensor) -> Tensor:
    """Return the keys by head; queries and values have the same shape."""
    return attention.project_key_value(x, x)[0]


def attention_source_table(model: Transformer, trace: ForwardTrace) -> Table:
    """Return the inputs of queries, keys and values of the three kinds of attention."""
    encoder = cast("EncoderLayer", model.encoder.layers[-1])
    decoder = model.decoder.layers[-1]
    padding = prose("masks-padding")
    future = prose("masks-future")
    kinds: list[tuple[Label, MultiHeadAttention, nn.Module, Label]] = [
        (prose("encoder-self"), encoder.self_attention, encoder, padding),
        (prose("decoder-self"), decoder.self_attention, decoder, future),
        (prose("cross-attention"), decoder.cross_attention, decoder, padding),
    ]
    sources = [prose("source-of", letter=letter) for letter in "QKV"]
    return Table(
        [prose("attention"), *sources, prose("masked")],
        [
            [
                name,
                *(
                    _name_source(trace, layer, trace.projection_inputs[attention, matrix])
                    for matrix in ("query", "key", "value")
                ),
                masked,
            ]
            for name, attention, layer, masked in kinds
        ],
    )


def _name_source(trace: ForwardTrace, layer: nn.Module, x: Tensor) -> Label:
    """Return the name of a tensor that was projected."""
    names = {
        id(trace.modules[layer.get_submodule("self_add.norm")].output): prose("from-decoder-self"),
        id(trace.modules[layer].input): prose("from-layer-below"),
        id(trace.memory): prose("from-encoder"),
    }
    return names[id(x)]


def count_layers_reading_memory(model: Transformer, trace: ForwardTrace) -> int:
    """Return the number of decoder layers whose cross-attention reads the last encoder output."""
    return sum(
        all(
            trace.projection_inputs[attention, matrix] is trace.memory
            for matrix in ("key", "value")
        )
        for attention in (layer.cross_attention for layer in model.decoder.layers)
    )


def parameter_table(model: Transformer) -> Table:
    """Return the parameters by part; shared ones count in the first part that uses them."""
    rows: list[list[Label | float | int | None]] = []
    counted: set[int] = set()
    total = model.num_parameters()
    for name, modules in _list_parts(model):
        counts = [_count_new(module, counted) for module in modules]
        sizes = [count for count in counts if count]  # sinusoidal positions have none
        if sizes:
            rows.append([name, sizes[0], len(sizes), sum(sizes), f"{sum(sizes) / total:.2%}"])
    rows.append([prose("total"), None, None, total, "100.00%"])
    title = prose("parameters-by-part")
    return Table(
        [prose("part"), prose("per-copy"), prose("copies"), prose("parameters"), prose("fraction")],
        rows,
        title=title,
    )


def _list_parts(model: Transformer) -> list[tuple[Label, list[nn.Module]]]:
    return [
        (prose("embedding"), [model.src_embedding]),
        (prose("target-embedding"), [model.tgt_embedding]),
        (prose("positions"), [model.src_positions, model.tgt_positions]),
        *_list_stack(model.encoder, prose("encoder")),
        *_list_stack(model.decoder, prose("decoder")),
        (prose("output"), [model.output]),
    ]


def _list_stack(stack: nn.Module, side: Label) -> list[tuple[Label, list[nn.Module]]]:
    """Return the parts of one side by name, all layers of each."""
    parts = {
        "self_attention": prose("self-attention"),
        "cross_attention": prose("cross-attention"),
        "feed_forward": prose("feed-forward"),
        "norm": prose("layer-norm"),
    }
    named = list(stack.named_modules())
    return [
        (
            prose("part-of-stack", side=side, part=part),
            [
                module
                for path, module in named
                if path.split(".")[-1] in (ending, f"final_{ending}")
            ],
        )
        for ending, part in parts.items()
    ]


def _count_new(module: nn.Module, counted: set[int]) -> int:
    """Return the number of parameters of a part that were not counted yet, and mark them."""
    new = [weight for weight in module.parameters() if id(weight) not in counted]
    counted.update(map(id, new))
    return sum(weight.numel() for weight in new)
