"""Copied words are aligned with what they are a copy of, the others as the model aligns them."""

from __future__ import annotations

import pytest
import torch

from attendo.inspection import copy_alignment
from attendo.inspection.word_alignment import WordAlignment
from attendo.text.copy_spans import find_copy_spans
from attendo.translator.copying import insert_spans, remove_spans
from attendo.translator.translation import CopiedSpan

SOURCE = "왕자는 12345를 https://a.kr/b 에서 샀다."
INNER = "The prince bought."


@pytest.fixture
def align(monkeypatch):
    """Align a source with its translation, given the weights of the inner words."""

    def align_by(weights: list[list[float]] | None, source: str, text: str, copied):
        reduced: list[str] = []
        kept = text
        for span in sorted(copied, key=lambda one: -one.start):
            kept = kept[: span.start] + kept[span.end :]

        def align_words(_translator, inner_source, _ids):
            reduced.append(inner_source)
            if weights is None:
                return None
            return WordAlignment(inner_source.split(), kept.split(), weights)

        monkeypatch.setattr(copy_alignment, "align_words", align_words)
        found = copy_alignment.align_with_copies(None, source, text, [], copied)
        return found, reduced[0]

    return align_by


def copy(source: str, inner: str, aligned: list[int]) -> tuple[str, list[CopiedSpan]]:
    removed = remove_spans(source, find_copy_spans(source))
    text, starts = insert_spans(inner, removed.removed, len(removed.text.split()), aligned)
    return text, [
        CopiedSpan(span.start, span.end, start, start + len(span.text))
        for span, start in zip(removed.removed, starts, strict=True)
    ]


def test_copied_words_have_the_weight_of_their_source_and_others_keep_theirs(align):
    text, copied = copy(SOURCE, INNER, [1, 2, 2])
    assert set(text.rstrip(".").split()) == {"The", "prince", "bought", "12345", "https://a.kr/b"}
    weights = [[0.5, 0.1, 0.1], [0.8, 0.1, 0.1], [0.1, 0.2, 0.7]]
    found, reduced = align(weights, SOURCE, text, copied)
    assert reduced == "왕자는 에서 샀다."
    assert (found.source_words, found.target_words) == (SOURCE.split(), text.split())
    rows = dict(zip((word.rstrip(".") for word in text.split()), found.weights, strict=True))
    assert rows["12345"] == pytest.approx([0, 1, 0, 0, 0])
    assert rows["https://a.kr/b"] == pytest.approx([0, 0, 1, 0, 0])
    assert rows["prince"] == pytest.approx([0.8, 0, 0, 0.1, 0.1])
    assert rows["bought"] == pytest.approx([0.1, 0, 0, 0.2, 0.7])


def test_a_copy_of_the_whole_text_is_aligned_word_by_word(align):
    source = "12 https://a.kr 😀"
    found, _ = align([], source, source, [CopiedSpan(0, len(source), 0, len(source))])
    assert torch.tensor(found.weights).equal(torch.eye(3))


def test_a_span_within_a_word_shares_it(align):
    source, text = "가격은 12345원이다.", "The price is 12345 won."
    copied = [CopiedSpan(4, 9, 13, 18)]
    found, reduced = align([[0.3, 0.7]] * 4, source, text, copied)
    assert reduced == "가격은 원이다."
    assert found.weights[3] == pytest.approx([0, 1])


def test_a_model_without_attention_gives_none(align):
    assert align(None, SOURCE, "x", [CopiedSpan(4, 10, 0, 1)])[0] is None
