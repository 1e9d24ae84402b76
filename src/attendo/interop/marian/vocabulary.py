"""The tokenizer of a Marian folder: two SentencePiece models and the ids of their pieces.

`vocab.json` maps each piece of `source.spm` and `target.spm` to its id (`target_vocab.json` those
of the target, if the sides have separate ones); `tokenizer_config.json` names the symbols.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.text.foreign_tokenizer import ForeignSymbols, ForeignTokenizer, ForeignVocabulary
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from attendo.interop.marian.settings import MarianSettings

MODELS = ("source.spm", "target.spm")
VOCAB, TGT_VOCAB, TOKENIZER_CONFIG = "vocab.json", "target_vocab.json", "tokenizer_config.json"
UNUSED_PIECE = "<unused_{}>"
"""The name of a row without a piece."""
MIN_MULTIPLE, MAX_MULTIPLE = 8, 1024
"""Sizes of vocabularies are rounded up to a multiple of 8, 64, 128 ... for speed."""
DEFAULT_SYMBOLS = {"unk_token": "<unk>", "eos_token": "</s>", "pad_token": "<pad>"}
NATIVE_SYMBOLS = ForeignSymbols(PAD_ID, UNK_ID, START_ID, END_ID)


class VocabularyIds(NamedTuple):
    """The vocabularies of a tokenizer in Marian's format: a shared one, or one per side."""

    vocabularies: list[ForeignVocabulary]

    @classmethod
    def from_tokenizer(cls, tokenizer: Tokenizer) -> VocabularyIds:
        """Return the vocabularies; imported pieces get their original ids back."""
        if isinstance(tokenizer, ForeignTokenizer):
            return cls(tokenizer.vocabularies)
        pieces = [tokenizer.src_pieces(range(tokenizer.src_vocab_size))]
        if not tokenizer.is_shared:
            pieces.append(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))
        return cls([ForeignVocabulary(side, NATIVE_SYMBOLS) for side in pieces])

    @property
    def has_split_start_symbol(self) -> bool:
        """Return whether start and end were one symbol there, and are two here."""
        return any(START_ID in side.ids_without_logit for side in self.vocabularies)

    @property
    def settings(self) -> dict[str, int]:
        """Return the vocabulary's part of `config.json`."""
        symbols = self.vocabularies[-1].symbols
        return {
            "vocab_size": len(self.vocabularies[0].pieces),
            "decoder_vocab_size": len(self.vocabularies[-1].pieces),
            "pad_token_id": symbols.pad,
            "eos_token_id": symbols.end,
            "decoder_start_token_id": symbols.start,
        }


def write_vocabulary(
    folder: Path,
    tokenizer: Tokenizer,
    vocabulary_ids: VocabularyIds,
    about: dict[str, Any],
    max_length: int,
) -> None:
    """Write everything that `MarianTokenizer` reads."""
    for name, model in zip(MODELS, tokenizer.models, strict=True):
        (folder / name).write_bytes(model)
    for name, side in zip((VOCAB, TGT_VOCAB), vocabulary_ids.vocabularies, strict=False):
        _write_json(folder / name, {piece: number for number, piece in enumerate(side.pieces)})
    pieces, symbols = vocabulary_ids.vocabularies[0]
    config = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": about.get("src_lang"),
        "target_lang": about.get("tgt_lang"),
        "unk_token": pieces[symbols.unk],
        "eos_token": pieces[symbols.end],
        "pad_token": pieces[symbols.pad],
        "model_max_length": max_length,
        "separate_vocabs": not tokenizer.is_shared,
    }
    _write_json(folder / TOKENIZER_CONFIG, config)


def read_vocabulary(
    folder: Path, settings: MarianSettings, *, code: str | None = None
) -> ForeignTokenizer:
    """Read what `MarianTokenizer` reads, and check that it matches the model."""
    models = [read_bytes(folder / name) for name in MODELS]
    config = read_tokenizer_config(folder)
    names = {
        key: _symbol_text(config.get(key, default)) for key, default in DEFAULT_SYMBOLS.items()
    }
    is_separate = bool(config.get("separate_vocabs"))
    sizes = [settings.vocab_size, *([settings.tgt_size] if is_separate else [])]
    files = (VOCAB, TGT_VOCAB)[: len(sizes)]
    tables = [
        _name_unused_rows(_read_table(folder / name), size)
        for name, size in zip(files, sizes, strict=True)
    ]
    reasons: list[str] = []
    if not is_separate and settings.tgt_size != settings.vocab_size:
        reasons.append(
            message(
                "one vocabulary for both sides, but vocab_size {vocab_size} and "
                "decoder_vocab_size {tgt_size}",
                vocab_size=settings.vocab_size,
                tgt_size=settings.tgt_size,
            )
        )
    for name, table, size in zip(files, tables, sizes, strict=True):
        reasons += _mismatches(name, table, size, names)
    reasons += _symbol_mismatches(tables[-1], settings, names)
    if reasons:
        listing = "".join(f"\n  - {reason}" for reason in reasons)
        raise InputError(
            message(
                "{folder}: the vocabulary does not match the model{listing}",
                folder=folder,
                listing=listing,
            ),
            hint="copy vocab.json, config.json and the weights from the same model",
        )
    return ForeignTokenizer(
        models, list(_build_vocabularies(tables, settings, names)), language_code=code
    )


