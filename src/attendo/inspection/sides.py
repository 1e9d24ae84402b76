"""The tokens of one side and the text behind each: how words split, and where to cut."""

from __future__ import annotations

import codecs
import re
from typing import TYPE_CHECKING

from attendo.data.tokenizer import END_ID, ESCAPE, PAD_ID, SPACE_MARK, START_ID, UNK_ID, unescape
from attendo.inspection.record import Side, Token
from attendo.translator.confidence import group_words
from attendo.translator.unknown import MARK

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.tokenizer import Tokenizer

SILENT = (PAD_ID, START_ID, END_ID)
BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def show_tgt(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Give the part of the target text behind each id, as `Tokenizer.src_surfaces` does."""
    shown: list[str] = []
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for number, piece in zip(ids, tokenizer.tgt_pieces(ids), strict=True):
        byte = BYTE_PIECE.fullmatch(piece)
        if byte:
            shown.append(decoder.decode(bytes.fromhex(byte[1])))
            continue
        if unfinished := decoder.decode(b"", final=True):
            shown[-1] += unfinished
        if number == UNK_ID:
            shown.append(f" {MARK}" if tokenizer.tgt_kind == "word" else MARK)
        else:
            shown.append("" if number in SILENT else piece.replace(SPACE_MARK, " "))
    if unfinished := decoder.decode(b"", final=True):
        shown[-1] += unfinished
    return mend([unescape(text) for text in [shown[0].lstrip(" "), *shown[1:]]])


def mend(surfaces: list[str]) -> list[str]:
    """Put together what was escaped for SentencePiece and then parted by it."""
    is_open = False
    for place, surface in enumerate(surfaces):
        if is_open and surface[:1] in ("0", "1"):
            surfaces[place - 1] = surfaces[place - 1][:-1]
            surfaces[place], is_open = unescape(ESCAPE + surface), False
        else:
            is_open = surface.endswith(ESCAPE)
    return surfaces


def make_side(
    text: str, ids: Sequence[int], pieces: Sequence[str], surfaces: Sequence[str]
) -> Side:
    """Lay ids, pieces and the text behind each side by side, and say which word they belong to."""
    words: list[str] = []
    homes: dict[int, int] = {}
    for places in group_words([SPACE_MARK * surface.startswith(" ") for surface in surfaces]):
        word = "".join(surfaces[place] for place in places).strip()
        if word:  # a space by itself is no word
            homes |= dict.fromkeys(places, len(words))
            words.append(word)
    tokens = [
        Token(
            id=number,
            piece=piece,
            text=surfaces[place].strip(),
            word=None if number in SILENT else homes.get(place),
        )
        for place, (number, piece) in enumerate(zip(ids, pieces, strict=True))
    ]
    return Side(text=text, tokens=tokens, words=words)


def find_cut(surfaces: Sequence[str], most: int) -> int:
    """Give how many tokens to keep: the words that fit, or what fits of a single one."""
    begins = [place for place in range(1, most + 1) if surfaces[place].startswith(" ")]
    return begins[-1] if begins else most
