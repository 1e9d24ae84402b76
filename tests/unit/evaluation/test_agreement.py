from __future__ import annotations

import random

import pytest

from attendo.evaluation.agreement import choose_best, choose_each, sentence_chrf

WORDS = ["the", "cat", "sat", "on", "a", "mat", "그는", "학교에", "간다", "책을", "."]


def draw(rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 12)))


def test_chrf_equals_that_of_sacrebleu():
    from sacrebleu.metrics.chrf import CHRF

    metric, rng = CHRF(), random.Random(1)  # noqa: S311 - a test
    for _ in range(60):
        hypothesis, reference = draw(rng), draw(rng)
        expected = metric.sentence_score(hypothesis, [reference]).score
        assert sentence_chrf(hypothesis, reference) == pytest.approx(expected, abs=0.01)


def test_the_first_is_chosen_where_nothing_can_be_compared():
    assert choose_best(["a", "b"], " ") == 0
    assert choose_best(["", "그는 간다"], "그는 간다.") == 1
    assert choose_best([""], "x") == 0


def test_other_processes_choose_the_same_in_order():
    rng = random.Random(2)  # noqa: S311 - a test
    pairs = [([draw(rng) for _ in range(3)], draw(rng)) for _ in range(600)]
    expected = [choose_best(*pair) for pair in pairs]
    assert list(choose_each(pairs)) == expected
    assert list(choose_each(pairs, num_processes=1)) == expected
