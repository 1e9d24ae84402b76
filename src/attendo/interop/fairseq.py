"""fairseq's `transformer` checkpoints: read, never written.

A checkpoint is a pickle; it is loaded without running code, and refused where it needs some. Beside
it lie the dictionaries (`dict.en.txt`: a piece and its count a line) and the SentencePiece model
that cut the texts. Its settings lie in the checkpoint, or in a `config.json` beside it. fairseq
starts its decoder with the end symbol and has sinusoids of its own (`position_layout="fairseq"`).
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.bundle import Bundle, set_weights
from attendo.core.config import TransformerConfig
from attendo.core.errors import InputError
from attendo.data.imported_tokenizer import ForeignSymbols, ForeignVocabulary, ImportedTokenizer
from attendo.interop.fairseq_settings import FairseqSettings
from attendo.interop.mapping import (
    SILENCE,
    check_tensors,
    check_tied,
    foreign_layer_name,
    take_rows,
)
from attendo.interop.marian_vocabulary import read_bytes, read_json
from attendo.interop.pickled import load_pickled
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

CONFIG = "config.json"
FIRST = ["<s>", "<pad>", "</s>", "<unk>"]
"""The symbols that stand before the lines of every dictionary."""
SYMBOLS = ForeignSymbols(pad=1, unk=3, start=2, end=2)
SRC, TGT = "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
HEAD, OLD_HEAD = "decoder.output_projection.weight", "decoder.embed_out"
NORMS = {"encoder.final_norm": "encoder.layer_norm", "decoder.final_norm": "decoder.layer_norm"}
TIED: dict[str, tuple[str, ...]] = {
    "three-way": (SRC, TGT, HEAD),
    "decoder": (TGT, HEAD),
    "none": (HEAD,),
}
"""The matrices that are one, in each way to tie; all but the first may be left out."""
POSITIONS = {
    "src_positions.weight": "encoder.embed_positions.weight",
    "tgt_positions.weight": "decoder.embed_positions.weight",
}
FIRST_PLACE = 2
"""Rows of a learned table before that of the first token."""
NO_WEIGHTS = ("version", "_float_tensor")
"""How the names of tensors end that hold nothing learnt."""


class Neighbours(NamedTuple):
    """The files beside a checkpoint: one for both sides, or one for each."""

    dictionaries: list[Path]
    models: list[Path]


def read(path: Path, *, dictionaries: Sequence[Path] = (), models: Sequence[Path] = ()) -> Bundle:
    """Read a checkpoint, with the dictionaries and SentencePiece models that belong to it.

    Where they are not given they are looked for beside it: `dict.*.txt`, `*.model` or `*.spm`.
    """
    state = load_pickled(path, allowed=(argparse.Namespace,))
    tensors = state.get("model")
    if not isinstance(tensors, dict):
        reason = f"{path} has no 'model': it is no checkpoint of fairseq"
        raise InputError(reason, remedy="give a checkpoint_best.pt, or the like")
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
    set_weights(model, _to_ours(tensors, model, tokenizer, source=str(path)), name=str(path))
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
    """Find the settings: of fairseq 0.10 and later, of earlier ones, or in text beside the file."""
    whole = state.get("cfg") or {}
    found = _as_table(whole.get("model")) or _as_table(state.get("args"))
    beside = path.with_name(CONFIG)
    if not found and beside.is_file():
        found = read_json(beside)
    if not found:
        raise InputError(
            f"{path} holds no settings, and there is no {CONFIG} beside it",
            remedy="write fairseq's model settings (encoder_layers ...) there as JSON",
        )
    tables = [table for table in (_as_table(whole.get("task")), found) if table]
    languages = [
        next((table[key] for table in tables if table.get(key)), None)
        for key in ("source_lang", "target_lang")
    ]
    return FairseqSettings.read(found), (languages[0], languages[1])


def _as_table(given: Any) -> dict[str, Any]:
    if isinstance(given, argparse.Namespace):
        return vars(given)
    return given if isinstance(given, dict) else {}


def _find_files(
    path: Path,
    dictionaries: Sequence[Path],
    models: Sequence[Path],
    languages: tuple[str | None, str | None],
) -> Neighbours:
    """Take the files that are given, or those that lie beside the checkpoint."""
    folder, reasons = path.parent, []
    named = [folder / f"dict.{language}.txt" for language in languages if language]
    texts = list(dictionaries) or [one for one in named if one.is_file()]
    texts = texts or sorted(folder.glob("dict.*.txt"))
    if not texts:
        reasons.append("no dictionary (dict.*.txt): give it with --dictionary")
    elif len(texts) > 2 or (len(texts) == 2 and not dictionaries and texts != named):
        names = ", ".join(one.name for one in texts)
        reasons.append(f"which of {names} is the source's? Give --dictionary, source first")
    cutters = list(models) or sorted([*folder.glob("*.model"), *folder.glob("*.spm")])
    if not cutters:
        reasons.append(
            "no SentencePiece model (*.model, *.spm): give it with --sentencepiece. Models whose "
            "texts were cut by subword-nmt (bpecodes) cannot be imported"
        )
    elif len(cutters) > 2 or (len(cutters) == 2 and not models):
        names = ", ".join(one.name for one in cutters)
        reasons.append(f"which of {names} is the source's? Give --sentencepiece, source first")
    if reasons:
        listing = "".join(f"\n  - {reason}" for reason in reasons)
        raise InputError(f"{path}: what turns text into its ids is not clear{listing}")
    return Neighbours(texts, cutters)


def _read_tokenizer(files: Neighbours, settings: FairseqSettings) -> ImportedTokenizer:
    models = [read_bytes(path) for path in files.models]
    lists = [_read_dictionary(path) for path in files.dictionaries]
    if settings.tie == "three-way" and lists[0] != lists[-1]:
        raise InputError(
            f"{files.dictionaries[0]} and {files.dictionaries[-1]} differ, and the model has one "
            "vocabulary for both (share_all_embeddings)",
            remedy="take the dictionaries of the data that it was trained on",
        )
    sides = [ForeignVocabulary(pieces, SYMBOLS) for pieces in lists]
    is_shared = len(lists) == 1 or lists[0] == lists[1]
    return ImportedTokenizer([models[0], models[-1]], sides[:1] if is_shared else sides)


def _read_dictionary(path: Path) -> list[str]:
    """Read the pieces of a dictionary, the symbols first."""
    try:
        lines = read_bytes(path).decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is no UTF-8: {error}", remedy="save it as UTF-8") from None
    pieces = []
    for number, line in enumerate(lines, start=1):
        piece, space, count = line.removesuffix(" #fairseq:overwrite").rpartition(" ")
        if not space or not count.isdigit():
            reason = f"{path}, line {number}: '{line}' is no piece and its count"
            raise InputError(reason, remedy="give the dict.*.txt that fairseq wrote")
        pieces.append(piece)
    return [*FIRST, *pieces]


def _to_ours(
    tensors: dict[str, Tensor], model: Transformer, tokenizer: ImportedTokenizer, *, source: str
) -> dict[str, Tensor]:
    """Check the tensors of a checkpoint and give them under our names, in our order."""
    given = {name: one for name, one in tensors.items() if not name.endswith(NO_WEIGHTS)}
    if OLD_HEAD in given:
        given[HEAD] = given.pop(OLD_HEAD)
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    names, sides = _names(shapes), tokenizer.vocabularies
    tied = TIED[model.config.tie_embeddings]
    check_tensors(given, _declare(model, sides, names), optional=tied[1:], source=source)
    check_tied(given, tied, source=source)
    weights = {ours: given[theirs].float() for ours, theirs in names.items()}
    for ours in weights.keys() & POSITIONS:
        weights[ours] = weights[ours][FIRST_PLACE:]
    for ours, theirs, side in (
        ("src_embedding.weight", SRC, sides[0]),
        ("tgt_embedding.weight", TGT, sides[-1]),
        ("output.weight", tied[0], sides[-1]),
    ):
        if ours in shapes:
            weights[ours] = take_rows(given[theirs].float(), side.order)
    weights["output.bias"] = torch.zeros(model.tgt_vocab_size)
    weights["output.bias"][sides[-1].silent] = SILENCE
    return weights


def _declare(
    model: Transformer, sides: list[ForeignVocabulary], names: dict[str, str]
) -> dict[str, tuple[int, ...]]:
    """Give the shape of every tensor that there must or may be."""
    shapes = {name: tuple(one.shape) for name, one in model.named_parameters()}
    wanted: dict[str, tuple[int, ...]] = {theirs: shapes[ours] for ours, theirs in names.items()}
    places = (model.config.max_length + FIRST_PLACE, model.config.d_model)
    wanted |= dict.fromkeys(wanted.keys() & POSITIONS.values(), places)
    for name, side in ((SRC, sides[0]), (TGT, sides[-1]), (HEAD, sides[-1])):
        wanted[name] = (len(side.pieces), model.config.d_model)
    return wanted


def _names(shapes: dict[str, tuple[int, ...]]) -> dict[str, str]:
    """Give their name of each of our parameters, but for the matrices of the vocabulary."""
    names = {}
    for ours in shapes:
        module, _, last = ours.rpartition(".")
        if theirs := foreign_layer_name(ours):
            names[ours] = theirs
        elif module in NORMS:
            names[ours] = f"{NORMS[module]}.{last}"
        elif ours in POSITIONS:
            names[ours] = POSITIONS[ours]
    return names
