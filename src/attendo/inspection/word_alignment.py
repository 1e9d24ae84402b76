"""Word alignment from the cross-attention of one translation.

One teacher-forced pass, cheap enough for every served translation. The layers from the
middle on are averaged over all heads; earlier ones align less clearly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.inspection.token_surfaces import build_side, merge_split_characters, target_surfaces
from attendo.text.normalize import normalize
from attendo.translator.cross_attention import cross_attention

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.inspection.record import TokenSide
    from attendo.translator import Translator


class WordAlignment(NamedTuple):
    """Attention weights by words."""

    source_words: list[str]
    target_words: list[str]
    weights: list[list[float]]
    """One row per target word. It may sum to less than one: weight on the end symbol and on
    punctuation after a word is left out."""


def align_words(translator: Translator, text: str, ids: Sequence[int]) -> WordAlignment | None:
    """Align a source segment and the ids of its translation, without the end symbol.

    Return None for a model without attention.
    """
    tokenizer, clean = translator.tokenizer, normalize(text)
    src_ids = tokenizer.encode_src([clean])[0]
    if len(src_ids) == 1 or not ids:
        return WordAlignment([], [], [])
    weights = cross_attention(translator.backend, src_ids, ids)
    if weights is None:
        return None
    surfaces = merge_split_characters(tokenizer.src_surfaces(clean))
    src = build_side(clean, src_ids, tokenizer.src_pieces(src_ids), surfaces)
    tgt = build_side("", ids, tokenizer.tgt_pieces(ids), target_surfaces(tokenizer, ids))
    rows, columns = _word_membership(tgt), _word_membership(src)  # (words, T), (words, S)
    rows = rows / rows.sum(1, keepdim=True)  # the mean over a word's tokens
    by_words = rows @ weights @ columns.T
    return WordAlignment(src["words"], tgt["words"], by_words.tolist())


def _word_membership(side: TokenSide) -> Tensor:
    """Return which tokens represent each word (words, tokens): those with letters, if any."""
    tokens = side["tokens"]
    words_with_letters = {token["word"] for token in tokens if _has_letters(token["text"])}
    membership = torch.zeros(len(side["words"]), len(tokens))
    for index, token in enumerate(tokens):
        word = token["word"]
        if word is not None and (word not in words_with_letters or _has_letters(token["text"])):
            membership[word, index] = 1.0
    return membership


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)
