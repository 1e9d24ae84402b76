"""The Transformer as two ONNX graphs: the encoder, and the decoder with its key-value cache.

Encoder: src_ids (B, S) -> src_mask (B, S) and, for each decoder layer i, cross_key_i and
cross_value_i (B, H, S, K): the memory, projected once for all steps.

Decoder: ids (N, T), the encoder's outputs, and past_key_i, past_value_i (N, H, t, K) -> logits
(N, T, V) and key_i, value_i (N, H, t + T, K), the past of the next call. At first t is 0. A step
has T = 1; several new positions (a forced prefix, teacher forcing) are masked causally.

With `has_attention`, the weights of every layer i are outputs too: attention/encoder_self_i
(B, H, S, S), attention/decoder_self_i (N, H, T, t + T) and attention/cross_i (N, H, T, S).
Heads can then be switched off: encoder_self_heads, decoder_self_heads and cross_heads (layers, H)
are inputs, 1 for a head that takes part and 0 for one that does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from onnx import TensorProto

from attendo.interop.onnx.graph import (
    Graph,
    add_attention,
    add_feed_forward,
    add_heads,
    add_linear,
    add_norm,
    add_positions,
    value_info,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from onnx import ModelProto, ValueInfoProto
    from torch import nn

    from attendo.model.attention import MultiHeadAttention
    from attendo.model.embeddings import ScaledEmbedding
    from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
    from attendo.model.transformer import Transformer

ATTENTION = "attention/"
"""The beginning of the names of the outputs with attention weights."""
HEADS = "_heads"
"""The end of the names of the inputs that switch heads on and off."""
DECODER_KINDS = ("decoder_self", "cross")
LENGTHS = {"past": "past_length", "cross": "src_length"}


def build_encoder(model: Transformer, *, has_attention: bool = False) -> ModelProto:
    """Return the graph of the encoder: `Transformer.encode` and `start` in one."""
    graph, config = Graph(), model.config
    is_padding = graph.add("Equal", "src_ids", graph.add_constant(config.pad_id), name="is_padding")
    src_mask = graph.add("Not", is_padding, name="src_mask")
    memory = add_encoder(graph, model, "src_ids", src_mask, has_head_masks=has_attention)
    add_cross_keys_values(graph, model, memory)
    ids = value_info("src_ids", TensorProto.INT64, "batch", "src_length")
    cross = describe_heads(model, ("cross_key", "cross_value"), rows="batch")
    weights = _describe_attention(graph, model.encoder.layers) if has_attention else []
    inputs = [ids, *(_describe_heads_on(model, ("encoder_self",)) if has_attention else [])]
    return graph.to_model("encoder", inputs, [_describe_mask("batch"), *cross, *weights])


def add_encoder(
    graph: Graph, model: Transformer, src_ids: str, src_mask: str, *, has_head_masks: bool = False
) -> str:
    """Add the encoder; return the memory (B, S, D)."""
    config = model.config
    mask = graph.add_unsqueeze(src_mask, 1, 2, name="mask")  # (B, 1, 1, S)
    length = graph.add_size(src_ids, 1, name="length")
    position_ids = graph.add(
        "Range", graph.add_constant(0), length, graph.add_constant(1), name="position_ids"
    )
    if config.attention_width is not None:
        near = _local_mask(graph, position_ids, position_ids, config.attention_width)
        mask = graph.add("And", mask, near, name="near_mask")  # (B, 1, S, S)
    x = _add_embedding(graph, model.src_embedding, src_ids, name="src_embedding")
    x = add_positions(graph, model.src_positions, x, position_ids, name="src_positions")
    for number, layer in enumerate(model.encoder.layers):
        encoder_layer = cast("EncoderLayer", layer)
        switches = _select_heads(graph, ("encoder_self",), number) if has_head_masks else (None,)
        x = _add_encoder_layer(
            graph, encoder_layer, x, mask, switches, config.activation, number=number
        )
    return add_norm(graph, model.encoder.final_norm, x, name="encoder/final_norm")


def add_cross_keys_values(graph: Graph, model: Transformer, memory: str) -> None:
    """Add the keys and values of the memory for each decoder layer: cross_key_i, cross_value_i."""
    for number, decoder_layer in enumerate(model.decoder.layers):
        attention = decoder_layer.cross_attention
        results = (f"cross_key_{number}", f"cross_value_{number}")
        _add_keys_values(
            graph, attention, memory, name=f"decoder/{number}/cross_attention", results=results
        )


def build_decoder(
    model: Transformer, *, has_attention: bool = False, shares_projection: bool = True
) -> ModelProto:
    """Return the graph of the decoder: `Transformer.step`, for one or several new positions.

    With `shares_projection=False` an output projection that is tied to the embedding is stored a
    second time, transposed: a product of 8-bit integers needs it so.
    """
    graph = Graph()
    add_decoder(graph, model, has_head_masks=has_attention, shares_projection=shares_projection)
    ids = value_info("ids", TensorProto.INT64, "rows", "length")
    heads = ("past_key", "past_value", "cross_key", "cross_value")
    logits = value_info("logits", TensorProto.FLOAT, "rows", "length", model.tgt_vocab_size)
    return graph.to_model(
        "decoder",
        [
            ids,
            _describe_mask("rows"),
            *describe_heads(model, heads, rows="rows"),
            *(_describe_heads_on(model, DECODER_KINDS) if has_attention else []),
        ],
        [
            logits,
            *describe_heads(model, ("key", "value"), rows="rows"),
            *(_describe_attention(graph, model.decoder.layers) if has_attention else []),
        ],
    )


def add_decoder(
    graph: Graph, model: Transformer, *, has_head_masks: bool = False, shares_projection: bool
) -> None:
    """Add the decoder, whose inputs and outputs have the names of `build_decoder`."""
    config = model.config
    past = graph.add_size("past_key_0", 2, name="past")
    total = graph.add("Add", past, graph.add_size("ids", 1, name="length"), name="total")
    position_ids = graph.add(
        "Range", past, total, graph.add_constant(1), name="position_ids"
    )  # (T,)
    key_positions = graph.add(
        "Range", graph.add_constant(0), total, graph.add_constant(1), name="seen"
    )  # (t + T,)
    rows = graph.add_unsqueeze(position_ids, 1, name="rows")
    mask = graph.add("GreaterOrEqual", rows, key_positions, name="mask")  # (T, t + T)
    if config.attention_width is not None:
        near = _local_mask(graph, position_ids, key_positions, config.attention_width)
        mask = graph.add("And", mask, near, name="near_mask")
    cross_mask = graph.add_unsqueeze("src_mask", 1, 2, name="cross_mask")  # (N, 1, 1, S)
    x = _add_embedding(graph, model.tgt_embedding, "ids", name="tgt_embedding")
    x = add_positions(graph, model.tgt_positions, x, position_ids, name="tgt_positions")
    for number, layer in enumerate(model.decoder.layers):
        switches = _select_heads(graph, DECODER_KINDS, number) if has_head_masks else (None, None)
        x = _add_decoder_layer(
            graph, layer, x, (mask, cross_mask), switches, config.activation, number=number
        )
    x = add_norm(graph, model.decoder.final_norm, x, name="decoder/final_norm")
    _add_output_projection(graph, model, x, is_shared=shares_projection)


def _describe_mask(rows: str) -> ValueInfoProto:
    return value_info("src_mask", TensorProto.BOOL, rows, "src_length")


def describe_heads(
    model: Transformer, kinds: tuple[str, ...], *, rows: str
) -> list[ValueInfoProto]:
    """Return the shapes of keys and values, layer by layer."""
    described = []
    for number, layer in enumerate(model.decoder.layers):
        attention = layer.cross_attention
        for kind in kinds:
            part = attention.key if kind.endswith("key") else attention.value
            length = LENGTHS.get(kind.partition("_")[0], "total_length")
            size = part.out_features // attention.num_heads
            shape = (rows, attention.num_heads, length, size)
            described.append(value_info(f"{kind}_{number}", TensorProto.FLOAT, *shape))
    return described


def _describe_attention(graph: Graph, layers: Iterable[nn.Module]) -> list[ValueInfoProto]:
    """Return the shapes of the attention weights."""
    num_heads = cast("EncoderLayer", next(iter(layers))).self_attention.num_heads
    sizes = {
        "encoder_self": ("batch", num_heads, "src_length", "src_length"),
        "decoder_self": ("rows", num_heads, "length", "total_length"),
        "cross": ("rows", num_heads, "length", "src_length"),
    }
    return [
        value_info(name, TensorProto.FLOAT, *sizes[name.removeprefix(ATTENTION).rpartition("_")[0]])
        for name in graph.attention
    ]


def _describe_heads_on(model: Transformer, kinds: tuple[str, ...]) -> list[ValueInfoProto]:
    """Return the inputs that switch heads on and off."""
    side = model.encoder if kinds == ("encoder_self",) else model.decoder
    num_heads = cast("EncoderLayer", side.layers[0]).self_attention.num_heads
    return [
        value_info(f"{kind}{HEADS}", TensorProto.FLOAT, len(side.layers), num_heads)
        for kind in kinds
    ]


def _select_heads(graph: Graph, kinds: tuple[str, ...], layer: int) -> tuple[str, ...]:
    """Return the numbers of the heads of one layer, (H, 1, 1) for each kind of attention."""
    names = []
    for kind in kinds:
        name = f"{kind}{HEADS}/{layer}"
        row = graph.add("Gather", f"{kind}{HEADS}", graph.add_constant([layer]), name=f"{name}/row")
        names.append(graph.add("Reshape", row, graph.add_constant([-1, 1, 1]), name=name))
    return tuple(names)


def _local_mask(graph: Graph, position_ids: str, key_positions: str, width: int) -> str:
    """Add the mask of local attention: (T, t + T)."""
    column = graph.add_unsqueeze(position_ids, 1, name="near/column")
    difference = graph.add("Sub", column, key_positions, name="near/difference")
    distance = graph.add("Abs", difference, name="near/distance")
    return graph.add("LessOrEqual", distance, graph.add_constant(width // 2), name="near")


def _add_embedding(graph: Graph, embedding: ScaledEmbedding, ids: str, *, name: str) -> str:
    vectors = graph.add(
        "Gather", graph.add_weight(f"{name}.weight", embedding.weight), ids, name=f"{name}/vectors"
    )
    return graph.add("Mul", vectors, graph.add_constant(embedding.scale, np.float32), name=name)


def _add_encoder_layer(
    graph: Graph,
    layer: EncoderLayer,
    x: str,
    mask: str,
    head_masks: tuple[str | None, ...],
    activation: str,
    *,
    number: int,
) -> str:
    name = f"encoder/{number}"
    attention_name = f"{name}/self_attention"
    normed = _add_pre_norm(graph, layer.self_add, x, name=f"{name}/self_add")
    keys, values = _add_keys_values(graph, layer.self_attention, normed, name=attention_name)
    attended = add_attention(
        graph,
        layer.self_attention,
        normed,
        keys,
        values,
        mask,
        name=attention_name,
        weights_name=f"{ATTENTION}encoder_self_{number}",
        head_mask=head_masks[0],
    )
    x = _add_residual_and_post_norm(graph, layer.self_add, x, attended, name=f"{name}/self_add")
    return _add_feed_forward_sublayer(graph, layer, x, activation, name=name)


def _add_decoder_layer(
    graph: Graph,
    layer: DecoderLayer,
    x: str,
    masks: tuple[str, str],
    head_masks: tuple[str | None, ...],
    activation: str,
    *,
    number: int,
) -> str:
    name = f"decoder/{number}"
    attention_name = f"{name}/self_attention"
    normed = _add_pre_norm(graph, layer.self_add, x, name=f"{name}/self_add")
    new_keys_values = _add_keys_values(graph, layer.self_attention, normed, name=attention_name)
    keys, values = (
        graph.add("Concat", f"past_{kind}_{number}", new, name=f"{kind}_{number}", axis=2)
        for kind, new in zip(("key", "value"), new_keys_values, strict=True)
    )  # (N, H, t + T, K)
    attended = add_attention(
        graph,
        layer.self_attention,
        normed,
        keys,
        values,
        masks[0],
        name=attention_name,
        weights_name=f"{ATTENTION}decoder_self_{number}",
        head_mask=head_masks[0],
    )
    x = _add_residual_and_post_norm(graph, layer.self_add, x, attended, name=f"{name}/self_add")
    attention_name = f"{name}/cross_attention"
    memory = (f"cross_key_{number}", f"cross_value_{number}")
    normed = _add_pre_norm(graph, layer.cross_add, x, name=f"{name}/cross_add")
    attended = add_attention(
        graph,
        layer.cross_attention,
        normed,
        *memory,
        masks[1],
        name=attention_name,
        weights_name=f"{ATTENTION}cross_{number}",
        head_mask=head_masks[1],
    )
    x = _add_residual_and_post_norm(graph, layer.cross_add, x, attended, name=f"{name}/cross_add")
    return _add_feed_forward_sublayer(graph, layer, x, activation, name=name)


def _add_feed_forward_sublayer(
    graph: Graph, layer: EncoderLayer | DecoderLayer, x: str, activation: str, *, name: str
) -> str:
    add, sublayer_name = layer.feed_forward_add, f"{name}/feed_forward"
    normed = _add_pre_norm(graph, add, x, name=f"{sublayer_name}_add")
    transformed = add_feed_forward(
        graph, layer.feed_forward, normed, activation, name=sublayer_name
    )
    return _add_residual_and_post_norm(graph, add, x, transformed, name=f"{sublayer_name}_add")


def _add_keys_values(
    graph: Graph,
    attention: MultiHeadAttention,
    x: str,
    *,
    name: str,
    results: tuple[str | None, str | None] = (None, None),
) -> tuple[str, str]:
    """Add the keys and values of x, (B, H, S, K) each."""
    num_heads = attention.num_heads
    keys = add_heads(graph, attention.key, x, num_heads, name=f"{name}/key", result=results[0])
    return keys, add_heads(
        graph, attention.value, x, num_heads, name=f"{name}/value", result=results[1]
    )


def _add_pre_norm(graph: Graph, add: AddAndNorm, x: str, *, name: str) -> str:
    return add_norm(graph, add.norm, x, name=f"{name}/norm") if add.is_pre_norm else x


def _add_residual_and_post_norm(
    graph: Graph, add: AddAndNorm, x: str, transformed: str, *, name: str
) -> str:
    added = graph.add("Add", x, transformed, name=name) if add.has_residual else transformed
    return added if add.is_pre_norm else add_norm(graph, add.norm, added, name=f"{name}/norm")


def _add_output_projection(graph: Graph, model: Transformer, x: str, *, is_shared: bool) -> None:
    """Add the output projection; a shared matrix that is tied to the embedding is stored once."""
    transposed = None
    if is_shared and model.output.weight is model.tgt_embedding.weight:
        table = graph.add_weight("tgt_embedding.weight", model.tgt_embedding.weight)
        transposed = graph.add("Transpose", table, name="output/turned", perm=[1, 0])
    add_linear(graph, model.output, x, name="logits", matrix=transposed)