def read_tokenizer_config(folder: Path) -> dict[str, Any]:
    """Read `tokenizer_config.json` if it exists."""
    path = folder / TOKENIZER_CONFIG
    return read_json(path) if path.is_file() else {}


def _build_vocabularies(
    tables: Sequence[dict[str, int]], settings: MarianSettings, names: dict[str, str]
) -> Iterator[ForeignVocabulary]:
    for index, table in enumerate(tables):
        pad, end = table[names["pad_token"]], table[names["eos_token"]]
        # No source begins with a start symbol, so a separate one takes the padding there.
        is_last = index == len(tables) - 1
        start = settings.decoder_start_token_id if is_last else pad
        symbols = ForeignSymbols(pad, table[names["unk_token"]], start, end)
        yield ForeignVocabulary(sorted(table, key=lambda piece: table[piece]), symbols)


def _mismatches(
    name: str, table: dict[str, int], size: int, names: dict[str, str]
) -> Iterator[str]:
    """Return the reasons why a table is not a vocabulary of `size` pieces."""
    if sorted(table.values()) != list(range(size)):
        highest = max(table.values(), default=-1)
        yield (
            f"{name} has {len(table)} pieces with ids up to {highest}; the model has {size} rows, "
            f"0 to {size - 1}"
        )
    for piece in names.values():
        if piece not in table:
            yield f"{name} has no {piece}"


def _symbol_mismatches(
    table: dict[str, int], settings: MarianSettings, names: dict[str, str]
) -> Iterator[str]:
    for key, given in (("pad_token", settings.pad_token_id), ("eos_token", settings.eos_token_id)):
        vocabulary_id = table.get(names[key], given)
        if vocabulary_id != given:
            yield f"{names[key]} is {vocabulary_id} in the vocabulary, {given} in config.json"
    if settings.decoder_start_token_id >= settings.tgt_size:
        yield f"decoder_start_token_id {settings.decoder_start_token_id} is outside the vocabulary"


def check_pieces(folder: Path, native: Tokenizer, imported: ForeignTokenizer) -> None:
    """Raise an error if the vocabulary does not match the SentencePiece models, where it must."""
    models, files = (
        [side.pieces for side in VocabularyIds.from_tokenizer(one).vocabularies]
        for one in (native, imported)
    )
    if models != files:
        reason = message(
            "{folder}: vocab.json does not match the pieces of source.spm and target.spm",
            folder=folder,
        )
        raise InputError(reason, hint="export the model again")


def _read_table(path: Path) -> dict[str, int]:
    table = read_json(path)
    if not all(isinstance(number, int) for number in table.values()):
        reason = message("{path} maps pieces to ids that are not integers", path=path)
        raise InputError(reason, hint="copy it again")
    return table


def _name_unused_rows(table: dict[str, int], size: int) -> dict[str, int]:
    """Return a vocabulary with a name for each row that only rounds the size of a matrix up.

    The rows are kept, so that probabilities are those of the original.
    """
    count = len(table)
    multiple = min(size & -size, MAX_MULTIPLE)  # the largest power of two that divides the size
    is_padded = multiple >= MIN_MULTIPLE and 0 < size - count < multiple
    if not is_padded or sorted(table.values()) != list(range(count)):
        return table
    return table | {UNUSED_PIECE.format(number): number for number in range(count, size)}


def _symbol_text(given: Any) -> str:
    """Return the name of a symbol, which may be wrapped in a table."""
    return str(given["content"] if isinstance(given, dict) else given)


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file of a foreign folder."""
    raw = read_bytes(path)  # not within `try`: its error is a ValueError as well
    try:
        content = json.loads(raw)
    except ValueError as error:
        raise InputError(
            message("{path} is not valid JSON: {error}", path=path, error=error),
            hint="copy it again",
        ) from None
    if not isinstance(content, dict):
        raise InputError(
            message("{path} does not contain a JSON object", path=path), hint="copy it again"
        )
    return content


def read_bytes(path: Path) -> bytes:
    """Read a file of a foreign folder, or raise an error that it is missing."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        hint = "give a folder with config.json, weights, source.spm, target.spm and vocab.json"
        raise InputError(message("{path} is missing", path=path), hint=hint) from None
    except OSError as error:
        reason = message("{path} cannot be read: {detail}", path=path, detail=error.strerror)
        raise InputError(reason, hint="check the path and its permissions") from None


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
