"""A match of the translation memory keeps its words, but for those that differ."""

from __future__ import annotations

import pytest

from attendo.translator import match_repair
from attendo.translator.match_repair import find_changes, repair_match

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
    monkeypatch.setattr(match_repair, "align_source_words", lambda *_: [])
    assert repair(uppercaser, "ka re mi so") is None


def test_a_word_that_stands_for_another_one_too_is_not_replaced(uppercaser, monkeypatch):
    monkeypatch.setattr(match_repair, "align_source_words", lambda *_: [0, 1, 1, 3])
    assert repair(uppercaser, "ka re mi so") is None


def test_changes_are_words_that_were_replaced():
    assert find_changes(list("abcd"), list("axyd")) == [(range(1, 3), range(1, 3))]
    assert find_changes([], []) == []
