"""A match of the translation memory keeps its words, but for those that differ."""

from __future__ import annotations

import pytest

from attendo.translator import match_repair
from attendo.translator.match_repair import AlignedWords, find_changes, repair_match

SOURCE, TARGET = "ka to mi so", "KA TO LU SO"
"""The model would write MI: a person has corrected it."""


def repair(uppercaser, text, source=SOURCE, target=TARGET):
    (own,) = uppercaser.translate([text])
    return repair_match(uppercaser, own, source, target)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ka re mi so", "KA RE LU SO"),
        ("re to mi so", "RE TO LU SO"),
        ("re to mi ka", "RE TO LU KA"),
    ],
    ids=["in the middle", "at the start", "two places"],
)
def test_only_the_words_that_differ_are_the_models(uppercaser, text, expected):
    assert str(uppercaser.translate([text])[0]) == text.upper()
    assert repair(uppercaser, text) == expected


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("ka re mi so", SOURCE, SOURCE.upper()),
        ("ka to mi", SOURCE, TARGET),
        ("re to mi so ka", SOURCE, TARGET),
        ("re ka so to", SOURCE, TARGET),
        ("ka re mi so", SOURCE, "KA ㅎㅎ LU SO"),
        ("ka ㅎ mi so", SOURCE, TARGET),
        (SOURCE, SOURCE, TARGET),
    ],
    ids=[
        "what the model writes", "a word left out", "a word added", "too many",
        "an unknown target", "an unknown source", "the same",
    ],
)  # fmt: skip
def test_other_matches_are_left_alone(uppercaser, text, source, target):
    assert repair(uppercaser, text, source, target) is None


def test_an_unlikely_result_is_dropped(uppercaser, monkeypatch):
    monkeypatch.setattr(match_repair, "MIN_LIKELIHOOD", 1e6)
    assert repair(uppercaser, "ka re mi so") is None


def test_without_attention_nothing_is_repaired(uppercaser, monkeypatch):
    monkeypatch.setattr(match_repair, "find_attended_words", lambda *_: [])
    assert repair(uppercaser, "ka re mi so") is None


@pytest.mark.parametrize(
    "attended", [[0, 1, 2, 1], [0, 0, 2, 3]], ids=["words that are apart", "no word"]
)
def test_an_alignment_that_is_not_clear_repairs_nothing(uppercaser, monkeypatch, attended):
    monkeypatch.setattr(match_repair, "find_attended_words", lambda *_: attended)
    assert repair(uppercaser, "ka re mi so") is None


def test_all_words_that_stand_for_the_changed_one_are_replaced():
    target = ["The", "prince", "saw", "the", "royal", "lady."]
    words = AlignedWords(["왕자는", "공주를", "봤다."], target, [0, 0, 2, 1, 1, 1])
    assert words.find_span(range(1, 2)) == range(3, 6)
    assert words.find_span(range(1)) == range(2)
    assert words.find_span(range(3, 4)) is None
    assert AlignedWords(*words[:2], [0, 1, 2, 1, 1, 1]).find_span(range(1, 2)) is None


def test_changes_are_words_that_were_replaced():
    assert find_changes(list("abcd"), list("axyd")) == [(range(1, 3), range(1, 3))]
    assert find_changes([], []) == []
