"""Text to ids and back by SentencePiece, with one vocabulary for both sides or one for each.

Paper: section 5.1 shares one vocabulary of about 37,000 byte-pair pieces between the sides, and so
does the default here; the size follows the corpus. Texts are normalised by `attendo.data.cleaning`,
SentencePiece changes nothing itself. `attendo.data.tokenizer_training` learns one.
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

from attendo.core.config import Config
from attendo.core.errors import ConfigError, InputError
from attendo.core.files import write_atomically
from attendo.core.hardware import usable_cores
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
"""From so many texts on, threads are worth their start."""
SPACE_SYMBOL, ESCAPE = "\u2581", "\uf8fe"
"""SentencePiece writes a space as U+2581; one in the text is escaped, so that it comes back."""
LABEL_ESCAPES = {" ": f"{ESCAPE}2", "<": f"{ESCAPE}3"}
"""SentencePiece must not cut a label at a space, nor take one like <s> for a symbol of its own."""
METADATA_FILE, SHARED_FILE = "tokenizer.json", "tokenizer.model"
SEPARATE_FILES = ("tokenizer.src.model", "tokenizer.tgt.model")


class TokenizerConfig(Config):
    """How the vocabulary is made."""

    kind: Kind = "bpe"
    shared: bool = True
    """One vocabulary for both sides, as in the paper."""
    vocab_size: Annotated[int, Field(ge=8)] | None = None
    """Pieces in a vocabulary; chosen from the size of the corpus when not given."""
    byte_fallback: bool = True
    """Spell an unknown character in bytes, so that every text comes back (bpe and unigram)."""
    character_coverage: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    """Share of the text whose characters get a piece; 0.9999, for char and word 1, by default."""
    max_sentences: Annotated[int, Field(ge=2)] = 500_000
    """Sentences of both sides together that SentencePiece learns from."""
    tgt_kind: TgtKind | None = None
    """How the target is cut where it differs from `kind`; "label" takes each target whole, as the
    name of a class. All of its pieces get in, so `vocab_size` is the source's alone."""
    src_from: str | None = None
    """A model folder whose source tokenizer is taken; only the target's is learnt."""
    src_sha256: str | None = None
    """What that tokenizer must be; found in its folder when not given."""
    split_digits: bool | None = None
    """Cut numbers into single digits (bpe and unigram): no pieces like "50" are learnt."""

    @model_serializer(mode="wrap")
    def _serialize_set_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Say nothing of what is not set: older runs and caches go on under their names."""
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
        if given is None or settings.get("src_sha256"):
            return settings
        return {**settings, "src_sha256": Tokenizer.load(given).src_fingerprint}

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        chosen = {"tgt_kind": self.tgt_kind, "src_from": self.src_from}
        named = [name for name, value in chosen.items() if value is not None]
        if self.shared and named:
            reason = f"{' and '.join(named)} part the vocabularies of the sides: set shared = false"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self


class Tokenizer:
    """Encode both sides, decode the target. Made by `train_tokenizer` or `Tokenizer.load`.

    >>> tokenizer = Tokenizer.load("runs/ko-en/model")  # doctest: +SKIP
    >>> tokenizer.decode_tgt(tokenizer.encode_tgt(["I am a student."]))  # doctest: +SKIP
    ['I am a student.']
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
        """How the target is cut."""
        return self._tgt_kind or self.kind

    @property
    def src_vocab_size(self) -> int:
        """Pieces of the source, the four special ones included."""
        return self._src.get_piece_size()

    @property
    def tgt_vocab_size(self) -> int:
        """Pieces of the target; with a shared vocabulary the same."""
        return self._tgt.get_piece_size()

    @property
    def models(self) -> tuple[bytes, bytes]:
        """The SentencePiece models of source and target; with a shared vocabulary the same."""
        return self._models[0], self._models[-1]

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the models: equal where the ids of every text are equal."""
        return hashlib.sha256(b"".join(self._models)).hexdigest()

    @property
    def src_fingerprint(self) -> str:
        """The same of the source alone."""
        return hashlib.sha256(self._models[0]).hexdigest()

    def encode_src(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Give the ids of each source text; END_ID is the last.

        With `dropout` each merge of byte-pair encoding is left out by that chance, so that a word
        is cut differently from time to time, the same for one seed and list of texts.
        """
        return _encode(self._src, _prepare_texts(texts), dropout=dropout, seed=seed)

    def encode_tgt(
        self, texts: Sequence[str], *, dropout: float = 0.0, seed: int = 0
    ) -> list[list[int]]:
        """Give the ids of each target text; END_ID is the last, START_ID is left to the model."""
        if self.tgt_kind == "label":
            return _encode(
                self._tgt, list(map(escape_label, _prepare_texts(texts))), dropout=0.0, seed=seed
            )
        processor = dropout if self.tgt_kind == self.kind else 0.0
        return _encode(self._tgt, _prepare_texts(texts), dropout=processor, seed=seed)

    def decode_tgt(self, id_lists: Iterable[Iterable[int]]) -> list[str]:
        """Give the text of each list of ids, up to its first END_ID; an unknown piece is a ⁇."""
        return [
            normalize(unescape_space_symbol(self._tgt.decode(_text_ids(ids)))) for ids in id_lists
        ]

    def src_pieces(self, ids: Iterable[int]) -> list[str]:
        """Give each source id as its piece, as SentencePiece writes it: a space is a ▁."""
        return [self._src.id_to_piece(int(piece_id)) for piece_id in ids]

    def src_surfaces(self, text: str) -> list[str]:
        """Give the part of a source text behind each of its ids; that of END_ID is empty."""
        proto: Any = self._src.encode(escape_space_symbol(normalize(text)), out_type="proto")
        return [*(unescape_space_symbol(piece.surface) for piece in proto.pieces), ""]

    def tgt_pieces(self, ids: Iterable[int]) -> list[str]:
        """Give each target id as its piece."""
        pieces = [self._tgt.id_to_piece(int(piece_id)) for piece_id in ids]
        return [_unescape_label(piece) for piece in pieces] if self.tgt_kind == "label" else pieces

    @property
    def labels(self) -> list[str]:
        """The target's pieces as texts, ids from 4 on: the classes, where it is made of labels."""
        ids = range(len(SPECIAL_IDS), self.tgt_vocab_size)
        return self.decode_tgt([number] for number in ids)

    def save(self, directory: str | Path) -> None:
        """Write the models, and last the JSON that tells of them, into a folder."""
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
        """Read what `save` wrote; a file that is missing or changed is an `InputError`."""
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
            raise _unusable_error(folder, f"the models are not those that {METADATA_FILE} tells of")
        return cls(*models, kind=kind, tgt_kind=tgt_kind)


