"""Export to a folder that transformers.js (`@huggingface/transformers`) runs unchanged.

transformers.js reads the config of a Marian model, `tokenizer.json`, and two ONNX graphs whose
inputs and outputs have its names: an encoder, and a decoder that computes keys and values of the
memory at the first step and takes them from the cache afterwards (`use_cache_branch`). The graphs
compute our model as it is. Each is written twice: in float32, and with 8-bit weights, which
transformers.js prefers in a browser. Generation is greedy: the library has no beam search.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import sentencepiece
import torch
from onnx import TensorProto, helper

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.decoding.options import SpecialIds
from attendo.interop.onnx.export import unsupported_reasons as unsupported_graph_reasons
from attendo.interop.onnx.graph import Graph, value_info
from attendo.interop.onnx.quantize import quantize_graph
from attendo.interop.onnx.reference import OnnxReference
from attendo.interop.onnx.transformer import (
    add_cross_keys_values,
    add_decoder,
    add_encoder,
    describe_heads,
)
from attendo.text.foreign_tokenizer import ForeignTokenizer
from attendo.text.normalize import BLANK_CHARACTERS, INVISIBLE_CHARACTERS
from attendo.text.tokenizer import END_ID, ESCAPE, PAD_ID, SPACE_SYMBOL, START_ID, UNK_ID
from attendo.translator.backends.onnx.session import open_session

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto
    from torch import Tensor

    from attendo.bundle import Bundle
    from attendo.interop.onnx.reference import Feeds
    from attendo.model.transformer import Transformer

ENCODER, DECODER = "encoder_model", "decoder_model_merged"
MAX_NEW_TOKENS = 256
SPECIAL_IDS = (PAD_ID, UNK_ID, START_ID, END_ID)


def unsupported_reasons(bundle: Bundle) -> list[str]:
    """Return every reason why a model cannot be exported to transformers.js."""
    reasons = unsupported_graph_reasons(bundle)
    if reasons:
        return reasons
    config, tokenizer = cast("Transformer", bundle.model).config, bundle.tokenizer
    if isinstance(tokenizer, ForeignTokenizer):
        return [message("an imported vocabulary: export it with --to hf-marian")]
    if not tokenizer.is_shared:
        reasons.append(
            message("transformers.js has one vocabulary for both sides, this model has two")
        )
    elif bundle.tokenizer.kind not in ("bpe", "unigram"):
        reasons.append(message("the tokenizer is neither BPE nor unigram"))
    elif bundle.tokenizer.kind == "unigram" and _has_bytes(_load_processor(bundle)):
        reasons.append(message("transformers.js has no byte fallback for unigram pieces"))
    if config.d_k is not None or config.d_v is not None:
        reasons.append(message("d_k and d_v must be d_model / num_heads"))
    return reasons


def write(bundle: Bundle, folder: Path, *, quantization: str | None = None) -> None:
    """Write config, tokenizer and graphs into a new and empty folder."""
    reasons = unsupported_reasons(bundle)
    if quantization is not None:
        reasons.append(
            message(
                "quantization '{quantization}': float32 and int8 are both written",
                quantization=quantization,
            )
        )
    if reasons:
        raise ConfigError.from_reasons("transformers.js", reasons)
    import onnx

    model = cast("Transformer", bundle.model)
    graphs = folder / "onnx"
    graphs.mkdir()
    for name, build in ((ENCODER, build_encoder), (DECODER, build_decoder)):
        path = graphs / f"{name}.onnx"
        onnx.save_model(build(model, shares_projection=True), path)
        onnx.checker.check_model(path, full_check=True)
        quantized = graphs / f"{name}_quantized.onnx"
        onnx.save_model(build(model, shares_projection=False), quantized)
        quantize_graph(quantized)
    for name, content in _describe(bundle).items():
        text = json.dumps(content, ensure_ascii=False)
        (folder / name).write_text(text + "\n", encoding="utf-8")


class TransformersJsReference(OnnxReference):
    """Runs the float32 graphs as transformers.js does."""

    def __init__(self, folder: Path) -> None:
        self.special_ids = SpecialIds(START_ID, END_ID, PAD_ID, UNK_ID)
        self.max_positions = None
        self._encoder, self._decoder = (
            open_session(folder / "onnx" / f"{name}.onnx") for name in (ENCODER, DECODER)
        )

    def encode(self, src_ids: Tensor) -> Feeds:
        """Encode the source (B, S) once."""
        mask = (src_ids != PAD_ID).long().numpy()
        feeds = {"input_ids": src_ids.numpy(), "attention_mask": mask}
        (memory,) = self._encoder.run(["last_hidden_state"], feeds)
        return {"encoder_hidden_states": memory, "encoder_attention_mask": mask}

    def start(self, memory: Feeds) -> Feeds:
        """Return the state before the first target position: an empty cache."""
        rows = len(memory["encoder_hidden_states"])
        past = {
            value.name: np.zeros((rows, value.shape[1], 0, value.shape[3]), dtype=np.float32)
            for value in self._decoder.get_inputs()
            if value.name.startswith("past_")
        }
        return memory | past

    def _run(self, ids: Tensor, state: Feeds) -> tuple[Tensor, Feeds]:
        names = [value.name for value in self._decoder.get_outputs()]
        is_cached = np.array([state["past_key_values.0.encoder.key"].shape[2] > 0])
        feeds = {"input_ids": ids.numpy(), "use_cache_branch": is_cached, **state}
        outputs = dict(zip(names, self._decoder.run(names, feeds), strict=True))
        logits = torch.from_numpy(outputs.pop("logits"))  # (N, T, V)
        past = {name.replace("present", "past_key_values"): one for name, one in outputs.items()}
        return logits, state | past


def load_reference(folder: Path) -> TransformersJsReference:
    """Open a folder written by `write` with ONNX Runtime."""
    return TransformersJsReference(folder)


def build_encoder(model: Transformer, *, shares_projection: bool = True) -> ModelProto:
    """Return the graph from input_ids and attention_mask (B, S) to last_hidden_state (B, S, D)."""
    del shares_projection  # of the decoder
    graph = Graph()
    mask = graph.add("Cast", "attention_mask", name="src_mask", to=TensorProto.BOOL)
    memory = add_encoder(graph, model, "input_ids", mask)
    graph.add("Identity", memory, name="last_hidden_state")
    shape = ("batch", "src_length")
    return graph.to_model(
        "encoder",
        [value_info(name, TensorProto.INT64, *shape) for name in ("input_ids", "attention_mask")],
        [value_info("last_hidden_state", TensorProto.FLOAT, *shape, model.config.d_model)],
    )


def build_decoder(model: Transformer, *, shares_projection: bool = True) -> ModelProto:
    """Return the graph of one step, with the names of transformers.js."""
    graph, names = Graph(), _cache_names(model)
    graph.add("Identity", "input_ids", name="ids")
    graph.add("Cast", "encoder_attention_mask", name="src_mask", to=TensorProto.BOOL)
    for own, (_, past, _) in names.items():
        if not own.startswith("cross_"):
            graph.add("Identity", past, name=f"past_{own}")
    _add_memory(graph, model, [own for own in names if own.startswith("cross_")])
    add_decoder(graph, model, shares_projection=shares_projection)
    for own, (_, _, present) in names.items():
        graph.add("Identity", own, name=present)
    rows = ("rows", "src_length")
    inputs = [
        value_info("input_ids", TensorProto.INT64, "rows", "length"),
        value_info("encoder_attention_mask", TensorProto.INT64, *rows),
        value_info("encoder_hidden_states", TensorProto.FLOAT, *rows, model.config.d_model),
        value_info("use_cache_branch", TensorProto.BOOL, 1),
        *(_rename(info, past, "past") for info, past, _ in names.values()),
    ]
    logits = value_info("logits", TensorProto.FLOAT, "rows", "length", model.tgt_vocab_size)
    outputs = [_rename(info, present, "total") for info, _, present in names.values()]
    return graph.to_model("decoder", inputs, [logits, *outputs])


def _cache_names(model: Transformer) -> dict[str, tuple[Any, str, str]]:
    """Return the shape, and the names of input and output, of each key and value by our name."""
    names = {}
    for kind in ("key", "value", "cross_key", "cross_value"):
        for number, info in enumerate(describe_heads(model, (kind,), rows="rows")):
            side, part = "encoder" if kind.startswith("cross") else "decoder", kind.split("_")[-1]
            name = f"{number}.{side}.{part}"
            names[f"{kind}_{number}"] = (info, f"past_key_values.{name}", f"present.{name}")
    return names


def _rename(info: Any, name: str, length: str) -> Any:
    sizes = [size.dim_param or size.dim_value for size in info.type.tensor_type.shape.dim]
    side = "src" if ".encoder." in name else "tgt"
    return value_info(name, TensorProto.FLOAT, *sizes[:2], f"{length}_{side}_length", sizes[3])


def _add_memory(graph: Graph, model: Transformer, names: list[str]) -> None:
    """Add keys and values of the memory: from the cache, or computed at the first step."""
    cached, computed = Graph(), Graph()
    for name in names:
        kind, number = name.removeprefix("cross_").split("_")
        cached.add("Identity", f"past_key_values.{number}.encoder.{kind}", name=f"{name}/cached")
    add_cross_keys_values(computed, model, "encoder_hidden_states")
    graph.weights |= computed.weights
    # No name within a branch may be that of an output of the If.
    for node in computed.nodes:
        node.output[:] = [f"{one}/computed" if one in names else one for one in node.output]
    branches = {
        branch: helper.make_graph(
            part.nodes,
            suffix,
            [],
            [value_info(f"{name}/{suffix}", TensorProto.FLOAT, *"bhsk") for name in names],
        )
        for branch, suffix, part in (
            ("then_branch", "cached", cached),
            ("else_branch", "computed", computed),
        )
    }
    graph.nodes.append(
        helper.make_node("If", ["use_cache_branch"], names, name="memory", **branches)
    )


def _describe(bundle: Bundle) -> dict[str, dict[str, Any]]:
    """Return the JSON files by name."""
    model = cast("Transformer", bundle.model)
    config, processor = model.config, _load_processor(bundle)
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    symbols = {
        "pad_token_id": PAD_ID,
        "bos_token_id": START_ID,
        "eos_token_id": END_ID,
        "decoder_start_token_id": START_ID,
    }
    about = bundle.about
    return {
        "config.json": {
            "architectures": ["MarianMTModel"],
            "model_type": "marian",
            "is_encoder_decoder": True,
            "d_model": config.d_model,
            "encoder_layers": len(model.encoder.layers),
            "decoder_layers": len(model.decoder.layers),
            "encoder_attention_heads": config.num_heads,
            "decoder_attention_heads": config.num_decoder_heads or config.num_heads,
            "vocab_size": len(pieces),
            **symbols,
        },
        "generation_config.json": {
            **symbols,
            "bad_words_ids": [[PAD_ID], [UNK_ID], [START_ID]],
            "max_new_tokens": MAX_NEW_TOKENS,
            "num_beams": 1,
        },
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "unk_token": pieces[UNK_ID],
            "pad_token": pieces[PAD_ID],
            "bos_token": pieces[START_ID],
            "eos_token": pieces[END_ID],
            "clean_up_tokenization_spaces": False,
            "source_lang": about.get("src_lang"),
            "target_lang": about.get("tgt_lang"),
        },
        "tokenizer.json": _describe_tokenizer(bundle, processor, pieces),
    }


def _load_processor(bundle: Bundle) -> Any:
    return sentencepiece.SentencePieceProcessor(model_proto=bundle.tokenizer.models[0])


def _describe_tokenizer(bundle: Bundle, processor: Any, pieces: list[str]) -> dict[str, Any]:
    """Return `tokenizer.json`: our normalization, then the pieces of SentencePiece."""
    steps = [
        _replace({"Regex": _invisible_characters()}, ""),
        *(_replace({"String": blank}, " ") for blank in BLANK_CHARACTERS),
        _replace({"String": ESCAPE}, f"{ESCAPE}0"),
        _replace({"String": SPACE_SYMBOL}, f"{ESCAPE}1"),
        {"type": "NFC"},
        _replace({"Regex": r"\s+"}, " "),
        {"type": "Strip", "strip_left": True, "strip_right": True},
    ]
    spaces = {"replacement": SPACE_SYMBOL, "prepend_scheme": "always", "split": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_describe_symbol(number, pieces[number]) for number in SPECIAL_IDS],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": {"type": "Metaspace", **spaces},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": pieces[END_ID], "type_id": 0}},
            ],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {
                pieces[END_ID]: {"id": pieces[END_ID], "ids": [END_ID], "tokens": [pieces[END_ID]]}
            },
        },
        "decoder": {
            "type": "Sequence",
            "decoders": [
                _replace({"String": SPACE_SYMBOL}, " "),
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                _replace({"String": f"{ESCAPE}1"}, SPACE_SYMBOL),
                _replace({"String": f"{ESCAPE}0"}, ESCAPE),
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": _describe_pieces(bundle.tokenizer.kind, processor, pieces),
    }


def _invisible_characters() -> str:
    """Return the pattern in what regular expressions have in common: without escapes."""
    pattern = INVISIBLE_CHARACTERS.pattern.replace(r"\ud800-\udfff", "")  # not in valid text
    return pattern.encode("ascii").decode("unicode_escape")


def _has_bytes(processor: Any) -> bool:
    return any(map(processor.is_byte, range(processor.get_piece_size())))


def _describe_pieces(kind: str, processor: Any, pieces: list[str]) -> dict[str, Any]:
    if kind == "unigram":
        scores = map(processor.get_score, range(len(pieces)))
        vocabulary = [list(one) for one in zip(pieces, scores, strict=True)]
        return {"type": "Unigram", "unk_id": UNK_ID, "vocab": vocabulary}
    return {
        "type": "BPE",
        "unk_token": pieces[UNK_ID],
        "fuse_unk": True,
        "byte_fallback": _has_bytes(processor),
        "vocab": {piece: number for number, piece in enumerate(pieces)},
        "merges": _list_merges(processor, pieces),
    }


def _list_merges(processor: Any, pieces: list[str]) -> list[list[str]]:
    """Return the pairs that BPE merges, the best first: all splits of a piece into two pieces."""
    ids = {
        piece: number
        for number, piece in enumerate(pieces)
        if not (processor.is_control(number) or processor.is_byte(number))
    }
    merges = []
    for piece, number in ids.items():
        parts = [(piece[:cut], piece[cut:]) for cut in range(1, len(piece))]
        known = [part for part in parts if part[0] in ids and part[1] in ids]
        known.sort(key=lambda part: (ids[part[0]], ids[part[1]]))
        merges += [(-processor.get_score(number), list(part)) for part in known]
    return [part for _, part in sorted(merges, key=lambda one: one[0])]


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def _describe_symbol(number: int, piece: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": number, "content": piece, "special": True, **flags}
