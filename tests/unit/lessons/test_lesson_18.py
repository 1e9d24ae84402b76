"""Lesson 18: judging translations."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.evaluation.bleu import bleu, chrf
from attendo.evaluation.scores import compute_scores
from attendo.lessons.blocks import Chart, Matrix, Note, Paragraph, Steps, Table
from attendo.lessons.chapters.ch18_judging.diagram import match_positions
from attendo.lessons.chapters.ch18_judging.hand_scores import (
    brevity_penalty,
    geometric_mean,
    hand_bleu,
    hand_chrf,
)
from attendo.lessons.chapters.ch18_judging.lesson import (
    HYPOTHESIS,
    KOREAN_HYPOTHESIS,
    KOREAN_REFERENCE,
    LESSON,
    NEGATED_REFERENCE,
    PAIRS,
    REFERENCE,
)
from attendo.lessons.chapters.ch18_judging.small_test_set import SIZES, compare, make_test_set
from attendo.lessons.own_model import build_section, split_reference

WORDS = ["a", "b", "c", "the", "cat's", "3.5", ",", "왕자는", "a-b", "The"]
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=10).map(" ".join)


def table(view, title, **values) -> Table:
    tables = view.blocks(Table, values=values)
    return next(one for one in tables if getattr(one.title, "en", "") == title)


@given(hypothesis=TEXTS, reference=TEXTS)
def test_the_calculation_by_hand_equals_sacrebleu(hypothesis, reference):
    expected = bleu([hypothesis], [reference]).score
    assert hand_bleu(hypothesis, reference).score == pytest.approx(expected, abs=1e-3)
    expected = chrf([hypothesis], [reference])
    assert hand_chrf(hypothesis, reference).score == pytest.approx(expected, abs=1e-3)


def test_the_example_has_round_numbers():
    found = hand_bleu(HYPOTHESIS, REFERENCE)
    precisions = [7 / 8, 5 / 7, 4 / 6, 3 / 5]
    assert [one.precision for one in found.orders] == pytest.approx(precisions)
    assert math.prod(precisions) == pytest.approx(1 / 4)
    assert found.score == pytest.approx(100 * math.exp(-1 / 8) * 0.25**0.25)
    assert brevity_penalty(9, 8) == 1.0
    assert brevity_penalty(0, 3) == 0.0
    assert geometric_mean([1.0, 0.0]) == 0.0


def test_the_steps_count_every_ngram_and_clip(view):
    (steps,) = view.blocks(Steps)
    assert len(steps.frames) == 4
    for frame, row in zip(steps.frames, table(view, "precision by length").rows, strict=True):
        (block,) = frame.blocks
        assert sum(cells[3] for cells in block.rows) == row[1]
        assert sum(cells[1] for cells in block.rows) == row[2]
        assert all(cells[3] == min(cells[1], cells[2]) for cells in block.rows)
    assert steps.frames[0].blocks[0].rows[0] == ["the", 3, 2, 2]


def test_smoothing_is_explained_where_it_is_used(view):
    assert len(view.blocks(Note)) == 1
    assert len(view.blocks(Note, hypothesis="tower old the saved")) == 2


def test_the_bars_of_the_drawing_are_the_counts():
    ours, theirs = HYPOTHESIS.split(), REFERENCE.split()
    for one in hand_bleu(HYPOTHESIS, REFERENCE).orders:
        assert sum(match_positions(ours, theirs, one.order)) == one.matches


def test_right_translations_score_low_against_each_other(view):
    matrix = view.blocks(Matrix)[0]
    for row, scores in enumerate(matrix.values):
        assert scores[row] == 100.0
        assert all(score < 50 for column, score in enumerate(scores) if column != row)


def test_scores_and_meaning_disagree():
    scores = {
        is_right: [
            bleu([one.hypothesis], [NEGATED_REFERENCE]).score
            for one in PAIRS
            if one.is_right is is_right
        ]
        for is_right in (True, False)
    }
    assert min(scores[False]) >= min(scores[True])
    assert max(scores[False]) > max(scores[True])


def test_corpus_bleu_is_not_the_mean_of_the_sentences(view):
    test_set = make_test_set()
    outputs, references = test_set.outputs["A"][:20], test_set.references[:20]
    assert f"{bleu(outputs, references).score:.1f}" in view.text("en")
    scores = [
        bleu([output], [reference]).score
        for output, reference in zip(outputs, references, strict=True)
    ]
    assert f"{sum(scores) / len(scores):.1f}" in view.text("ko")


def test_every_tokenization_has_its_own_bleu(view):
    shown = {row[0]: row[2] for one in view.blocks(Table) for row in one.rows if len(row) == 3}
    keys = ["bleu", "bleu-char", "chrf"]
    expected = compute_scores(
        [KOREAN_HYPOTHESIS], [KOREAN_REFERENCE], requested=keys, num_samples=0
    )
    assert len({one.value for one in expected}) == 3
    for one in expected:
        assert shown[one.name] == pytest.approx(one.value)


def test_the_difference_gets_clear_with_more_sentences(view):
    few, many = compare(SIZES[0]), compare(SIZES[-1])
    assert many.difference > 0
    assert few.difference < 0
    assert many.p_value < 0.05 < few.p_value

    def width(one):
        return one.difference_interval.high - one.difference_interval.low

    assert width(many) < width(few) / 2
    (chart,) = view.blocks(Chart)
    assert chart.x == [float(size) for size in SIZES]
    rows = table(view, "two systems with 95% intervals").rows
    assert rows[2][1] == pytest.approx(rows[0][1] - rows[1][1], abs=1e-5)


def test_a_sentence_is_scored_against_a_reference_of_yours(make_translator):
    translator = make_translator()
    section = build_section(LESSON, translator, "ka to mi ||| so la")
    assert section.record.src["text"] == "ka to mi"
    (rows,) = (one.rows for one in section.blocks if isinstance(one, Table))
    for text, _, bleu_score, chrf_score in rows:
        assert bleu_score == pytest.approx(bleu([text], ["so la"]).score, abs=1e-3)
        assert chrf_score == pytest.approx(chrf([text], ["so la"]), abs=1e-3)


def test_the_scores_of_dev_are_those_of_the_report(make_translator):
    translator = make_translator()
    assert not any(isinstance(one, Table) for one in LESSON.own_model_blocks(translator, "ka to"))
    translator.about["dev"] = {"bleu": 41.5, "chrf": 60.25, "bleu_sentences": 77}
    paragraph, shown, *_ = LESSON.own_model_blocks(translator, "ka to")
    assert isinstance(paragraph, Paragraph)
    assert "77" in paragraph.words.ko
    assert [row[1] for row in shown.rows] == [41.5, 60.25]


def test_the_sentence_and_its_reference_are_split():
    assert split_reference("a b") == ("a b", None)
    assert split_reference("a b ||| c") == ("a b", "c")
    assert split_reference("a b |||") == ("a b", None)
    assert split_reference("||| c") == ("||| c", None)
