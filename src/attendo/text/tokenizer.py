"""Text to ids and back with SentencePiece, with a shared vocabulary or one per side.

Paper: section 5.1 shares one vocabulary of about 37,000 byte-pair pieces between source and target.
So does the default here; the size depends on the corpus. Texts are normalized by
`attendo.text.normalize`, SentencePiece's own normalization is off. Training a tokenizer is in
`attendo.data.tokenizer_training`.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import sentencepiece
from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from attendo.core.config import MAX_COUNT, MAX_SIZE, Config
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.text.normalize import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Kind = Literal["bpe", "unigram", "char", "word"]
TgtKind = Literal["bpe", "unigram", "char", "word", "label"]
PAD_ID, UNK_ID, START_ID, END_ID = 0, 1, 2, 3
SPECIAL_IDS: dict[str, Any] = {
    "pad_id": PAD_ID,
    "unk_id": UNK_ID,
    "bos_id": START_ID,
    "eos_id": END_ID,
}

PARALLEL_THRESHOLD = 64
"""Number of texts from which multi-threaded encoding is faster."""
SPACE_SYMBOL, ESCAPE = "\u2581", "\uf8fe"
"""SentencePiece writes a space as U+2581; the same character in a text is escaped."""
LABEL_ESCAPES = {" ": f"{ESCAPE}2", "<": f"{ESCAPE}3"}
"""SentencePiece must not split a label at a space, nor mistake one like <s> for a symbol."""
METADATA_FILE, SHARED_FILE = "tokenizer.json", "tokenizer.model"
SEPARATE_FILES = ("tokenizer.src.model", "tokenizer.tgt.model")


class TokenizerConfig(Config):
    """Settings of the tokenizer and its vocabulary."""

    kind: Kind = "bpe"
    shared: bool = True
    """One vocabulary for both sides, as in the paper."""
    vocab_size: Annotated[int, Field(ge=8, le=MAX_SIZE)] | None = None
    """Number of pieces; chosen from the size of the corpus if not given."""
    byte_fallback: bool = True
    """Encode an unknown character as bytes, so that every text is restored (bpe, unigram)."""
    character_coverage: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Fraction of the text whose characters get a piece; default 0.9999, for char and word 1."""
    max_sentences: Annotated[int, Field(ge=2, le=MAX_COUNT)] = 500_000
    """Maximum number of sentences, of both sides together, that SentencePiece trains on."""
    tgt_kind: TgtKind | None = None
    """Kind of the target tokenizer, if different from `kind`; "label" takes each target as one
    token, the name of a class. The target keeps all its pieces: `vocab_size` is of the source."""
    src_from: str | None = None
    """A model folder whose source tokenizer is reused; only the target tokenizer is trained."""
    src_sha256: str | None = None
    """Checksum of that tokenizer; read from its folder if not given."""
    split_digits: bool | None = None
    """Split numbers into single digits (bpe and unigram): there are no pieces like "50"."""

    @model_serializer(mode="wrap")
    def _serialize_set_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out options that are not set, so that the keys of older caches stay valid."""
        optional_keys = ("tgt_kind", "src_from", "src_sha256", "split_digits")
        serialized: dict[str, Any] = serialize(self)
        return {
            key: value
            for key, value in serialized.items()
            if value is not None or key not in optional_keys
        }

    @model_validator(mode="before")
    @classmethod
    def _resolve_source(cls, settings: Any) -> Any:
        given = settings.get("src_from") if isinstance(settings, dict) else None
        if not isinstance(given, str) or settings.get("src_sha256"):
            return settings
        return {**settings, "src_sha256": Tokenizer.load(given).src_fingerprint}

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        chosen = {"tgt_kind": self.tgt_kind, "src_from": self.src_from}
        named = [name for name, value in chosen.items() if value is not None]
        if self.shared and named:
            reason = message(
                "{names} need separate vocabularies: set shared = false", names=" and ".join(named)
            )
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self


class Tokenizer:
    """Encodes both sides and decodes the target.

    Created by `attendo.data.tokenizer_training.train_tokenizer` or `Tokenizer.load`.

    >>> tokenizer = Tokenizer.load("runs/ko-en/model")  # doctest: +SKIP
    >>> tokenizer.decode_tgt(tokenizer.encode_tgt(["I am a student."]))  # doctest: +SKIP
    ['I am a student.']

    Args:
        src_model: The serialized SentencePiece model of the source.
        tgt_model: That of the target; None if both sides share one vocabulary.
        kind: Kind of the source tokenizer.
        tgt_kind: Kind of the target tokenizer, if different.

    Raises:
        InputError: If a model cannot be read or has other special ids.

    """

    _tgt_kind: TgtKind | None = None

    def __init__(
        self,
        src_model: bytes,
        tgt_model: bytes | None = None,
        *,
        kind: Kind,
        tgt_kind: TgtKind | None = None,
    ) -> None:
        self.kind = kind
        self._tgt_kind = tgt_kind
        self.is_shared = tgt_model is None
        self._models: tuple[bytes, ...] = (
            (src_model,) if tgt_model is None else (src_model, tgt_model)
        )
        processors = [_load_processor(model) for model in self._models]
        self._src, self._tgt = processors[0], processors[-1]

    @property
    def tgt_kind(self) -> TgtKind:
        """Kind of the target tokenizer."""
        return self._tgt_kind or self.kind

    @property
    def src_vocab_size(self) -> int:
        """Number of source pieces, including the four special symbols."""
        return self._src.get_piece_size()

    @property
    def tgt_vocab_size(self) -> int:
        """Number of target pieces; the same number if the vocabulary is shared."""
        return self._tgt.get_piece_size()

    @property
    def models(self) -> tuple[bytes, bytes]:
        """SentencePiece models of source and target; the same one if the vocabulary is shared."""
        return self._models[0], self._models[-1]

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the models: equal if every text has the same ids."""
        return hashlib.sha256(b"".join(self._models)).hexdigest()

    @property
    def src_fingerprint(self) -> str:
        """SHA-256 of the source model alone."""
        return hashlib.sha256(self._models[0]).hexdigest()

    def encode_src(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Return the ids of each source text.

        Args:
            texts: The texts; they are normalized first.
            dropout: Probability with which each BPE merge is skipped, so that a word is split in
                different ways (BPE-dropout).
            seed: Seed of the dropout: the same seed and texts give the same ids.

        Returns:
            One list of ids per text; the last id is END_ID.

        """
        return _encode(self._src, _prepare_texts(texts), dropout=dropout, seed=seed)

    def encode_tgt(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Return the ids of each target text; the arguments are those of `encode_src`.

        Returns:
            One list of ids per text; the last id is END_ID, START_ID is added by the batching.

        """
        if self.tgt_kind == "label":
            return _encode(
                self._tgt, list(map(escape_label, _prepare_texts(texts))), dropout=0.0, seed=seed
            )
        tgt_dropout = dropout if self.tgt_kind == self.kind else 0.0
        return _encode(self._tgt, _prepare_texts(texts), dropout=tgt_dropout, seed=seed)

    def decode_tgt(self, id_lists: Iterable[Iterable[int]]) -> list[str]:
        """Return the text of each list of ids.

        Args:
            id_lists: Target ids; what follows the first END_ID is ignored.

        Returns:
            One normalized text per list; UNK_ID becomes ⁇.

        """
        texts = decode_ids(self._tgt, [_text_ids(ids) for ids in id_lists])
        return [normalize(unescape_space_symbol(text)) for text in texts]

    def src_pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the SentencePiece piece of each source id; a space is written as ▁."""
        return [self._src.id_to_piece(int(piece_id)) for piece_id in ids]

    def src_surfaces(self, text: str) -> list[str]:
        """Return the part of a source text that each of its ids covers; END_ID covers nothing."""
        proto: Any = self._src.encode(escape_space_symbol(normalize(text)), out_type="proto")
        return [*(unescape_space_symbol(piece.surface) for piece in proto.pieces), ""]

    def tgt_pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the piece of each target id."""
        pieces = [self._tgt.id_to_piece(int(piece_id)) for piece_id in ids]
        return [_unescape_label(piece) for piece in pieces] if self.tgt_kind == "label" else pieces

    @property
    def labels(self) -> list[str]:
        """Target pieces as texts, from id 4 on: the classes, if the target consists of labels."""
        ids = range(len(SPECIAL_IDS), self.tgt_vocab_size)
        return self.decode_tgt([number] for number in ids)

    def save(self, directory: str | Path) -> None:
        """Write the models and, last, the JSON metadata to a folder."""
        from attendo.core.files import write_atomically

        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        for name, model in zip(_model_files(self.is_shared), self._models, strict=True):
            write_atomically(folder / name, model)
        info = {"kind": self.kind, "shared": self.is_shared, "sha256": self.fingerprint}
        if self.tgt_kind != self.kind:
            info["tgt_kind"] = self.tgt_kind
        write_atomically(folder / METADATA_FILE, json.dumps(info, indent=2) + "\n")

    @classmethod
    def load(cls, directory: str | Path) -> Tokenizer:
        """Read a tokenizer from a folder that `save` wrote, e.g. a model folder.

        Args:
            directory: The folder.

        Returns:
            The tokenizer; a `ForeignTokenizer` if the model was imported.

        Raises:
            InputError: If a file is missing, unreadable or changed.

        """
        folder = Path(directory)
        try:
            info = json.loads((folder / METADATA_FILE).read_text(encoding="utf-8"))
            if "vocabulary" in info:
                from attendo.text.foreign_tokenizer import ForeignTokenizer

                return ForeignTokenizer.load_from(folder, info)
            kind, is_shared, expected = info["kind"], info["shared"], info["sha256"]
            tgt_kind = info.get("tgt_kind")
            models = [(folder / name).read_bytes() for name in _model_files(is_shared)]
        except FileNotFoundError as error:
            raise _unusable_error(
                folder, message("{path} is missing", path=error.filename)
            ) from None
        except OSError as error:
            raise _unusable_error(folder, f"{error.filename}: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise _unusable_error(folder, f"{METADATA_FILE} is broken ({error})") from None
        if hashlib.sha256(b"".join(models)).hexdigest() != expected:
            raise _unusable_error(
                folder, f"the models do not match the checksum in {METADATA_FILE}"
            )
        return cls(*models, kind=kind, tgt_kind=tgt_kind)


def _load_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = {name: getattr(processor, name)() for name in SPECIAL_IDS}
    except RuntimeError:
        reason = "the tokenizer model is not a SentencePiece model"
        raise InputError(reason, hint="train the tokenizer again") from None
    if ids != SPECIAL_IDS:
        reason = message("the SentencePiece model has the special ids {ids}", ids=ids)
        raise InputError(reason, hint=message("train one with {ids}", ids=SPECIAL_IDS))
    return processor


def _prepare_texts(texts: Sequence[str]) -> list[str]:
    return [escape_space_symbol(normalize(text)) for text in texts]


def escape_label(text: str) -> str:
    """Escape a label so that SentencePiece takes it for one word."""
    for character, escaped in LABEL_ESCAPES.items():
        text = text.replace(character, escaped)
    return text


def _unescape_label(text: str) -> str:
    for character, escaped in LABEL_ESCAPES.items():
        text = text.replace(escaped, character)
    return text


def _encode(
    processor: sentencepiece.SentencePieceProcessor,
    prepared: list[str],
    *,
    dropout: float,
    seed: int,
) -> list[list[int]]:
    rows = encode_texts(processor, prepared, dropout=dropout, seed=seed, out_type=int, add_eos=True)
    return list(rows)


def encode_texts(
    processor: sentencepiece.SentencePieceProcessor,
    texts: list[str],
    *,
    dropout: float,
    seed: int,
    **output_format: Any,
) -> Any:
    """Split texts into pieces; `output_format` is passed to SentencePiece's `encode`."""
    if dropout:
        sentencepiece.set_random_generator_seed(seed % 2**32)
        return processor.encode(
            texts,
            enable_sampling=True,
            alpha=dropout,
            num_threads=1,  # several threads would make the result depend on timing
            **output_format,
        )
    if len(texts) < PARALLEL_THRESHOLD:  # SentencePiece starts a thread even for a short list
        return [processor.encode(text, **output_format) for text in texts]
    from attendo.core.hardware import usable_cores

    return processor.encode(texts, num_threads=usable_cores(), **output_format)


def decode_ids(processor: sentencepiece.SentencePieceProcessor, rows: list[Any]) -> list[str]:
    """Return the text of each row of ids or of pieces."""
    filled = [row for row in rows if row]  # SentencePiece takes an empty row for one of ids
    if len(filled) > 1:
        decoded = iter(processor.decode(filled, num_threads=1))
        return [next(decoded) if row else "" for row in rows]
    return [processor.decode(row) if row else "" for row in rows]


def _text_ids(ids: Iterable[int]) -> list[int]:
    text_ids = list(map(int, ids))
    if not (END_ID in text_ids or PAD_ID in text_ids or START_ID in text_ids):
        return text_ids
    given, text_ids = text_ids, []
    for number in given:
        if number == END_ID:
            break
        if number not in (PAD_ID, START_ID):
            text_ids.append(number)
    return text_ids


def escape_space_symbol(text: str) -> str:
    """Escape the character that SentencePiece uses for a space."""
    if text.isascii():
        return text
    return text.replace(ESCAPE, f"{ESCAPE}0").replace(SPACE_SYMBOL, f"{ESCAPE}1")


def unescape_space_symbol(text: str) -> str:
    """Undo `escape_space_symbol` and `escape_label`."""
    if ESCAPE not in text:
        return text
    return _unescape_label(text).replace(f"{ESCAPE}1", SPACE_SYMBOL).replace(f"{ESCAPE}0", ESCAPE)


def _model_files(is_shared: bool) -> tuple[str, ...]:
    return (SHARED_FILE,) if is_shared else SEPARATE_FILES


def _unusable_error(folder: Path, reason: str) -> InputError:
    hint = "copy the whole folder again, or train the tokenizer again"
    return InputError(
        message("no tokenizer in {path}: {detail}", path=folder, detail=reason), hint=hint
    )
