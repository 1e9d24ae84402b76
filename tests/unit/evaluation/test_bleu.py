from __future__ import annotations

import math

import pytest

from attendo.evaluation.bleu import bleu


def test_by_hand():
    # 5 of 6 words, 3 of 5 pairs, 2 of 4 triples, 1 of 3 fours; equal lengths
    found = bleu(["the cat sat on the mat"], ["the cat sat on a mat"])
    expected = 100 * math.exp(sum(map(math.log, (5 / 6, 3 / 5, 2 / 4, 1 / 3))) / 4)
    assert found.score == pytest.approx(expected, abs=1e-3)


def test_short_outputs_pay():
    references = ["a b c d e f g h"]
    assert bleu(["a b c d"], references).score == pytest.approx(100 * math.exp(-1), abs=1e-3)


def test_case_counts_and_the_signature_names_it():
    found = bleu(["The Prince saved the princess ."], ["the prince saved the princess ."])
    assert found.score < 100
    assert "case:mixed" in found.signature
    assert "tok:13a" in found.signature
    assert "version:" in found.signature


def test_over_the_corpus_not_a_mean_of_sentences():
    outputs, references = ["a b c d e", "x"], ["a b c d e", "y"]
    assert 0 < bleu(outputs, references).score < 100
    assert bleu(references, references).score == 100.0


def test_an_empty_output_scores_zero():
    assert bleu(["", ""], ["a b c d", "e f g h"]).score == 0.0
