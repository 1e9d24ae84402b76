from __future__ import annotations

import pytest
from sacrebleu.metrics import BLEU, CHRF

from attendo.evaluation.breakdown import (
    by_source_length,
    choose_length_unit,
    count_length,
    length_ratio,
    sentence_scores,
    worst_sentences,
)
from attendo.evaluation.metrics import build_metrics
from attendo.evaluation.perplexity import Likelihood

SOURCES = ["one two", "a b c d e", "a b c d e f", " ".join("x" * 70), ""]
OUTPUTS = ["eins zwei", "a b c d e", "f e d c b a", " ".join("x" * 60), ""]
REFERENCES = ["eins zwei", "a b c d f", "a b c d e f", " ".join("x" * 70), ""]


def make(key: str):
    (measure,) = build_metrics(REFERENCES, requested=[key]).selected
    return measure, measure.sentence_counts(OUTPUTS)


def test_every_sentence_gets_the_chrf_of_sacrebleu():
    found = sentence_scores(*make("chrf"))
    expected = [
        CHRF().sentence_score(output, [reference]).score
        for output, reference in zip(OUTPUTS, REFERENCES, strict=True)
    ]
    assert found == pytest.approx(expected, abs=1e-5)


def test_the_worst_come_first_with_their_lines():
    likelihood = Likelihood([-4.0, 0.0, -1.0, -70.0, 0.0], [0] * 5, [2, 0, 2, 70, 0])
    scores = [50.0, 10.0, 10.0, 90.0, 0.0]
    worst = worst_sentences(scores, SOURCES, OUTPUTS, REFERENCES, number=3, likelihood=likelihood)
    assert [(one.line, one.chrf, one.log_prob) for one in worst] == [
        (3, 10.0, -0.5),  # of equal ones the longer reference first
        (2, 10.0, None),
        (1, 50.0, -2.0),
    ]
    assert worst[0].source == "a b c d e f"
    assert worst[0].output == "f e d c b a"


def test_an_empty_reference_is_not_a_failure_and_sources_may_be_missing():
    worst = worst_sentences([0.0] * 5, None, OUTPUTS, REFERENCES, number=9)
    assert sorted(one.line for one in worst) == [1, 2, 3, 4]
    assert {one.source for one in worst} == {""}


def test_buckets_are_scored_alone_and_add_up():
    measure, counts = make("bleu")
    found = by_source_length(measure, counts, SOURCES, num_samples=0)
    assert found.unit == "words"
    assert [(one.label, one.num_sentences) for one in found.buckets] == [
        ("1-5", 2),
        ("6-10", 1),
        ("61+", 1),
    ]
    expected = BLEU().corpus_score(OUTPUTS[:2], [REFERENCES[:2]]).score
    assert found.buckets[0].bleu == pytest.approx(expected, abs=1e-5)
    assert found.buckets[0].low is None


def test_intervals_only_where_sentences_are_enough():
    texts = ["a b c d", "a b d c", "b a c d", "a b c e"] * 3
    (measure,) = build_metrics(texts, requested=["bleu"]).selected
    outputs = [
        text.replace("a b", "b a") if position % 2 else text for position, text in enumerate(texts)
    ]
    sources = ["s"] * 11 + ["w " * 8]
    found = by_source_length(measure, measure.sentence_counts(outputs), sources, num_samples=50)
    many, few = found.buckets
    assert (many.num_sentences, few.num_sentences) == (11, 1)
    assert many.low < many.bleu < many.high
    assert few.low is None


def test_text_without_spaces_is_counted_in_characters():
    chinese = ["我昨天去了咖啡馆，那里有很多人。", "你好"]
    assert choose_length_unit(chinese) == "characters"
    assert choose_length_unit(["어제 카페에 갔었어 거기 사람 많더라"]) == "words"
    assert choose_length_unit(["", ""]) == "words"
    assert count_length("我 去", "characters") == 2
    (measure,) = build_metrics(["x", "y"], requested=["bleu"]).selected
    found = by_source_length(measure, measure.sentence_counts(["x", "z"]), chinese, num_samples=0)
    assert [one.label for one in found.buckets] == ["1-10", "11-20"]


def test_length_ratio_is_that_of_the_brevity_penalty():
    _, counts = make("bleu")
    score = BLEU().corpus_score(OUTPUTS, [REFERENCES])
    assert length_ratio(counts) == pytest.approx(score.sys_len / score.ref_len)
    assert length_ratio(counts) == pytest.approx(73 / 83)
    (empty,) = build_metrics([""], requested=["bleu"]).selected
    assert length_ratio(empty.sentence_counts(["a"])) == 0.0
