"""Export to ONNX: two graphs, the tokenizer's files, and a JSON file that describes them.

The folder needs neither PyTorch nor Attendo: `examples/onnx_translate.py` runs it with ONNX
Runtime, NumPy and SentencePiece. Everything is float32. `attendo.interop.onnx.transformer` writes
the graphs and documents their inputs and outputs.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.core.version import __version__
from attendo.decoding.options import DecodingOptions
from attendo.interop.onnx.reference import OnnxReference
from attendo.model.transformer import Transformer
from attendo.text.foreign_tokenizer import ForeignTokenizer
from attendo.text.normalize import BLANK_CHARACTERS, INVISIBLE_CHARACTERS
from attendo.text.tokenizer import (
    END_ID,
    ESCAPE,
    PAD_ID,
    SEPARATE_FILES,
    SHARED_FILE,
    SPACE_SYMBOL,
    START_ID,
    UNK_ID,
)
from attendo.translator.backends.onnx.session import (
    DECODER_FILE,
    ENCODER_FILE,
    FORMAT_VERSION,
    INFO_FILE,
    import_optional,
)

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto

    from attendo.bundle import Bundle
    from attendo.text.tokenizer import Tokenizer

PIECES_FILE = "tokenizer.pieces.json"
MAX_FILE_BYTES = 2_000_000_000
"""Bytes of weights in one file: Protocol Buffers are limited to 2 GiB. Larger weights go to a
separate file."""
SUPPORTED_OPTIONS = frozenset(
    {
        "vocab_size",
        "tgt_vocab_size",
        "tie_embeddings",
        "pad_id",
        "d_model",
        "d_ff",
        "num_heads",
        "num_layers",
        "num_decoder_layers",
        "num_decoder_heads",
        "decoder_d_ff",
        "d_k",
        "d_v",
        "norm",
        "layer_norm_eps",
        "max_length",
        "attention_width",
        "scale",
        "residual",
        "bias",
        "output_bias",
        "scale_embeddings",
        "dropout",
        "attention_dropout",
        "activation_dropout",
    }
)
"""Options whose every value the graphs support; dropout is not used in inference."""
SUPPORTED_VALUES = {
    "activation": ("relu", "gelu", "swish"),
    "positions": ("sinusoidal", "learned", "concatenated", "none"),
    "position_layout": ("interleaved", "halves", "tensor2tensor", "fairseq"),
}


def unsupported_reasons(bundle: Bundle) -> list[str]:
    """Return every reason why a model cannot be exported to ONNX."""
    if not isinstance(bundle.model, Transformer):
        return [
            message(
                "models of kind '{kind}' cannot be exported to ONNX: only the Transformer can",
                kind=bundle.model.kind,
            )
        ]
    config, reasons = bundle.model.config, []
    for name, field in type(config).model_fields.items():
        value = getattr(config, name)
        allowed = SUPPORTED_VALUES.get(name, (field.default,))
        if name not in SUPPORTED_OPTIONS and value not in allowed:
            reasons.append(
                message(
                    "{name} = {value!r} is not supported by the ONNX graphs", name=name, value=value
                )
            )
    return reasons


def write(
    bundle: Bundle,
    folder: Path,
    *,
    quantization: str | None = None,
    has_attention: bool = False,
    shares_projection: bool = True,
) -> None:
    """Write graphs, tokenizer and `onnx.json` into a new and empty folder.

    With `has_attention`, the graphs return the attention weights too. See `build_decoder` for
    `shares_projection`.
    """
    reasons = unsupported_reasons(bundle)
    if quantization is not None:
        reasons.append(
            message(
                "quantization '{quantization}': ONNX export supports only float32",
                quantization=quantization,
            )
        )
    if reasons:
        raise ConfigError.from_reasons("ONNX", reasons)
    import_optional("onnx")
    from attendo.interop.onnx.transformer import build_decoder, build_encoder

    model = cast("Transformer", bundle.model)
    graphs = {
        ENCODER_FILE: build_encoder(model, has_attention=has_attention),
        DECODER_FILE: build_decoder(
            model, has_attention=has_attention, shares_projection=shares_projection
        ),
    }
    described = {name: _describe_io(graph) for name, graph in graphs.items()}
    for name, graph in graphs.items():
        _save(graph, folder / name)
    _write_tokenizer(bundle.tokenizer, folder)
    info = {**_build_info(bundle, graphs[DECODER_FILE]), "graphs": described}
    _write_json(folder / INFO_FILE, info)


def _save(graph: ModelProto, path: Path) -> None:
    import onnx

    size = sum(len(weight.raw_data) for weight in graph.graph.initializer)
    onnx.save_model(
        graph,
        path,
        save_as_external_data=size > MAX_FILE_BYTES,
        location=f"{path.name}.data",
    )
    onnx.checker.check_model(path, full_check=True)


def _describe_io(graph: ModelProto) -> dict[str, dict[str, str]]:
    """Return the names, types and shapes of the inputs and outputs."""
    from onnx.helper import tensor_dtype_to_np_dtype

    io: dict[str, dict[str, str]] = {"inputs": {}, "outputs": {}}
    for direction, values in (("inputs", graph.graph.input), ("outputs", graph.graph.output)):
        for value in values:
            kind = value.type.tensor_type
            shape = ", ".join(size.dim_param or str(size.dim_value) for size in kind.shape.dim)
            io[direction][value.name] = f"{tensor_dtype_to_np_dtype(kind.elem_type)} ({shape})"
    return io


def _build_info(bundle: Bundle, graph: ModelProto) -> dict[str, Any]:
    """Return what a reader needs besides the graphs."""
    config, options = cast("Transformer", bundle.model).config, DecodingOptions()
    return {
        "format_version": FORMAT_VERSION,
        "attendo": __version__,
        "ir_version": graph.ir_version,
        "opset": graph.opset_import[0].version,
        "src_lang": bundle.about.get("src_lang"),
        "tgt_lang": bundle.about.get("tgt_lang"),
        "pad_id": PAD_ID,
        "unk_id": UNK_ID,
        "start_id": START_ID,
        "end_id": END_ID,
        "max_positions": config.max_length if config.positions == "learned" else None,
        "max_src_tokens": bundle.about.get("max_src_tokens"),
        "sentences_per_line": bundle.about.get("num_sentences"),
        "decoding": {
            "beam_size": options.beam_size,
            "alpha": options.alpha,
            "max_extra_tokens": options.max_extra_tokens,
        },
        "tokenizer": _tokenizer_info(bundle.tokenizer),
        "num_parameters": cast("Transformer", bundle.model).num_parameters(),
        "about": bundle.about,
    }


def _tokenizer_info(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the files, and the normalization before SentencePiece."""
    info: dict[str, Any] = {"remove": INVISIBLE_CHARACTERS.pattern, "blanks": BLANK_CHARACTERS}
    files = (SHARED_FILE, SHARED_FILE) if tokenizer.is_shared else SEPARATE_FILES
    if isinstance(tokenizer, ForeignTokenizer):
        info |= {"escapes": {}, "pieces": PIECES_FILE, "code": tokenizer.language_code}
        files = SEPARATE_FILES
    else:
        escapes = {ESCAPE: f"{ESCAPE}0", SPACE_SYMBOL: f"{ESCAPE}1"}
        info |= {"escapes": escapes, "pieces": None, "code": None}
    return {"src": files[0], "tgt": files[1], **info}


def _write_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the tokenizer; an imported one has other ids than its SentencePiece models."""
    tokenizer.save(folder)
    if isinstance(tokenizer, ForeignTokenizer):
        pieces = {
            "src": tokenizer.src_pieces(range(tokenizer.src_vocab_size)),
            "tgt": tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)),
        }
        _write_json(folder / PIECES_FILE, pieces)


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def load_reference(folder: Path) -> OnnxReference:
    """Open a folder written by `write` with ONNX Runtime."""
    return OnnxReference(folder)
