"""The Transformer as two ONNX graphs: the encoder, and the decoder with its key-value cache.

Encoder: src_ids (B, S) -> src_mask (B, S) and, for each decoder layer i, cross_key_i and
cross_value_i (B, H, S, K): the memory, projected once for all steps.

Decoder: ids (N, T), the encoder's outputs, and past_key_i, past_value_i (N, H, t, K) -> logits
(N, T, V) and key_i, value_i (N, H, t + T, K), the past of the next call. At first t is 0. A step
has T = 1; several new positions (a forced prefix, teacher forcing) are masked causally.
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
    from onnx import ModelProto, ValueInfoProto

    from attendo.model.attention import MultiHeadAttention
    from attendo.model.embeddings import ScaledEmbedding
    from attendo.model.layers import AddAndNorm, DecoderLayer, EncoderLayer
    from attendo.model.transformer import Transformer

LENGTHS = {"past": "past_length", "cross": "src_length"}


def build_encoder(model: Transformer) -> ModelProto:
    """Return the graph of the encoder: `Transformer.encode` and `start` in one."""
    graph, config = Graph(), model.config
    is_padding = graph.add("Equal", "src_ids", graph.add_constant(config.pad_id), name="is_padding")
    src_mask = graph.add("Not", is_padding, name="src_mask")
    mask = graph.add_unsqueeze(src_mask, 1, 2, name="mask")  # (B, 1, 1, S)
    length = graph.add_size("src_ids", 1, name="length")
    position_ids = graph.add(
        "Range", graph.add_constant(0), length, graph.add_constant(1), name="position_ids"
    )
    if config.attention_width is not None:
        near = _local_mask(graph, position_ids, position_ids, config.attention_width)
        mask = graph.add("And", mask, near, name="near_mask")  # (B, 1, S, S)
    x = _add_embedding(graph, model.src_embedding, "src_ids", name="src_embedding")
    x = add_positions(graph, model.src_positions, x, position_ids, name="src_positions")
    for number, layer in enumerate(model.encoder.layers):
        encoder_layer = cast("EncoderLayer", layer)
        x = _add_encoder_layer(
            graph, encoder_layer, x, mask, config.activation, name=f"encoder/{number}"
        )
    memory = add_norm(graph, model.encoder.final_norm, x, name="encoder/final_norm")
    for number, decoder_layer in enumerate(model.decoder.layers):
        attention = decoder_layer.cross_attention
        results = (f"cross_key_{number}", f"cross_value_{number}")
        _add_keys_values(
            graph, attention, memory, name=f"decoder/{number}/cross_attention", results=results
        )
    ids = value_info("src_ids", TensorProto.INT64, "batch", "src_length")
    cross = _describe_heads(model, ("cross_key", "cross_value"), rows="batch")
    return graph.to_model("encoder", [ids], [_describe_mask("batch"), *cross])


def build_decoder(model: Transformer) -> ModelProto:
    """Return the graph of the decoder: `Transformer.step`, for one or several new positions."""
    graph, config = Graph(), model.config
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
        x = _add_decoder_layer(
            graph, layer, x, (mask, cross_mask), config.activation, number=number
        )
    x = add_norm(graph, model.decoder.final_norm, x, name="decoder/final_norm")
    _add_output_projection(graph, model, x)
    ids = value_info("ids", TensorProto.INT64, "rows", "length")
    heads = ("past_key", "past_value", "cross_key", "cross_value")
    logits = value_info("logits", TensorProto.FLOAT, "rows", "length", model.tgt_vocab_size)
    return graph.to_model(
        "decoder",
        [ids, _describe_mask("rows"), *_describe_heads(model, heads, rows="rows")],
        [logits, *_describe_heads(model, ("key", "value"), rows="rows")],
    )


def _describe_mask(rows: str) -> ValueInfoProto:
    return value_info("src_mask", TensorProto.BOOL, rows, "src_length")


def _describe_heads(
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
    graph: Graph, layer: EncoderLayer, x: str, mask: str, activation: str, *, name: str
) -> str:
    attention_name = f"{name}/self_attention"
    normed = _add_pre_norm(graph, layer.self_add, x, name=f"{name}/self_add")
    keys, values = _add_keys_values(graph, layer.self_attention, normed, name=attention_name)
    attended = add_attention(
        graph, layer.self_attention, normed, keys, values, mask, name=attention_name
    )
    x = _add_residual_and_post_norm(graph, layer.self_add, x, attended, name=f"{name}/self_add")
    return _add_feed_forward_sublayer(graph, layer, x, activation, name=name)


def _add_decoder_layer(
    graph: Graph,
    layer: DecoderLayer,
    x: str,
    masks: tuple[str, str],
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
        graph, layer.self_attention, normed, keys, values, masks[0], name=attention_name
    )
    x = _add_residual_and_post_norm(graph, layer.self_add, x, attended, name=f"{name}/self_add")
    attention_name = f"{name}/cross_attention"
    memory = (f"cross_key_{number}", f"cross_value_{number}")
    normed = _add_pre_norm(graph, layer.cross_add, x, name=f"{name}/cross_add")
    attended = add_attention(
        graph, layer.cross_attention, normed, *memory, masks[1], name=attention_name
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


def _add_output_projection(graph: Graph, model: Transformer, x: str) -> None:
    """Add the output projection; a matrix tied to the embedding is stored once."""
    transposed = None
    if model.output.weight is model.tgt_embedding.weight:
        table = graph.add_weight("tgt_embedding.weight", model.tgt_embedding.weight)
        transposed = graph.add("Transpose", table, name="output/turned", perm=[1, 0])
    add_linear(graph, model.output, x, name="logits", matrix=transposed)
