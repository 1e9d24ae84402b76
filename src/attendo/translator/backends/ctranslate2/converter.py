"""Converts a Transformer to CTranslate2: declares, fills, validates and writes a specification.

The weights are copied to `ctranslate2.specs.TransformerSpec`. Positions are written as a table,
whatever their layout; heads narrower than d_model / num_heads are padded with zeros, which changes
no sum. Models with options that CTranslate2 does not support are rejected, with all reasons.

Only NumPy computes here, so that a stored model is converted without PyTorch.
"""

from __future__ import annotations

import json
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from attendo.core.errors import ConfigError, InputError, MissingExtraError
from attendo.core.message import message
from attendo.core.run_folder import EXPORT_INDEX_FILES
from attendo.core.sinusoids import sinusoidal_table
from attendo.core.version import __version__
from attendo.model.config import TransformerConfig
from attendo.stored_model import StoredModel
from attendo.text.tokenizer import END_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import ModuleType

    from attendo.bundle import Bundle
    from attendo.stored_model import Array, Weights

    AnyModel = Bundle | StoredModel

Quantization = Literal["int8", "int8_bfloat16", "float16"]
QUANTIZATIONS: tuple[str, ...] = get_args(Quantization)
FORMAT_VERSION = 1
INFO_FILE = EXPORT_INDEX_FILES["ctranslate2"]
"""Facts that CTranslate2's format cannot hold: metadata and the number of positions."""
NUM_POSITIONS = 2048
"""The length of the table of sinusoidal positions, which have no limit in our model."""
ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "swish": "SWISH"}
POSITIONS = ("sinusoidal", "learned", "none")
SUPPORTED_OPTIONS = frozenset(
    {
        "vocab_size",
        "tgt_vocab_size",
        "d_model",
        "dropout",
        "tie_embeddings",
        "pad_id",
        "d_ff",
        "num_heads",
        "num_layers",
        "num_decoder_layers",
        "num_decoder_heads",
        "decoder_d_ff",
        "d_k",
        "d_v",
        "attention_dropout",
        "activation_dropout",
        "activation",
        "norm",
        "layer_norm_eps",
        "positions",
        "position_layout",
        "max_length",
        "scale",
        "bias",
        "output_bias",
        "scale_embeddings",
    }
)
"""Options that CTranslate2 supports; the functions below check the values of some."""


def import_ctranslate2() -> ModuleType:
    """Import CTranslate2, or raise an error that names the extra."""
    try:
        import ctranslate2  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingExtraError("ctranslate2", "ctranslate2") from None
    module: ModuleType = ctranslate2
    return module


def unsupported_reasons(model: AnyModel) -> list[str]:
    """Return every reason why a model cannot be converted; none if it can."""
    stored = StoredModel.of(model)
    config = stored.config
    if not isinstance(config, TransformerConfig):
        return [
            message("model kind '{kind}': only the Transformer can be converted", kind=stored.kind)
        ]
    reasons = [
        message("{name} = {value!r} is not supported", name=name, value=getattr(config, name))
        for name, field in type(config).model_fields.items()
        if name not in SUPPORTED_OPTIONS and getattr(config, name) != field.default
    ]
    if config.positions not in POSITIONS:
        reasons.append(
            message(
                "positions = '{positions}': only positions that are added are supported",
                positions=config.positions,
            )
        )
    if config.activation not in ACTIVATIONS:
        reasons.append(
            message(
                "{name} = {value!r} is not supported", name="activation", value=config.activation
            )
        )
    return reasons + _head_size_problems(config)


def _head_size_problems(config: TransformerConfig) -> list[str]:
    reasons = []
    for num_heads in sorted({config.num_heads, config.num_decoder_heads or config.num_heads}):
        widest = max(config.d_k or 0, config.d_v or 0)
        if config.d_model % num_heads:
            reasons.append(
                message(
                    "d_model = {d_model} is not divisible by {num_heads} heads",
                    d_model=config.d_model,
                    num_heads=num_heads,
                )
            )
        elif widest * num_heads > config.d_model:
            reasons.append(
                message(
                    "{num_heads} heads of {size}: the maximum is d_model / num_heads = {maximum}",
                    num_heads=num_heads,
                    size=widest,
                    maximum=config.d_model // num_heads,
                )
            )
    return reasons


