"""The tensors of a Marian folder: which there must be, and how they become ours and back.

A matrix that is tied lies in a file under one or several of its names; positions may lie there too,
though they are computed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from attendo.bundle import get_weights
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.interop.safe_pickle import load_weights_only
from attendo.interop.weight_mapping import (
    SUPPRESSED_LOGIT,
    check_tensors,
    check_tied,
    foreign_layer_name,
    permute_rows,
    to_split_sinusoids,
    unpermute_rows,
)
from attendo.model.positional_encoding import sinusoidal
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from pathlib import Path

    from torch import Tensor

    from attendo.interop.marian.settings import MarianSettings, Tie
    from attendo.model.config import TransformerConfig
    from attendo.text.foreign_tokenizer import ForeignVocabulary

WEIGHTS, PICKLED_WEIGHTS = "model.safetensors", "pytorch_model.bin"
SHARED, HEAD, BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
SRC, TGT = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
EMBEDDING_NAMES: dict[Tie, dict[str, tuple[str, ...]]] = {
    "three-way": {"src_embedding.weight": (SHARED, SRC, TGT, HEAD)},
    "decoder": {"src_embedding.weight": (SRC,), "output.weight": (TGT, HEAD)},
    "none": {
        "src_embedding.weight": (SRC, SHARED),
        "tgt_embedding.weight": (TGT, SHARED),
        "output.weight": (HEAD,),
    },
}
"""The matrices of each way to tie: what we call them, and every name they may have in a file."""
POSITION_TOLERANCE = 2e-3
"""How far a stored table of positions may be from the sinusoids: it may be of half precision."""


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Read whatever lies in the file of the weights."""
    if (folder / WEIGHTS).is_file():
        try:
            return load_file(folder / WEIGHTS)
        except (OSError, SafetensorError) as error:
            reason = message("{path} cannot be read: {detail}", path=folder / WEIGHTS, detail=error)
            raise InputError(reason, hint="copy the folder again") from None
    if (folder / PICKLED_WEIGHTS).is_file():
        return load_weights_only(folder / PICKLED_WEIGHTS)
    reason = f"{folder} holds neither {WEIGHTS} nor {PICKLED_WEIGHTS}"
    raise InputError(reason, hint="copy the weights of PyTorch too (not those of TensorFlow)")


def to_attendo_weights(
    tensors: dict[str, Tensor],
    settings: MarianSettings,
    config: TransformerConfig,
    vocabularies: list[ForeignVocabulary],
    *,
    source: str,
) -> dict[str, Tensor]:
    """Check the tensors of a file and give them under our names, in our order.

    `output.bias` is among them where the file has one that does something.
    """
    shapes = _parameter_shapes(config)
    matrices = _locate_matrices(tensors, settings.tie)
    _check_all(tensors, shapes, settings, matrices, source)
    weights = {
        name: tensors[f"model.{foreign_name}"].float()
        for name in shapes
        if (foreign_name := foreign_layer_name(name))
    }
    for native_name, name in matrices.items():
        vocabulary = vocabularies[0] if native_name == "src_embedding.weight" else vocabularies[-1]
        weights[native_name] = permute_rows(tensors[name].float(), vocabulary.foreign_ids)
    bias = tensors.get(BIAS, torch.zeros(1, settings.tgt_size)).float()
    if config.output_bias or bias.any():
        weights["output.bias"] = permute_rows(bias[0], vocabularies[-1].foreign_ids)
        weights["output.bias"][vocabularies[-1].ids_without_logit] = SUPPRESSED_LOGIT
    if config.position_layout == "interleaved":
        return to_split_sinusoids(weights, config.d_model, inverse=True)
    return weights


def to_marian_weights(
    model: Transformer, vocabularies: list[ForeignVocabulary]
) -> dict[str, Tensor]:
    """Give the tensors of a model under their names, in their order."""
    config, weights = model.config, get_weights(model)
    if config.position_layout == "interleaved":
        weights = to_split_sinusoids(weights, config.d_model)
    tensors = {
        f"model.{foreign_name}": tensor
        for native_name, tensor in weights.items()
        if (foreign_name := foreign_layer_name(native_name))
    }
    for ours, names in EMBEDDING_NAMES[config.tie_embeddings].items():
        vocabulary = vocabularies[0] if ours == "src_embedding.weight" else vocabularies[-1]
        tensors[names[0]] = unpermute_rows(weights[ours], vocabulary.foreign_ids)
    bias = weights.get("output.bias", torch.zeros(model.tgt_vocab_size))
    tensors[BIAS] = unpermute_rows(bias, vocabularies[-1].foreign_ids)[None]
    return {name: tensor.contiguous() for name, tensor in tensors.items()}


def _parameter_shapes(config: TransformerConfig) -> dict[str, tuple[int, ...]]:
    """Give the shape of each of our parameters, shared ones under their first name."""
    with torch.device("meta"):
        model = Transformer(**config.model_dump())
    return {name: tuple(one.shape) for name, one in model.named_parameters()}


def _locate_matrices(tensors: dict[str, Tensor], tie: Tie) -> dict[str, str]:
    """Find each matrix under one of its names, the first where there is none."""
    return {
        native_name: next((name for name in names if name in tensors), names[0])
        for native_name, names in EMBEDDING_NAMES[tie].items()
    }


def _check_all(
    tensors: dict[str, Tensor],
    shapes: dict[str, tuple[int, ...]],
    settings: MarianSettings,
    matrices: dict[str, str],
    source: str,
) -> None:
    """Declare what there must and may be, and refuse what is not so."""
    src = (settings.vocab_size, settings.d_model)
    tgt = (settings.tgt_size, settings.d_model)
    position_shape = (settings.max_position_embeddings, settings.d_model)
    names = {name for group in EMBEDDING_NAMES[settings.tie].values() for name in group}
    sizes = {SHARED: src, SRC: src, TGT: tgt, HEAD: tgt}
    extras: dict[str, tuple[int, ...]] = {
        **{name: sizes[name] for name in names},
        **dict.fromkeys(POSITIONS, position_shape),
        BIAS: (1, settings.tgt_size),
    }
    layers = {
        f"model.{foreign_name}": shapes[native_name]
        for native_name in shapes
        if (foreign_name := foreign_layer_name(native_name))
    }
    optional = {*extras} - {*matrices.values()}
    check_tensors(tensors, layers | extras, optional=optional, source=source)
    for group in EMBEDDING_NAMES[settings.tie].values() if settings.tie != "none" else ():
        check_tied(tensors, group, source=source)
    _check_positions(tensors, position_shape, source)


def _check_positions(tensors: dict[str, Tensor], size: tuple[int, int], source: str) -> None:
    """Refuse a stored table of positions that is not the sinusoids that it must be."""
    for name in POSITIONS:
        if name not in tensors:
            continue
        table = sinusoidal(*size, layout="halves")
        if (tensors[name].float() - table).abs().max() > POSITION_TOLERANCE:
            reason = f"{source}: {name} holds other positions than sinusoids in halves"
            raise InputError(reason, hint="transformers computes none but these for Marian")
