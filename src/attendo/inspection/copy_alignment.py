"""Word alignment of a segment with copied spans: each is aligned with what it is a copy of.

The model has translated the segment without the spans. Its alignment is carried over to the words
of the whole segment by characters, of which white space is not one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.inspection.word_alignment import WordAlignment, align_words
from attendo.text.normalize import normalize
from attendo.translator.copying import reduce_source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.translator import Translator
    from attendo.translator.translation import CopiedSpan


class _Words(NamedTuple):
    """A text, its words, and the word of each character; -1 for white space."""

    text: str
    words: list[str]
    word_of: list[int]

    @classmethod
    def of(cls, text: str) -> _Words:
        words, word_of, is_inside = 0, [], False
        for character in text:
            words += not is_inside and not character.isspace()
            is_inside = not character.isspace()
            word_of.append(words - 1 if is_inside else -1)
        return cls(text, text.split(), word_of)


def align_with_copies(
    translator: Translator,
    source: str,
    text: str,
    ids: Sequence[int],
    copied: Sequence[CopiedSpan],
) -> WordAlignment | None:
    """Align a source segment and its translation, into which spans were copied.

    Args:
        translator: has translated the segment without the spans.
        source: the segment.
        text: its whole translation.
        ids: of the translation without the spans, without the end symbol.
        copied: the spans.

    Returns:
        Weights by words; None for a model without attention.

    """
    src, tgt = _Words.of(normalize(source)), _Words.of(text)
    inner = align_words(translator, reduce_source(src.text, copied), ids)
    if inner is None:
        return None
    copies = torch.zeros(len(tgt.words), len(src.words))  # characters
    for span in copied:
        for offset in range(span.end - span.start):
            target, origin = span.start + offset, span.source_start + offset
            if target < len(text) and origin < len(src.text) and tgt.word_of[target] >= 0:
                copies[tgt.word_of[target], src.word_of[origin]] += 1
    kept_src = _kept_words(src, [(one.source_start, one.source_end) for one in copied])
    kept_tgt = _kept_words(tgt, [(one.start, one.end) for one in copied])
    src_share = _share(inner.source_words, kept_src, len(src.words))  # (inner source, source)
    tgt_share = _share(inner.target_words, kept_tgt, len(tgt.words))  # (inner target, target)
    weights = torch.tensor(inner.weights).view(len(inner.target_words), len(inner.source_words))
    spread = weights @ _normalize_rows(src_share)  # (inner target, source)
    by_words = _normalize_rows(tgt_share.T) @ spread
    num_copied = copies.sum(1, keepdim=True)
    num_letters = torch.zeros(len(tgt.words), 1)
    for word, letter in kept_tgt:
        num_letters[word] += letter.isalnum()
    part = num_copied / (num_copied + num_letters).clamp(min=1.0)
    both = part * _normalize_rows(copies) + (1.0 - part) * by_words
    return WordAlignment(src.words, tgt.words, both.tolist())


def _kept_words(words: _Words, removed: Sequence[tuple[int, int]]) -> list[tuple[int, str]]:
    """Return the word of each character that is not removed, and the character."""
    removed_indices = {index for start, end in removed for index in range(start, end)}
    return [
        (word, letter)
        for index, (word, letter) in enumerate(zip(words.word_of, words.text, strict=True))
        if word >= 0 and index not in removed_indices
    ]


def _share(inner_words: Sequence[str], kept: Sequence[tuple[int, str]], num_words: int) -> Tensor:
    """Return how many characters of each inner word are in each word (inner, words)."""
    counts = torch.zeros(len(inner_words), num_words)
    inner = (number for number, word in enumerate(inner_words) for _ in word if not _.isspace())
    for number, (word, _) in zip(inner, kept, strict=False):
        counts[number, word] += 1
    return counts


def _normalize_rows(counts: Tensor) -> Tensor:
    return counts / counts.sum(1, keepdim=True).clamp(min=1.0)
