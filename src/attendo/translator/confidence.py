"""From the probabilities of tokens to those of words and sentences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attendo.text.tokenizer import SPACE_SYMBOL
from attendo.translator.translation import Confidence, WordConfidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.tokenizer import Tokenizer


def tokens_to_words(pieces: Sequence[str]) -> list[list[int]]:
    """Give the places of the pieces of each word: one begins where a piece begins with a space.

    >>> group_words(["▁나는", "▁학", "생", "이다", "."])
    [[0], [1, 2, 3, 4]]
    """
    words: list[list[int]] = []
    for index, piece in enumerate(pieces):
        if piece.startswith(SPACE_SYMBOL) or not words:
            words.append([])
        words[-1].append(index)
    return words


def compute_confidence(
    tokenizer: Tokenizer, ids: Sequence[int], log_probs: Sequence[float]
) -> Confidence:
    """Give the confidence of a translation; `log_probs` may hold the end symbol's last."""
    total = sum(log_probs)
    words = []
    for indices in tokens_to_words(tokenizer.tgt_pieces(ids)):
        text = tokenizer.decode_tgt([[ids[index] for index in indices]])[0]
        if text:  # a space by itself is no word
            probability = math.exp(sum(log_probs[place] for place in indices))
            words.append(WordConfidence(text, probability))
    # behind a label the end is certain: it says nothing of how sure the model is
    length = len(ids) if tokenizer.tgt_kind == "label" else len(log_probs)
    return Confidence(math.exp(total), math.exp(total / max(length, 1)), words)
