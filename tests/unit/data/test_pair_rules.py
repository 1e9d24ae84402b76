from __future__ import annotations

import pytest

from attendo.data.corpus_config import Pair
from attendo.data.pair_rules import HeldOutTexts, PairJudge, PairRules, near_key

JUDGE = PairJudge(PairRules(min_characters=3, max_characters=40), ("ko", "en"))


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        ("나는 학생이다.", "I am a student.", None),
        ("collections.abc.Callable은 이제 []를 지원합니다.", "It now supports [].", None),
        ("7~9주차:", "Weeks 7-9:", None),
        ("GNOME", "GNOME", None),
        ("20만 달러를 잃은 남성", "Man loses $200k", None),
        ("버전 2024에서", "In version 1999", "other numbers"),
        ("1,000 명의 사람", "1000 people", None),
        ("나는 6시 30분에 일어난다.", "I get up at 6:30.", None),
        ("형상이 (100,2)인 배열", "An array of shape (100, 2)", None),
        ("버전 1.26부터 지원한다", "Supported since version 1.27", "other numbers"),
        ("안녕하세요 {name}님", "Hello {name}", None),
        ("안녕하세요 여러분", "Hello {name}", "other placeholders"),
        ("This is not translated at all.", "This is a sentence.", "wrong language"),
        ("나는 학생이다.", "나는 학생입니다. 정말로", "wrong language"),
        ("그는 그 집에 있다.", "El perro está en la casa de mi madre.", "wrong language"),
        ("|---|---|---| ===", "|---|---|---| ===", "few letters"),
        ("좋아 좋아 좋아 좋아 좋아", "Good.", "repeated words"),
        ("안녕 \ufffd 하세요", "Hello there", "damaged characters"),
        ("안녕하세요", "CafÃ© au lait", "damaged characters"),
    ],
)
def test_a_pair_is_judged_by_every_rule(src, tgt, reason):
    assert JUDGE.find_reason(Pair(src, tgt)) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [("하", "few letters"), ("가" * 50, "too long"), ("This is English text.", "wrong language")],
)
def test_monolingual_lines_have_a_length_and_a_language(text, reason):
    assert JUDGE.find_text_reason(text) == reason


@pytest.mark.parametrize(
    ("rule", "pair"),
    [
        ("numbers", Pair("버전 2024에서", "In version 1999")),
        ("placeholders", Pair("안녕하세요 여러분", "Hello {name}")),
        ("language", Pair("This is not translated.", "This is a sentence.")),
        ("enabled", Pair("|---|---|---| ===", "|---|---|---| ===")),
    ],
)
def test_each_rule_can_be_switched_off(rule, pair):
    assert PairJudge(PairRules(), ("ko", "en")).find_reason(pair)
    assert PairJudge(PairRules(**{rule: False}), ("ko", "en")).find_reason(pair) is None


def test_without_languages_only_the_other_rules_apply():
    judge = PairJudge(PairRules(), (None, None))
    assert judge.find_reason(Pair("Ceci n'est pas du coréen.", "나는 학생이다.")) is None


def test_a_test_sentence_is_found_in_any_case_and_punctuation():
    held_out = HeldOutTexts(["The quick brown fox!", "Yes."])
    assert held_out.contain([near_key("the QUICK brown fox")])
    assert not held_out.contain([near_key("yes")])  # too short to be anything but a coincidence
    assert not held_out.contain([near_key("another sentence of some length")])
