"""Converts a Transformer to CTranslate2: declares, fills, validates and writes a specification.

The weights are copied to `ctranslate2.specs.TransformerSpec`. Positions are written as a table,
whatever their layout; heads narrower than d_model / num_heads are padded with zeros, which changes
no sum. Models with options that CTranslate2 does not support are rejected, with all reasons.
"""

from __future__ import annotations

import json
from math import sqrt
from typing import TYPE_CHECKING, Any, Literal, get_args

import torch

from attendo.core.errors import ConfigError, InputError, MissingExtraError
from attendo.core.message import message
from attendo.core.version import __version__
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import END_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from types import ModuleType

    from numpy.typing import NDArray
    from torch import Tensor, nn

    from attendo.bundle import Bundle
    from attendo.model.attention import MultiHeadAttention
    from attendo.model.config import TransformerConfig

Quantization = Literal["int8", "int8_bfloat16", "float16"]
QUANTIZATIONS: tuple[str, ...] = get_args(Quantization)
FORMAT_VERSION = 1
INFO_FILE = "attendo.json"
"""Facts that CTranslate2's format cannot hold: metadata and the number of positions."""
NUM_POSITIONS = 2048
"""The length of the table of sinusoidal positions, which have no limit in our model."""
USE_NATIVE_HINT = 'use engine="attendo" (--engine attendo)'
"""The hint of errors about what only the PyTorch backend supports."""
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
        raise MissingExtraError("ctranslate2", "interop") from None
    module: ModuleType = ctranslate2
    return module


def unsupported_reasons(bundle: Bundle) -> list[str]:
    """Return every reason why a model cannot be converted; none if it can."""
    if not isinstance(bundle.model, Transformer):
        return [f"model kind '{bundle.model.kind}': only the Transformer can be converted"]
    config = bundle.model.config
    reasons = [
        f"{name} = {getattr(config, name)!r} is not supported"
        for name, field in type(config).model_fields.items()
        if name not in SUPPORTED_OPTIONS and getattr(config, name) != field.default
    ]
    if config.positions not in POSITIONS:
        reasons.append(
            f"positions = '{config.positions}': only positions that are added are supported"
        )
    if config.activation not in ACTIVATIONS:
        reasons.append(f"activation = '{config.activation}' is not supported")
    return reasons + _head_size_problems(config)


def _head_size_problems(config: TransformerConfig) -> list[str]:
    reasons = []
    for num_heads in sorted({config.num_heads, config.num_decoder_heads or config.num_heads}):
        widest = max(config.d_k or 0, config.d_v or 0)
        if config.d_model % num_heads:
            reasons.append(f"{num_heads} heads do not divide d_model {config.d_model}")
        elif widest * num_heads > config.d_model:
            reasons.append(
                f"{num_heads} heads of {widest}: the maximum is d_model / num_heads = "
                f"{config.d_model // num_heads}"
            )
    return reasons


