"""The tensors of a Marian folder: which are required, and their conversion to ours and back.

A tied matrix is stored under one or several of its names; the table of positions may be stored
too, although it is computed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from attendo.bundle import get_weights
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.interop.marian.vocabulary import read_json
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
    from collections.abc import Callable

    from torch import Tensor

    from attendo.interop.marian.settings import MarianSettings, Tie
    from attendo.model.config import TransformerConfig
    from attendo.text.foreign_tokenizer import ForeignVocabulary

WEIGHTS, PICKLED_WEIGHTS = "model.safetensors", "pytorch_model.bin"
INDEX_SUFFIX = ".index.json"
"""Ends the name of the file that lists the files of weights that are split into several."""
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
"""The matrices of each way of tying: our name, and every name it may have in a file."""
POSITION_TOLERANCE = 2e-3
"""Tolerance of a stored table of sinusoids, which may be in half precision."""


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Return all tensors of the weights file, or of the files that it is split into."""
    for name, read in ((WEIGHTS, _read_safetensors), (PICKLED_WEIGHTS, load_weights_only)):
        if (folder / name).is_file():
            return read(folder / name)
        if (folder / f"{name}{INDEX_SUFFIX}").is_file():
            return _read_shards(folder / f"{name}{INDEX_SUFFIX}", read)
    reason = message(
        "{folder} contains neither {first} nor {second}",
        folder=folder,
        first=WEIGHTS,
        second=PICKLED_WEIGHTS,
    )
    raise InputError(reason, hint="copy the PyTorch weights too (not those of TensorFlow)")


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        reason = message("{path} cannot be read: {detail}", path=path, detail=error)
        raise InputError(reason, hint="copy the folder again") from None


def _read_shards(index: Path, read: Callable[[Path], dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the tensors of all files that an index names; they must be in its folder."""
    weight_map = read_json(index).get("weight_map")
    names = sorted({*weight_map.values()}) if isinstance(weight_map, dict) else []
    suffix = index.name.removesuffix(INDEX_SUFFIX).rpartition(".")[2]
    if not names or any(Path(str(one)).name != one or not one.endswith(suffix) for one in names):
        raise InputError(
            message("{path} does not name the files of the weights", path=index),
            hint="copy the folder again",
        )
    missing = [name for name in names if not (index.parent / name).is_file()]
    if missing:
        raise InputError(
            message(
                "{path} names {count} files, of which {missing} are missing",
                path=index,
                count=len(names),
                missing=", ".join(missing),
            ),
            hint="copy the folder again",
        )
    tensors: dict[str, Tensor] = {}
    for name in names:
        tensors |= read(index.parent / name)
    return tensors


def to_attendo_weights(
    tensors: dict[str, Tensor],
    settings: MarianSettings,
    config: TransformerConfig,
    vocabularies: list[ForeignVocabulary],
    *,
    source: str,
) -> dict[str, Tensor]:
    """Check the tensors of a file and return them with our names and in our order.

    `output.bias` is included if the file has a nonzero one.
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
    """Return the tensors of a model with their names and in their order."""
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
    """Return the shape of each of our parameters, shared ones under their first name."""
    with torch.device("meta"):
        model = Transformer(**config.model_dump())
    return {name: tuple(one.shape) for name, one in model.named_parameters()}


def _locate_matrices(tensors: dict[str, Tensor], tie: Tie) -> dict[str, str]:
    """Return the stored name of each matrix, its first name if there is none."""
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
    """Declare required and optional tensors, and raise an error for any mismatch."""
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
    """Raise an error if a stored table of positions does not contain the sinusoids."""
    for name in POSITIONS:
        if name not in tensors:
            continue
        table = sinusoidal(*size, layout="halves")
        if (tensors[name].float() - table).abs().max() > POSITION_TOLERANCE:
            reason = message(
                "{source}: {name} contains other positions than sinusoids in halves",
                source=source,
                name=name,
            )
            raise InputError(reason, hint="transformers supports only these for Marian")
