"""fairseq `transformer` checkpoints: imported, never exported.

A checkpoint is a pickle; it is loaded without running code, and rejected if it needs any. Next to
it are the dictionaries (`dict.en.txt`: a piece and its count per line) and the SentencePiece model
of the texts. The settings are in the checkpoint, or in a `config.json` next to it. fairseq starts
its decoder with the end symbol and has its own sinusoids (`position_layout="fairseq"`).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.bundle import Bundle, set_weights
from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.interop.fairseq.settings import FairseqSettings
from attendo.interop.marian.vocabulary import read_bytes, read_json
from attendo.interop.safe_pickle import load_weights_only
from attendo.interop.weight_mapping import (
    SUPPRESSED_LOGIT,
    check_tensors,
    check_tied,
    foreign_layer_name,
    permute_rows,
)
from attendo.model.config import TransformerConfig
from attendo.model.transformer import Transformer
from attendo.text.foreign_tokenizer import ForeignSymbols, ForeignTokenizer, ForeignVocabulary

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

CONFIG = "config.json"
SPECIAL_PIECES = ["<s>", "<pad>", "</s>", "<unk>"]
"""The symbols before the lines of every dictionary."""
SYMBOLS = ForeignSymbols(pad=1, unk=3, start=2, end=2)
SRC, TGT = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
HEAD, OLD_HEAD = "decoder.output_projection.weight", "decoder.embed_out"
NORMS = {"encoder.final_norm": "encoder.layer_norm", "decoder.final_norm": "decoder.layer_norm"}
TIED: dict[str, tuple[str, ...]] = {
    "three-way": (SRC, TGT, HEAD),
    "decoder": (TGT, HEAD),
    "none": (HEAD,),
}
"""The tied matrices of each way of tying; all but the first are optional."""
POSITIONS = {
    "src_positions.weight": "encoder.embed_positions.weight",
    "tgt_positions.weight": "decoder.embed_positions.weight",
}
POSITION_OFFSET = 2
"""Rows of a learned table before that of the first token."""
IGNORED_SUFFIXES = ("version", "_float_tensor")
"""Suffixes of the names of tensors that are not learned."""


class CheckpointFiles(NamedTuple):
    """The files next to a checkpoint: one for both sides, or one for each."""

    dictionaries: list[Path]
    sentencepiece_models: list[Path]


def read(path: Path, *, dictionaries: Sequence[Path] = (), models: Sequence[Path] = ()) -> Bundle:
    """Read a checkpoint, with its dictionaries and SentencePiece models.

    By default these are the files next to it: `dict.*.txt`, `*.model` or `*.spm`.
    """
    state = load_weights_only(path, allowed=(argparse.Namespace,))
    tensors = state.get("model")
    if not isinstance(tensors, dict):
        reason = message("{path} has no 'model': it is not a fairseq checkpoint", path=path)
        raise InputError(reason, hint="give a checkpoint such as checkpoint_best.pt")
    settings, languages = _read_settings(path, state)
    files = _find_files(path, dictionaries, models, languages)
    tokenizer = _read_tokenizer(files, settings)
    config = TransformerConfig(
        vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=None if tokenizer.is_shared else tokenizer.tgt_vocab_size,
        output_bias=True,
        **settings.to_options(),
    )
    model = Transformer(**config.model_dump())
    set_weights(
        model, _to_attendo_weights(tensors, model, tokenizer, source=str(path)), name=str(path)
    )
    about = {
        "name": path.resolve().parent.name,
        "src_lang": languages[0],
        "tgt_lang": languages[1],
        "max_src_tokens": settings.max_source_positions,
        "imported": "fairseq",
    }
    return Bundle(model.eval(), tokenizer, about)


def _read_settings(
    path: Path, state: dict[str, Any]
) -> tuple[FairseqSettings, tuple[str | None, str | None]]:
    """Return the settings: of fairseq 0.10 and later, of older versions, or from a text file."""
    checkpoint_config = state.get("cfg") or {}
    settings = _as_dict(checkpoint_config.get("model")) or _as_dict(state.get("args"))
    config_path = path.with_name(CONFIG)
    if not settings and config_path.is_file():
        settings = read_json(config_path)
    if not settings:
        raise InputError(
            message(
                "{path} contains no settings, and there is no {config} next to it",
                path=path,
                config=CONFIG,
            ),
            hint="write fairseq's model settings (encoder_layers ...) there as JSON",
        )
    tables = [table for table in (_as_dict(checkpoint_config.get("task")), settings) if table]
    languages = [
        next((table[key] for table in tables if table.get(key)), None)
        for key in ("source_lang", "target_lang")
    ]
    return FairseqSettings.read(settings), (languages[0], languages[1])


def _as_dict(given: Any) -> dict[str, Any]:
    if isinstance(given, argparse.Namespace):
        return vars(given)
    return given if isinstance(given, dict) else {}


def _find_files(
    path: Path,
    dictionaries: Sequence[Path],
    models: Sequence[Path],
    languages: tuple[str | None, str | None],
) -> CheckpointFiles:
    """Return the given files, or those next to the checkpoint."""
    folder, reasons = path.parent, []
    named = [folder / f"dict.{language}.txt" for language in languages if language]
    texts = list(dictionaries) or [one for one in named if one.is_file()]
    texts = texts or sorted(folder.glob("dict.*.txt"))
    if not texts:
        reasons.append(message("no dictionary (dict.*.txt): give it with --dictionary"))
    elif len(texts) > 2 or (len(texts) == 2 and not dictionaries and texts != named):
        names = ", ".join(one.name for one in texts)
        reasons.append(
            message(
                "which of {names} is the source's? Give --dictionary, source first", names=names
            )
        )
    sentencepiece_models = list(models) or sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if not sentencepiece_models:
        reasons.append(
            message(
                "no SentencePiece model (*.model, *.spm): give it with --sentencepiece. Models "
                "whose texts were tokenized by subword-nmt (bpecodes) cannot be imported"
            )
        )
    elif len(sentencepiece_models) > 2 or (len(sentencepiece_models) == 2 and not models):
        names = ", ".join(one.name for one in sentencepiece_models)
        reasons.append(
            message(
                "which of {names} is the source's? Give --sentencepiece, source first", names=names
            )
        )
    if reasons:
        listing = join_messages("\n  - ", ["", *reasons])
        raise InputError(
            message(
                "{path}: the files of the tokenizer are missing or ambiguous{listing}",
                path=path,
                listing=listing,
            )
        )
    return CheckpointFiles(texts, sentencepiece_models)


def _read_tokenizer(files: CheckpointFiles, settings: FairseqSettings) -> ForeignTokenizer:
    models = [read_bytes(path) for path in files.sentencepiece_models]
    lists = [_read_dictionary(path) for path in files.dictionaries]
    if settings.tie == "three-way" and lists[0] != lists[-1]:
        raise InputError(
            message(
                "{src} and {tgt} differ, and the model has one vocabulary for both "
                "(share_all_embeddings)",
                src=files.dictionaries[0],
                tgt=files.dictionaries[-1],
            ),
            hint="use the dictionaries of its training data",
        )
    sides = [ForeignVocabulary(pieces, SYMBOLS) for pieces in lists]
    is_shared = len(lists) == 1 or lists[0] == lists[1]
    return ForeignTokenizer([models[0], models[-1]], sides[:1] if is_shared else sides)


def _read_dictionary(path: Path) -> list[str]:
    """Return the pieces of a dictionary, the symbols first."""
    try:
        lines = read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(
            message("{path} is not UTF-8: {error}", path=path, error=error), hint="save it as UTF-8"
        ) from None
    pieces = []
    for number, line in enumerate(lines, start=1):
        piece, space, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not space or not count.isdigit():
            reason = message(
                "{path}, line {number}: '{line}' is not a piece and its count",
                path=path,
                number=number,
                line=line,
            )
            raise InputError(reason, hint="give the dict.*.txt that fairseq wrote")
        pieces.append(piece)
    return [*SPECIAL_PIECES, *pieces]


def _to_attendo_weights(
    tensors: dict[str, Tensor], model: Transformer, tokenizer: ForeignTokenizer, *, source: str
) -> dict[str, Tensor]:
    """Check the tensors of a checkpoint and return them with our names and in our order."""
    given = {name: one for name, one in tensors.items() if not name.endswith(IGNORED_SUFFIXES)}
    if OLD_HEAD in given:
        given[HEAD] = given.pop(OLD_HEAD)
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    names, sides = _foreign_names(shapes), tokenizer.vocabularies
    tied = TIED[model.config.tie_embeddings]
    check_tensors(given, _expected_shapes(model, sides, names), optional=tied[1:], source=source)
    check_tied(given, tied, source=source)
    weights = {
        native_name: given[foreign_name].float() for native_name, foreign_name in names.items()
    }
    for ours in weights.keys() & POSITIONS:
        weights[ours] = weights[ours][POSITION_OFFSET:]
    for ours, theirs, side in (
        ("src_embedding.weight", SRC, sides[0]),
        ("tgt_embedding.weight", TGT, sides[-1]),
        ("output.weight", tied[0], sides[-1]),
    ):
        if ours in shapes:
            weights[ours] = permute_rows(given[theirs].float(), side.foreign_ids)
    weights["output.bias"] = torch.zeros(model.tgt_vocab_size)
    weights["output.bias"][sides[-1].ids_without_logit] = SUPPRESSED_LOGIT
    return weights


def _expected_shapes(
    model: Transformer, sides: list[ForeignVocabulary], names: dict[str, str]
) -> dict[str, tuple[int, ...]]:
    """Return the shape of every required or optional tensor."""
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    expected: dict[str, tuple[int, ...]] = {
        foreign_name: shapes[native_name] for native_name, foreign_name in names.items()
    }
    position_shape = (model.config.max_length + POSITION_OFFSET, model.config.d_model)
    expected |= dict.fromkeys(expected.keys() & POSITIONS.values(), position_shape)
    for name, side in ((SRC, sides[0]), (TGT, sides[-1]), (HEAD, sides[-1])):
        expected[name] = (len(side.pieces), model.config.d_model)
    return expected


def _foreign_names(shapes: dict[str, tuple[int, ...]]) -> dict[str, str]:
    """Return their name of each of our parameters, except the vocabulary's matrices."""
    names = {}
    for native_name in shapes:
        module, _, last = native_name.rpartition(".")
        if foreign_name := foreign_layer_name(native_name):
            names[native_name] = foreign_name
        elif module in NORMS:
            names[native_name] = f"{NORMS[module]}.{last}"
        elif native_name in POSITIONS:
            names[native_name] = POSITIONS[native_name]
    return names