def write(bundle: Bundle, folder: Path, *, quantization: str | None = None) -> None:
    """Write a model to an empty folder; without a `quantization` the weights stay float32."""
    reasons = unsupported_reasons(bundle)
    if quantization is not None and quantization not in QUANTIZATIONS:
        known = ", ".join(QUANTIZATIONS)
        reasons.append(f"quantization '{quantization}' is not one of {known}")
    model = bundle.model
    if reasons or not isinstance(model, Transformer):
        raise ConfigError.from_reasons("CTranslate2", reasons)
    spec = _build_spec(model.config)
    _fill_spec(spec, model)
    _register_vocabulary(spec, bundle)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    bundle.tokenizer.save(folder)
    info = {
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "kind": model.kind,
        "num_parameters": model.num_parameters(),
        "num_positions": count_positions(model.config),
        "quantization": quantization,
        "about": bundle.about,
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
        reason = f"{folder} is not a CTranslate2 folder of Attendo: cannot read {INFO_FILE}"
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


def _fill_spec(spec: Any, model: Transformer) -> None:
    config = model.config
    spec.encoder.embeddings[0].weight = _to_numpy(model.src_embedding.weight)
    spec.decoder.embeddings.weight = _to_numpy(model.tgt_embedding.weight)
    sides = (
        (spec.encoder, model.encoder, model.src_positions),
        (spec.decoder, model.decoder, model.tgt_positions),
    )
    for stack, module_stack, positions in sides:
        empty = torch.zeros(1, count_positions(config), config.d_model)
        with torch.no_grad():  # what the module adds to zeros is its table
            stack.position_encodings.encodings = _to_numpy(positions(empty)[0])
        for layer, module_layer in zip(stack.layer, module_stack.layers, strict=True):
            _fill_layer(layer, module_layer)
        if config.norm == "pre":
            _fill_norm(stack.layer_norm, module_stack.final_norm)
    _fill_linear(spec.decoder.projection, [(model.output.weight, model.output.bias)])


def _fill_layer(layer: Any, module: nn.Module) -> None:
    parts: Any = module
    _fill_attention(layer.self_attention, parts.self_attention, num_queries=3)
    _fill_norm(layer.self_attention.layer_norm, parts.self_add.norm)
    if hasattr(layer, "attention"):
        _fill_attention(layer.attention, parts.cross_attention, num_queries=1)
        _fill_norm(layer.attention.layer_norm, parts.cross_add.norm)
    for linear, attribute in zip(("linear_0", "linear_1"), ("inner", "outer"), strict=True):
        linear_module = getattr(parts.feed_forward, attribute)
        _fill_linear(getattr(layer.ffn, linear), [(linear_module.weight, linear_module.bias)])
    _fill_norm(layer.ffn.layer_norm, parts.feed_forward_add.norm)


def _fill_attention(spec: Any, attention: MultiHeadAttention, *, num_queries: int) -> None:
    """Fill one attention; self-attention has queries, keys and values in one matrix."""
    heads, d_model = attention.num_heads, attention.query.in_features
    d_k, head_size = attention.query.out_features // heads, d_model // heads
    rows = [
        _pad_projection(module, heads, head_size)
        for module in (attention.query, attention.key, attention.value)
    ]
    _fill_linear(spec.linear[0], rows[:num_queries])
    if num_queries == 1:
        _fill_linear(spec.linear[1], rows[1:])
    columns = _pad_heads(attention.output.weight.T, heads, head_size).T
    _fill_linear(spec.linear[-1], [(columns, attention.output.bias)])
    if attention.scale is not None or d_k != head_size:
        spec.queries_scale = 1.0 / sqrt(d_k) if attention.scale is None else attention.scale


def _pad_projection(module: Any, num_heads: int, head_size: int) -> tuple[Tensor, Tensor | None]:
    """Pad the heads of a projection, including its bias."""
    bias = None if module.bias is None else _pad_heads(module.bias, num_heads, head_size)
    return _pad_heads(module.weight, num_heads, head_size), bias


def _pad_heads(rows: Tensor, num_heads: int, head_size: int) -> Tensor:
    """Add rows of zeros to each head: (H * k, ...) -> (H * head_size, ...)."""
    split = rows.unflatten(0, (num_heads, -1))
    missing = head_size - split.size(1)
    return torch.cat([split, split.new_zeros(num_heads, missing, *split.shape[2:])], 1).flatten(
        0, 1
    )


def _fill_linear(spec: Any, parts: Iterable[Sequence[Tensor | None]]) -> None:
    """Concatenate the weights, and the biases if there are any, of several projections."""
    weights, biases = zip(*parts, strict=True)
    spec.weight = _to_numpy(torch.cat(weights))
    if biases[0] is not None:
        spec.bias = _to_numpy(torch.cat(biases))


def _fill_norm(spec: Any, norm: nn.Module) -> None:
    module: Any = norm
    spec.gamma, spec.beta = _to_numpy(module.weight), _to_numpy(module.bias)


def _to_numpy(values: Tensor) -> NDArray[Any]:
    """Copy a tensor: quantization works in place and must not change the model."""
    array: NDArray[Any] = values.detach().float().cpu().clone().contiguous().numpy()
    return array


def _register_vocabulary(spec: Any, bundle: Bundle) -> None:
    """Register the vocabularies, without duplicates, and the special symbols."""
    tokenizer, config = bundle.tokenizer, spec.config
    src = _make_unique(tokenizer.src_pieces(range(tokenizer.src_vocab_size)))
    tgt = _make_unique(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))
    spec.register_source_vocabulary(src)
    spec.register_target_vocabulary(tgt)
    config.unk_token, config.bos_token, config.eos_token = tgt[UNK_ID], tgt[START_ID], tgt[END_ID]
    config.decoder_start_token = tgt[START_ID]
    config.add_source_eos = True
    config.layer_norm_epsilon = bundle.model.config.layer_norm_eps  # type: ignore[union-attr]


def _make_unique(pieces: Iterable[str]) -> list[str]:
    """Append the index to duplicate pieces, which imported vocabularies may have.

    >>> _make_unique(["<s>", "a", "<s>"])
    ['<s>', 'a', '<s>#2']
    """
    seen: dict[str, None] = {}
    for index, piece in enumerate(pieces):
        seen[piece if piece not in seen else f"{piece}#{index}"] = None
    return list(seen)