def _load_processor(model: bytes) -> sentencepiece.SentencePieceProcessor:
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = {name: getattr(processor, name)() for name in SPECIAL_IDS}
    except RuntimeError:
        reason = "the model of the tokenizer is no SentencePiece model"
        raise InputError(reason, hint="train the tokenizer again") from None
    if ids != SPECIAL_IDS:
        reason = f"the SentencePiece model has the special ids {ids}"
        raise InputError(reason, hint=f"train one with {SPECIAL_IDS}")
    return processor


def _prepare_texts(texts: Sequence[str]) -> list[str]:
    return [escape_space_symbol(normalize(text)) for text in texts]


def escape_label(text: str) -> str:
    """Write a label so that SentencePiece takes it for one word."""
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
    """Cut texts into pieces of the `form` that is asked for (see SentencePiece's `encode`)."""
    if dropout:
        sentencepiece.set_random_generator_seed(seed % 2**32)
        return processor.encode(
            texts,
            enable_sampling=True,
            alpha=dropout,
            num_threads=1,  # several share the texts differently each time
            **output_format,
        )
    if len(texts) < PARALLEL_THRESHOLD:  # one by one: SentencePiece starts a thread for every list
        return [processor.encode(text, **output_format) for text in texts]
    return processor.encode(texts, num_threads=usable_cores(), **output_format)


def _text_ids(ids: Iterable[int]) -> list[int]:
    real = []
    for number in map(int, ids):
        if number == END_ID:
            break
        if number not in (PAD_ID, START_ID):
            real.append(number)
    return real


def escape_space_symbol(text: str) -> str:
    """Write SentencePiece's mark of a space in another way."""
    if text.isascii():
        return text
    return text.replace(ESCAPE, f"{ESCAPE}0").replace(SPACE_SYMBOL, f"{ESCAPE}1")


def unescape_space_symbol(text: str) -> str:
    """Give back what was escaped for SentencePiece."""
    text = _unescape_label(text) if ESCAPE in text else text
    return text.replace(f"{ESCAPE}1", SPACE_SYMBOL).replace(f"{ESCAPE}0", ESCAPE)


def _model_files(is_shared: bool) -> tuple[str, ...]:
    return (SHARED_FILE,) if is_shared else SEPARATE_FILES


def _unusable_error(folder: Path, reason: str) -> InputError:
    hint = "copy the whole folder again, or train the tokenizer again"
    return InputError(
        message("no tokenizer in {path}: {detail}", path=folder, detail=reason), hint=hint
    )