def write(model: AnyModel, folder: Path, *, quantization: str | None = None) -> None:
    """Write a model to an empty folder; without a `quantization` the weights stay float32."""
    stored = StoredModel.of(model)
    reasons = unsupported_reasons(stored)
    if quantization is not None and quantization not in QUANTIZATIONS:
        reasons.append(
            message(
                "quantization '{quantization}' is not one of {known}",
                quantization=quantization,
                known=", ".join(QUANTIZATIONS),
            )
        )
    config = stored.config
    if reasons or not isinstance(config, TransformerConfig):
        raise ConfigError.from_reasons("CTranslate2", reasons)
    spec = _build_spec(config)
    _fill_spec(spec, config, stored.weights)
    _register_vocabulary(spec, stored)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    stored.tokenizer.save(folder)
    info = {
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "kind": stored.kind,
        "num_parameters": stored.num_parameters,
        "num_positions": count_positions(config),
        "quantization": quantization,
        "about": stored.about,
    }
    text = json.dumps(info, indent=2, ensure_ascii=False)
    (folder / INFO_FILE).write_text(text + "\n", encoding="utf-8")


def read_info(folder: Path) -> dict[str, Any]:
    """Read the file `attendo.json` that `write` creates."""
    hint = "export the model again"
    try:
        info: dict[str, Any] = json.loads((folder / INFO_FILE).read_text(encoding="utf-8"))
        version = int(info["format_version"])
        int(info["num_parameters"]), int(info["num_positions"]), dict(info["about"])
        info["quantization"]
    except (OSError, ValueError, KeyError, TypeError):
        reason = message(
            "{folder} is not a CTranslate2 folder of Attendo: cannot read {info_file}",
            folder=folder,
            info_file=INFO_FILE,
        )
        raise InputError(reason, hint=hint) from None
    if version > FORMAT_VERSION:
        reason = message(
            "{path} has format {version}; attendo {own} knows {known}",
            path=folder,
            version=version,
            own=__version__,
            known=FORMAT_VERSION,
        )
        raise InputError(reason, hint="update Attendo")
    return info


def count_positions(config: TransformerConfig) -> int:
    """Return the length of the table of positions."""
    return config.max_length if config.positions == "learned" else NUM_POSITIONS


def _build_spec(config: TransformerConfig) -> Any:
    import_ctranslate2()
    from ctranslate2.specs import (  # type: ignore[import-untyped]
        common_spec,
        transformer_spec,
    )

    options = {
        "pre_norm": config.norm == "pre",
        "activation": getattr(common_spec.Activation, ACTIVATIONS[config.activation]),
    }
    num_decoder_layers = config.num_decoder_layers or config.num_layers
    num_decoder_heads = config.num_decoder_heads or config.num_heads
    spec = transformer_spec.TransformerSpec(
        transformer_spec.TransformerEncoderSpec(config.num_layers, config.num_heads, **options),
        transformer_spec.TransformerDecoderSpec(num_decoder_layers, num_decoder_heads, **options),
    )
    for stack in (spec.encoder, spec.decoder):
        stack.scale_embeddings = config.scale_embeddings
    return spec


def _fill_spec(spec: Any, config: TransformerConfig, weights: Weights) -> None:
    src_size, tgt_size = config.vocab_size, config.tgt_vocab_size or config.vocab_size
    src = tgt = output = weights.get("src_embedding.weight", src_size, config.d_model)
    if config.tie_embeddings != "three-way":  # a shared matrix is stored under its first name
        output = tgt = weights.get("output.weight", tgt_size, config.d_model)
        if config.tie_embeddings == "none":
            tgt = weights.get("tgt_embedding.weight", tgt_size, config.d_model)
    spec.encoder.embeddings[0].weight = _copy(src)
    spec.decoder.embeddings.weight = _copy(tgt)
    for stack, side, name in ((spec.encoder, "src", "encoder"), (spec.decoder, "tgt", "decoder")):
        positions = _position_table(config, weights.below(f"{side}_positions"))
        stack.position_encodings.encodings = positions
        for index, layer in enumerate(stack.layer):
            _fill_layer(layer, config, weights.below(f"{name}.layers.{index}"), name)
        if config.norm == "pre":
            _fill_norm(stack.layer_norm, config, weights.below(f"{name}.final_norm"))
    bias = weights.get("output.bias", tgt_size) if config.output_bias else None
    _fill_linear(spec.decoder.projection, [(output, bias)])


def _position_table(config: TransformerConfig, weights: Weights) -> Array:
    """Return the vectors that are added to the embeddings, (positions, D)."""
    length = count_positions(config)
    if config.positions == "learned":
        return _copy(weights.get("weight", length, config.d_model))
    if config.positions == "none":
        return np.zeros((length, config.d_model), dtype=np.float32)
    return sinusoidal_table(length, config.d_model, layout=config.position_layout)


