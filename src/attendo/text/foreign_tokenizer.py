"""The tokenizer of a model from elsewhere: its SentencePiece models, its vocabulary, our ids.

Other toolkits give the pieces of SentencePiece ids of their own, out of a vocabulary beside the
models, and have other symbols: Marian starts the decoder with its padding, fairseq with its end
symbol. Everything here counts on PAD_ID, UNK_ID, START_ID and END_ID. So an imported vocabulary is
renumbered once: the four symbols first, the other pieces in their own order. The rows of the
weights follow the same order (`attendo.interop.weight_mapping`), which is exact.
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
    encode_texts,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

VOCABULARY_FILE = "tokenizer.vocab.json"
SPECIAL_PIECES = ("<pad>", "<unk>", "<s>", "</s>")
"""What our four symbols are called, whatever they were called there."""
NO_FOREIGN_ID = -1
"""In the place of an id of theirs: they have no such symbol."""
LANGUAGE_CODE = re.compile(r">>.+?<<")
"""How a text begins that tells a model of many languages which one to write."""


class ForeignSymbols(NamedTuple):
    """The ids that mean no text, in the other vocabulary; several may be the same."""

    pad: int
    unk: int
    start: int
    end: int


class ForeignVocabulary(NamedTuple):
    """The pieces of one side, or of both, in their own order."""

    pieces: list[str]
    symbols: ForeignSymbols

    @property
    def foreign_ids(self) -> list[int]:
        """Give for each id of ours the id of theirs, `NEW` where they have none.

        Where padding starts the decoder, it becomes our start symbol, and our padding is new.

        >>> pieces = ["</s>", "<unk>", "a", "b", "<pad>"]
        >>> ForeignVocabulary(pieces, ForeignSymbols(pad=4, unk=1, start=4, end=0)).order
        [-1, 1, 4, 0, 2, 3]
        """
        symbols = self.symbols
        is_other = symbols.pad in (symbols.unk, symbols.start, symbols.end)
        first_ids = [
            NO_FOREIGN_ID if is_other else symbols.pad,
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
        """Name the symbols of ours that no column of their logits belongs to."""
        is_copy = self.symbols.start == self.symbols.end
        return [PAD_ID] * (self.foreign_ids[PAD_ID] == NO_FOREIGN_ID) + [START_ID] * is_copy

    @property
    def native_pieces(self) -> list[str]:
        """Give the pieces in the order of our ids."""
        return [
            *SPECIAL_PIECES,
            *(self.pieces[number] for number in self.foreign_ids[END_ID + 1 :]),
        ]


class ForeignTokenizer(Tokenizer):
    """Encodes as the other toolkit does, with ids of ours.

    Args:
        models: the SentencePiece models of source and target; the same one twice where they share.
        vocabularies: one for both sides, or one for each.
        code: what is put before each source, e.g. ">>fra<<", unless it begins with such a code.

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
            known = f"it knows {', '.join(codes)}" if codes else "it knows no codes: give none"
            raise InputError(f"the vocabulary has no language code {language_code}", hint=known)

    @property
    def src_vocab_size(self) -> int:
        """Pieces of the source, the four special ones included."""
        return len(self._src_pieces)

    @property
    def tgt_vocab_size(self) -> int:
        """Pieces of the target; with a shared vocabulary the same."""
        return len(self._tgt_pieces)

    @property
    def language_codes(self) -> list[str]:
        """The language codes that a source may begin with, in models of many languages."""
        return [piece for piece in self._src_pieces if LANGUAGE_CODE.fullmatch(piece)]

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of models and vocabulary: equal where the ids of every text are equal."""
        return hashlib.sha256(b"".join((*self._models, self._serialize_vocabulary()))).hexdigest()

    def encode_src(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Give the ids of each source text, behind its language code; END_ID is the last."""
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
        """Give the ids of each target text; END_ID is the last, START_ID is left to the model."""
        prepared = [normalize(text) for text in texts]
        rows = encode_texts(self._tgt, prepared, dropout=dropout, seed=seed, out_type=str)
        return [_lookup_ids(self._tgt_ids, row) for row in rows]

    def decode_tgt(self, id_lists: Iterable[Iterable[int]]) -> list[str]:
        """Give the text of each list of ids, up to its first END_ID; an unknown piece is a ⁇."""
        texts = (self._tgt.decode(self._to_text_pieces(ids)) for ids in id_lists)
        # The model of one side leaves a space of the other side's pieces as it is written.
        return [normalize(text.replace(SPACE_SYMBOL, " ")) for text in texts]

    def src_pieces(self, ids: Iterable[int]) -> list[str]:
        """Give each source id as its piece, as SentencePiece writes it: a space is a ▁."""
        return [self._src_pieces[int(number)] for number in ids]

    def src_surfaces(self, text: str) -> list[str]:
        """Give the part of a source text behind each of its ids; that of END_ID is empty."""
        code, rest = self._split_language_code(text)
        proto: Any = self._src.encode(rest, out_type="proto")
        return [*([code] if code else []), *(piece.surface for piece in proto.pieces), ""]

    def tgt_pieces(self, ids: Iterable[int]) -> list[str]:
        """Give each target id as its piece."""
        return [self._tgt_pieces[int(number)] for number in ids]

    def save(self, directory: str | Path) -> None:
        """Write models and vocabulary, and last the JSON that tells of them, into a folder."""
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
        """Read what `save` wrote; `Tokenizer.load` calls this and words what goes wrong."""
        models = [(folder / name).read_bytes() for name in SEPARATE_FILES]
        vocabulary = (folder / str(info["vocabulary"])).read_bytes()
        if hashlib.sha256(b"".join((*models, vocabulary))).hexdigest() != info["sha256"]:
            raise ValueError("models and vocabulary are not those that it tells of")
        saved = json.loads(vocabulary)
        sides = [
            ForeignVocabulary(side["pieces"], ForeignSymbols(**side["symbols"]))
            for side in saved["sides"]
        ]
        return cls(models, sides, language_code=saved["code"])

    def _split_language_code(self, text: str) -> tuple[str | None, str]:
        """Part the language code from a source, or take the one that was given for all."""
        clean = normalize(text)
        text_code = LANGUAGE_CODE.match(clean)
        return (
            (text_code[0], clean[text_code.end() :]) if text_code else (self.language_code, clean)
        )

    def _to_text_pieces(self, ids: Iterable[int]) -> list[str]:
        """Give the pieces that are said, the unknown one as the model calls it."""
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
    """Read out of a SentencePiece model how it cuts."""
    protocol: Any = import_module("sentencepiece.sentencepiece_model_pb2")
    parsed = protocol.ModelProto()
    parsed.ParseFromString(model)
    name = protocol.TrainerSpec.ModelType.Name(parsed.trainer_spec.model_type)
    return cast("Kind", name.lower())


def _load_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        return sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError:
        reason = "the model of the tokenizer is no SentencePiece model"
        raise InputError(reason, hint="copy the folder again") from None


def _piece_to_id(pieces: Sequence[str]) -> dict[str, int]:
    """Find ids by pieces; what stands for one of our symbols is no text."""
    return {piece: number for number, piece in enumerate(pieces) if number > END_ID}


def _lookup_ids(ids: dict[str, int], pieces: Iterable[str]) -> list[int]:
    return [*(ids.get(piece, UNK_ID) for piece in pieces), END_ID]
