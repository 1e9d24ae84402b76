"""Tokens of one side with their surface text: how words split, and where to truncate."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from attendo.inspection.record import Token, TokenSide
from attendo.text.tokenizer import (
    END_ID,
    ESCAPE,
    PAD_ID,
    SPACE_SYMBOL,
    START_ID,
    UNK_ID,
    unescape_space_symbol,
)
from attendo.translator.confidence import tokens_to_words
from attendo.translator.unknown_words import UNKNOWN_MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.tokenizer import Tokenizer

INVISIBLE_IDS = (PAD_ID, START_ID, END_ID)
BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def target_surfaces(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Return the part of the target text of each id, as `Tokenizer.src_surfaces` does."""
    surfaces: list[str] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for number, piece in zip(ids, tokenizer.tgt_pieces(ids), strict=True):
        byte = BYTE_PIECE.fullmatch(piece)
        if byte:
            surfaces.append(decoder.decode(bytes.fromhex(byte[1])))
            continue
        if unfinished := decoder.decode(b"", final=True):
            surfaces[-1] += unfinished
        if number == UNK_ID:
            surfaces.append(f" {UNKNOWN_MARK}" if tokenizer.tgt_kind == "word" else UNKNOWN_MARK)
        else:
            surfaces.append("" if number in INVISIBLE_IDS else piece.replace(SPACE_SYMBOL, " "))
    if unfinished := decoder.decode(b"", final=True):
        surfaces[-1] += unfinished
    return merge_split_characters(
        [unescape_space_symbol(text) for text in [surfaces[0].lstrip(" "), *surfaces[1:]]]
    )


def merge_split_characters(surfaces: list[str]) -> list[str]:
    """Merge characters that were escaped for SentencePiece and then split by it."""
    is_open = False
    for index, surface in enumerate(surfaces):
        if is_open and surface[:1] in ("0", "1"):
            surfaces[index - 1] = surfaces[index - 1][:-1]
            surfaces[index], is_open = unescape_space_symbol(ESCAPE + surface), False
        else:
            is_open = surface.endswith(ESCAPE)
    return surfaces


def build_side(
    text: str, ids: Sequence[int], pieces: Sequence[str], surfaces: Sequence[str]
) -> TokenSide:
    """Return ids, pieces and surfaces of one side, each with the index of its word."""
    words: list[str] = []
    word_of_token: dict[int, int] = {}
    for indices in tokens_to_words(
        [SPACE_SYMBOL * surface.startswith(" ") for surface in surfaces]
    ):
        word = "".join(surfaces[index] for index in indices).strip()
        if word:  # a lone space is not a word
            word_of_token |= dict.fromkeys(indices, len(words))
            words.append(word)
    tokens = [
        Token(
            id=number,
            piece=piece,
            text=surfaces[index].strip(),
            word=None if number in INVISIBLE_IDS else word_of_token.get(index),
        )
        for index, (number, piece) in enumerate(zip(ids, pieces, strict=True))
    ]
    return TokenSide(text=text, tokens=tokens, words=words)


def last_word_boundary(surfaces: Sequence[str], max_tokens: int) -> int:
    """Return the number of tokens to keep: whole words, or as much as fits of a single one."""
    word_starts = [index for index in range(1, max_tokens + 1) if surfaces[index].startswith(" ")]
    return word_starts[-1] if word_starts else max_tokens