def _fill_layer(layer: Any, config: TransformerConfig, weights: Weights, stack: str) -> None:
    is_decoder = stack == "decoder"
    num_heads = (config.num_decoder_heads if is_decoder else None) or config.num_heads
    d_ff = (config.decoder_d_ff if is_decoder else None) or config.d_ff
    attentions = [(layer.self_attention, "self", 3)]
    attentions += [(layer.attention, "cross", 1)] if is_decoder else []
    for spec, kind, num_queries in attentions:
        _fill_attention(
            spec, config, weights.below(f"{kind}_attention"), num_heads, num_queries=num_queries
        )
        _fill_norm(spec.layer_norm, config, weights.below(f"{kind}_add.norm"))
    feed_forward = weights.below("feed_forward")
    for linear, name, rows, columns in (
        (layer.ffn.linear_0, "inner", d_ff, config.d_model),
        (layer.ffn.linear_1, "outer", config.d_model, d_ff),
    ):
        bias = feed_forward.get(f"{name}.bias", rows)
        _fill_linear(linear, [(feed_forward.get(f"{name}.weight", rows, columns), bias)])
    _fill_norm(layer.ffn.layer_norm, config, weights.below("feed_forward_add.norm"))


def _fill_attention(
    spec: Any, config: TransformerConfig, weights: Weights, num_heads: int, *, num_queries: int
) -> None:
    """Fill one attention; self-attention has queries, keys and values in one matrix."""
    head_size = config.d_model // num_heads
    d_k, d_v = config.d_k or head_size, config.d_v or head_size
    rows = []
    for name, size in (("query", d_k), ("key", d_k), ("value", d_v)):
        weight = weights.get(f"{name}.weight", num_heads * size, config.d_model)
        bias = weights.get(f"{name}.bias", num_heads * size) if config.bias else None
        padded = None if bias is None else _pad_heads(bias, num_heads, head_size)
        rows.append((_pad_heads(weight, num_heads, head_size), padded))
    _fill_linear(spec.linear[0], rows[:num_queries])
    if num_queries == 1:
        _fill_linear(spec.linear[1], rows[1:])
    output = weights.get("output.weight", config.d_model, num_heads * d_v)
    bias = weights.get("output.bias", config.d_model) if config.bias else None
    _fill_linear(spec.linear[-1], [(_pad_heads(output.T, num_heads, head_size).T, bias)])
    if not config.scale or d_k != head_size:
        spec.queries_scale = 1.0 / sqrt(d_k) if config.scale else 1.0


def _pad_heads(rows: Array, num_heads: int, head_size: int) -> Array:
    """Add rows of zeros to each head: (H * k, ...) -> (H * head_size, ...)."""
    split = rows.reshape(num_heads, -1, *rows.shape[1:])
    missing = head_size - split.shape[1]
    padded = np.pad(split, [(0, 0), (0, missing), *[(0, 0)] * (split.ndim - 2)])
    return padded.reshape(num_heads * head_size, *rows.shape[1:])


def _fill_linear(spec: Any, parts: Iterable[Sequence[Array | None]]) -> None:
    """Concatenate the weights, and the biases if there are any, of several projections."""
    weights, biases = zip(*parts, strict=True)
    spec.weight = _copy(np.concatenate(weights))
    if biases[0] is not None:
        spec.bias = _copy(np.concatenate(biases))


def _fill_norm(spec: Any, config: TransformerConfig, weights: Weights) -> None:
    spec.gamma = _copy(weights.get("weight", config.d_model))
    spec.beta = _copy(weights.get("bias", config.d_model))


def _copy(values: Array) -> Array:
    """Copy an array: quantization works in place and must not change the model."""
    return np.array(values, dtype=np.float32, order="C")


def _register_vocabulary(spec: Any, model: StoredModel) -> None:
    """Register the vocabularies, without duplicates, and the special symbols."""
    tokenizer, config = model.tokenizer, spec.config
    src = _make_unique(tokenizer.src_pieces(range(tokenizer.src_vocab_size)))
    tgt = _make_unique(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))
    spec.register_source_vocabulary(src)
    spec.register_target_vocabulary(tgt)
    config.unk_token, config.bos_token, config.eos_token = tgt[UNK_ID], tgt[START_ID], tgt[END_ID]
    config.decoder_start_token = tgt[START_ID]
    config.add_source_eos = True
    config.layer_norm_epsilon = getattr(model.config, "layer_norm_eps")  # noqa: B009


def _make_unique(pieces: Iterable[str]) -> list[str]:
    """Append the index to duplicate pieces, which imported vocabularies may have.

    >>> _make_unique(["<s>", "a", "<s>"])
    ['<s>', 'a', '<s>#2']
    """
    seen: dict[str, None] = {}
    for index, piece in enumerate(pieces):
        seen[piece if piece not in seen else f"{piece}#{index}"] = None
    return list(seen)
