"""The tokenizer of an imported model: its SentencePiece models and its vocabulary, renumbered.

Other toolkits number the pieces by a vocabulary file of their own and use other special symbols:
Marian starts the decoder with the padding symbol, fairseq with the end symbol. Attendo expects
PAD_ID, UNK_ID, START_ID and END_ID, so an imported vocabulary is renumbered once: the four special
symbols first, the other pieces in their original order. The rows of the weights are permuted in the
same way (`attendo.interop.weight_mapping`), which is exact.
"""

from __future__ import annotations

import hashlib
import json
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import sentencepiece

from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.text.normalize import normalize
from attendo.text.tokenizer import (
    END_ID,
    METADATA_FILE,
    PAD_ID,
    SEPARATE_FILES,
    SPACE_SYMBOL,
    START_ID,
    UNK_ID,
    Kind,
    Tokenizer,
    decode_ids,
    encode_texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

VOCABULARY_FILE = "tokenizer.vocab.json"
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
"""Names of the four special symbols here, whatever the other toolkit calls them."""
NO_FOREIGN_ID = -1
"""Stands for the foreign id where the other vocabulary has no such symbol."""
LANGUAGE_CODE = re.compile(r">>.+?<<")
"""A prefix of the source that selects the target language of a multilingual model."""


class ForeignSymbols(NamedTuple):
    """Ids of the special symbols in the foreign vocabulary; several may be equal."""

    pad: int
    unk: int
    start: int
    end: int


class ForeignVocabulary(NamedTuple):
    """The pieces of one side, or of both, in the order of their foreign ids."""

    pieces: list[str]
    symbols: ForeignSymbols

    @property
    def foreign_ids(self) -> list[int]:
        """Return the foreign id of each of our ids, `NO_FOREIGN_ID` where there is none.

        If the foreign padding symbol also starts the decoder, it becomes our start symbol, and our
        padding symbol is new.

        >>> pieces = ["</s>", "<unk>", "a", "b", "<pad>"]
        >>> ForeignVocabulary(pieces, ForeignSymbols(pad=4, unk=1, start=4, end=0)).foreign_ids
        [-1, 1, 4, 0, 2, 3]
        """
        symbols = self.symbols
        is_pad_shared = symbols.pad in (symbols.unk, symbols.start, symbols.end)
        first_ids = [
            NO_FOREIGN_ID if is_pad_shared else symbols.pad,
            symbols.unk,
            symbols.start,
            symbols.end,
        ]
        return [
            *first_ids,
            *(number for number in range(len(self.pieces)) if number not in first_ids),
        ]

    @property
    def ids_without_logit(self) -> list[int]:
        """Return the ids of our symbols that have no column in the foreign logits."""
        is_copy = self.symbols.start == self.symbols.end
        return [PAD_ID] * (self.foreign_ids[PAD_ID] == NO_FOREIGN_ID) + [START_ID] * is_copy

    @property
    def native_pieces(self) -> list[str]:
        """Return the pieces in the order of our ids."""
        return [
            *SPECIAL_PIECES,
            *(self.pieces[number] for number in self.foreign_ids[END_ID + 1 :]),
        ]


class ForeignTokenizer(Tokenizer):
    """Encodes text as the other toolkit does, into our ids.

    Args:
        models: The SentencePiece models of source and target; the same one twice if shared.
        vocabularies: One vocabulary for both sides, or one per side.
        language_code: Prefix of every source, e.g. ">>fra<<", unless the source has one already.

    Raises:
        InputError: If a model cannot be read or the vocabulary lacks the language code.

    """

    def __init__(
        self,
        models: Sequence[bytes],
        vocabularies: Sequence[ForeignVocabulary],
        *,
        language_code: str | None = None,
    ) -> None:
        self.vocabularies, self.language_code = list(vocabularies), language_code
        self.is_shared = len(self.vocabularies) == 1
        self._models = tuple(models)
        processors = [_load_processor(model) for model in models]
        self.kind = read_model_kind(models[0])
        self._src, self._tgt = processors[0], processors[-1]
        sides = [vocabulary.native_pieces for vocabulary in self.vocabularies]
        self._src_pieces, self._tgt_pieces = sides[0], sides[-1]
        self._src_ids, self._tgt_ids = _piece_to_id(sides[0]), _piece_to_id(sides[-1])
        if language_code is not None and language_code not in self._src_ids:
            codes = [piece for piece in self._src_ids if LANGUAGE_CODE.fullmatch(piece)]
            hint = (
                message("use one of {names}", names=", ".join(codes))
                if codes
                else "it has no codes: leave it out"
            )
            raise InputError(
                message(
                    "the vocabulary has no language code {language_code}",
                    language_code=language_code,
                ),
                hint=hint,
            )

    @property
    def src_vocab_size(self) -> int:
        """Number of source pieces, including the four special symbols."""
        return len(self._src_pieces)

    @property
    def tgt_vocab_size(self) -> int:
        """Number of target pieces; the same number if the vocabulary is shared."""
        return len(self._tgt_pieces)

    @property
    def language_codes(self) -> list[str]:
        """The language codes that a source may begin with (multilingual models)."""
        return [piece for piece in self._src_pieces if LANGUAGE_CODE.fullmatch(piece)]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of models and vocabulary: equal if every text has the same ids."""
        return hashlib.sha256(b"".join((*self._models, self._serialize_vocabulary()))).hexdigest()

    def encode_src(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Return the ids of each source text, after its language code; the last id is END_ID."""
        split_texts = [self._split_language_code(text) for text in texts]
        prepared = [text for _, text in split_texts]
        rows = encode_texts(self._src, prepared, dropout=dropout, seed=seed, out_type=str)
        prefixes = [[code] if code else [] for code, _ in split_texts]
        return [
            _lookup_ids(self._src_ids, [*code, *row])
            for code, row in zip(prefixes, rows, strict=True)
        ]

    def encode_tgt(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Return the ids of each target text; the last id is END_ID, there is no START_ID."""
        prepared = [normalize(text) for text in texts]
        rows = encode_texts(self._tgt, prepared, dropout=dropout, seed=seed, out_type=str)
        return [_lookup_ids(self._tgt_ids, row) for row in rows]

    def decode_tgt(self, id_lists: Iterable[Iterable[int]]) -> list[str]:
        """Return the text of each list of ids up to the first END_ID; UNK_ID becomes ⁇."""
        texts = decode_ids(self._tgt, [self._to_text_pieces(ids) for ids in id_lists])
        # A model does not replace the space symbol in pieces that are not in its own vocabulary.
        return [normalize(text.replace(SPACE_SYMBOL, " ")) for text in texts]

    def src_pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the SentencePiece piece of each source id; a space is written as ▁."""
        return [self._src_pieces[int(number)] for number in ids]

    def src_surfaces(self, text: str) -> list[str]:
        """Return the part of a source text that each of its ids covers; END_ID covers nothing."""
        code, rest = self._split_language_code(text)
        proto: Any = self._src.encode(rest, out_type="proto")
        return [*([code] if code else []), *(piece.surface for piece in proto.pieces), ""]

    def tgt_pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the piece of each target id."""
        return [self._tgt_pieces[int(number)] for number in ids]

    def save(self, directory: str | Path) -> None:
        """Write models, vocabulary and, last, the JSON metadata to a folder."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for name, model in zip(SEPARATE_FILES, self.models, strict=True):
            write_atomically(folder / name, model)
        write_atomically(folder / VOCABULARY_FILE, self._serialize_vocabulary())
        info = {
            "kind": self.kind,
            "shared": self.is_shared,
            "sha256": self.fingerprint,
            "vocabulary": VOCABULARY_FILE,
        }
        write_atomically(folder / METADATA_FILE, json.dumps(info, indent=2) + "\n")

    @classmethod
    def load_from(cls, folder: Path, info: dict[str, Any]) -> ForeignTokenizer:
        """Read what `save` wrote; `Tokenizer.load` calls this and reports errors."""
        models = [(folder / name).read_bytes() for name in SEPARATE_FILES]
        vocabulary = (folder / str(info["vocabulary"])).read_bytes()
        if hashlib.sha256(b"".join((*models, vocabulary))).hexdigest() != info["sha256"]:
            raise ValueError("models and vocabulary do not match the checksum")
        saved = json.loads(vocabulary)
        sides = [
            ForeignVocabulary(side["pieces"], ForeignSymbols(**side["symbols"]))
            for side in saved["sides"]
        ]
        return cls(models, sides, language_code=saved["code"])

    def _split_language_code(self, text: str) -> tuple[str | None, str]:
        """Split the language code off a source; without one, return the default code."""
        clean = normalize(text)
        text_code = LANGUAGE_CODE.match(clean)
        return (
            (text_code[0], clean[text_code.end() :]) if text_code else (self.language_code, clean)
        )

    def _to_text_pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the pieces of the text; UNK_ID becomes the unknown piece of the model."""
        unknown, text_pieces = self._tgt.id_to_piece(self._tgt.unk_id()), []
        for number in map(int, ids):
            if number == END_ID:
                break
            if number not in (PAD_ID, START_ID):
                text_pieces.append(unknown if number == UNK_ID else self._tgt_pieces[number])
        return text_pieces

    def _serialize_vocabulary(self) -> bytes:
        sides = [
            {"pieces": side.pieces, "symbols": side.symbols._asdict()} for side in self.vocabularies
        ]
        payload = {"code": self.language_code, "sides": sides}
        return (json.dumps(payload, ensure_ascii=False) + "\n").encode()


def read_model_kind(model: bytes) -> Kind:
    """Return the kind of a SentencePiece model: bpe, unigram, char or word."""
    protocol: Any = import_module("sentencepiece.sentencepiece_model_pb2")
    parsed = protocol.ModelProto()
    parsed.ParseFromString(model)
    name = protocol.TrainerSpec.ModelType.Name(parsed.trainer_spec.model_type)
    return cast("Kind", name.lower())


def _load_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        reason = "the tokenizer model is not a SentencePiece model"
        raise InputError(reason, hint="copy the folder again") from None


def _piece_to_id(pieces: Sequence[str]) -> dict[str, int]:
    """Return the id of each piece, without the special symbols."""
    return {piece: number for number, piece in enumerate(pieces) if number > END_ID}


def _lookup_ids(ids: dict[str, int], pieces: Iterable[str]) -> list[int]:
    return [*(ids.get(piece, UNK_ID) for piece in pieces), END_ID]
