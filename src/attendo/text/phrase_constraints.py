"""Required and forbidden phrases for constrained decoding, checked on text rather than on ids.

A text can be tokenized in many ways, letter by letter or byte by byte, so phrases are searched in
the decoded text. `IncrementalDetokenizer` decodes like `Tokenizer.decode_tgt`, without calling
SentencePiece at every decoding step. What counts as a match is defined in `attendo.text.glossary`.
"""

from __future__ import annotations

import codecs
import re
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.text.glossary import casefold_1to1, find_occurrences, ignores_case
from attendo.text.normalize import normalize
from attendo.text.sentences import ends_with_punctuation
from attendo.text.tokenizer import (
    END_ID,
    PAD_ID,
    SPACE_SYMBOL,
    START_ID,
    UNK_ID,
    unescape_space_symbol,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.tokenizer import Tokenizer

BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
MAX_CACHED_TEXTS = 4096
"""Number of decoded texts that are cached; the cache is cleared when it is full."""


class PartialText(NamedTuple):
    """A text that may continue, normalized: as written, in lower case, and as UTF-8.

    White space at the end is kept as one space, since it ends a word; a last character with missing
    bytes is left out.
    """

    text: str
    folded: str
    utf8: bytes


class IncrementalDetokenizer:
    """Decodes target ids incrementally; one instance serves all phrases of a tokenizer."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self._piece_bytes = _PieceBytes(tokenizer)
        self._cache: dict[tuple[int, ...], PartialText] = {}

    @cached_property
    def ending_ids(self) -> frozenset[int]:
        """The target ids whose text ends with punctuation that may end a sentence."""
        pieces = self.tokenizer.tgt_pieces(range(self.tokenizer.tgt_vocab_size))
        return frozenset(
            number for number, piece in enumerate(pieces) if ends_with_punctuation(piece)
        )

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of ids up to the first END_ID, as `Tokenizer.decode_tgt` does."""
        return normalize(_decode_utf8(self._to_bytes(tuple(ids)), is_final=True))

    def decode_partial(self, ids: tuple[int, ...]) -> PartialText:
        """Return the text of ids that may continue."""
        partial = self._cache.get(ids)
        if partial is None:
            utf8 = self._to_bytes(ids)
            # A letter after the text keeps white space from being trimmed.
            text = normalize(_decode_utf8(utf8, is_final=False) + "x")[:-1]
            partial = PartialText(text, casefold_1to1(text), utf8)
            if len(self._cache) >= MAX_CACHED_TEXTS:
                self._cache.clear()
            self._cache[ids] = partial
        return partial

    def _to_bytes(self, ids: tuple[int, ...]) -> bytes:
        if END_ID in ids:
            ids = ids[: ids.index(END_ID)]
        prefix = self._cache.get(ids[:-1])
        if prefix is not None and ids:
            return prefix.utf8 + self._piece_bytes[ids[-1]]
        return b"".join([self._piece_bytes[number] for number in ids])


class RequiredPhrase:
    """A phrase that the translation must contain."""

    def __init__(self, detokenizer: IncrementalDetokenizer, phrase: str) -> None:
        self.phrase, self.tokens = _normalize_phrase(detokenizer, phrase)
        self._detokenizer = detokenizer
        self._ignores_case = ignores_case(self.phrase)

    def is_satisfied(self, ids: Sequence[int]) -> bool:
        """Return whether the text of ids contains the phrase, if the text ends there.

        Later tokens may undo it: "a cat" contains "cat", "a catalog" does not.
        """
        partial = self._detokenizer.decode_partial(tuple(ids))
        text = partial.folded if self._ignores_case else partial.text
        return next(find_occurrences(self.phrase, text), None) is not None

    def find_spans(self, text: str) -> list[tuple[int, int]]:
        """Return start and end of every occurrence of the phrase in a normalized text."""
        found = casefold_1to1(text) if self._ignores_case else text
        return [(start, start + len(self.phrase)) for start in find_occurrences(self.phrase, found)]


class ForbiddenPhrase:
    """A phrase that the translation must not contain, however it is tokenized."""

    def __init__(self, detokenizer: IncrementalDetokenizer, phrase: str) -> None:
        self.phrase, _ = _normalize_phrase(detokenizer, phrase)
        self._detokenizer = detokenizer
        self._ignores_case = ignores_case(self.phrase)

    def violates(self, ids: Sequence[int], next_id: int) -> bool:
        """Return whether `next_id` (or END_ID) after `ids` completes the phrase.

        "cat" is complete when the word ends, since it may become "catalog" until then. Occurrences
        in `ids` are not counted again, so that a forced prefix may contain the phrase.
        """
        before = tuple(ids)
        is_end = next_id == END_ID
        after = before if is_end else (*before, next_id)
        count = self._count_occurrences(after, is_whole=is_end)
        return count > 0 and count > self._count_occurrences(before, is_whole=False)

    def _count_occurrences(self, ids: tuple[int, ...], *, is_whole: bool) -> int:
        partial = self._detokenizer.decode_partial(ids)
        text = partial.folded if self._ignores_case else partial.text
        if self.phrase not in text:
            return 0
        return sum(1 for _ in find_occurrences(self.phrase, text, is_whole=is_whole))


def _normalize_phrase(
    detokenizer: IncrementalDetokenizer, phrase: str
) -> tuple[str, tuple[int, ...]]:
    """Return a normalized phrase and its ids, or raise an `InputError`."""
    text = normalize(phrase)
    if not text:
        reason = message("the phrase {phrase} is empty", phrase=repr(phrase))
        raise InputError(reason, hint="give a phrase with at least one visible character")
    ids = detokenizer.tokenizer.encode_tgt([text])[0][:-1]
    if UNK_ID in ids:
        raise InputError(
            message(
                "the model cannot write the phrase '{phrase}': {detail}",
                phrase=text,
                detail=_list_unknown_parts(text, detokenizer.tokenizer),
            ),
            hint="choose other words, or train with a vocabulary that has byte_fallback",
        )
    return text, tuple(ids)


def _list_unknown_parts(text: str, tokenizer: Tokenizer) -> str:
    parts = text.split() if tokenizer.tgt_kind == "word" else [*dict.fromkeys(text)]
    encoded = tokenizer.encode_tgt(parts)
    unknown = [part for part, ids in zip(parts, encoded, strict=True) if UNK_ID in ids]
    return message("its vocabulary lacks {letters}", letters=", ".join(unknown))


class _PieceBytes(dict[int, bytes]):
    """The UTF-8 bytes of each id, computed on first use; a byte piece is its byte."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        super().__init__({PAD_ID: b"", START_ID: b"", END_ID: b""})
        self._tokenizer = tokenizer

    def __missing__(self, number: int) -> bytes:
        self[number] = utf8 = self._piece_to_bytes(int(number))
        return utf8

    def _piece_to_bytes(self, number: int) -> bytes:
        if number == UNK_ID:
            return self._unknown_surface().encode()
        (piece,) = self._tokenizer.tgt_pieces([number])
        match = BYTE_PIECE.fullmatch(piece)
        # Without byte_fallback, "<0x41>" may be a piece of text.
        if match and self._tokenizer.decode_tgt([[number]]) != [piece]:
            return bytes.fromhex(match[1])
        return piece.replace(SPACE_SYMBOL, " ").encode()

    def _unknown_surface(self) -> str:
        """Return the sign for an unknown piece, with the spaces that the decoder puts around it."""
        pieces = self._tokenizer.tgt_pieces(range(self._tokenizer.tgt_vocab_size))
        words = (number for number, piece in enumerate(pieces) if piece.isalnum())
        other = next(words, UNK_ID)  # if every piece begins with a space, test next to itself
        sign, left, right = self._tokenizer.decode_tgt([[UNK_ID], [other, UNK_ID], [UNK_ID, other]])
        spaces = [" " if f" {sign}" in left else "", " " if f"{sign} " in right else ""]
        return sign.join(spaces)


def _decode_utf8(utf8: bytes, *, is_final: bool) -> str:
    """Return the text of bytes; an invalid byte becomes �, as in SentencePiece."""
    decoded = []
    while True:
        try:
            text, _ = codecs.utf_8_decode(utf8, "strict", is_final)
            break
        except UnicodeDecodeError as error:
            decoded.append(utf8[: error.start].decode() + "\ufffd")
            utf8 = utf8[error.start + 1 :]
    return unescape_space_symbol("".join((*decoded, text)))
