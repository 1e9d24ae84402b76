"""Lesson 7: masks."""

from __future__ import annotations

import math
import re

import pytest
import torch

from attendo.lessons.blocks import Matrix, ModelPlot, Note, Steps, Table
from attendo.lessons.chapters.ch07_masks.lesson import (
    LESSON,
    SCORES,
    attention_weights,
    make_mask,
    mask_table,
    output_changes,
)


def shares(view, **given) -> list[list[float]]:
    (matrix,) = view.blocks(Matrix, given)
    return matrix.values


def softmax(row: list[float]) -> list[float]:
    powers = [math.exp(number) for number in row]
    return [power / sum(powers) for power in powers]


class TestPadding:
    """I am sam <pad>."""

    def test_the_last_column_is_exactly_zero_and_rows_sum_to_one(self, view):
        for row in shares(view):
            *tokens, total = row
            assert tokens[3] == 0.0
            assert total == 1.0
            assert sum(tokens) == pytest.approx(1.0, abs=1e-12)

    def test_the_rest_is_the_softmax_of_what_may_be_seen(self, view):
        for row, scores in zip(shares(view), SCORES, strict=True):
            assert row[:3] == pytest.approx(softmax(scores[:3]))

    def test_scores_can_be_changed(self, view):
        scores = [[0, 0, 0, 9], [5, 0, 0, 0], [0, 0, 0, 0], [1, 2, 3, 4]]
        changed = shares(view, scores=scores)
        assert changed[0][:3] == pytest.approx([1 / 3] * 3)
        assert changed[3][:3] == pytest.approx(softmax([1, 2, 3]))

    def test_without_the_mask_padding_takes_its_share(self, view):
        for row, scores in zip(shares(view, padding=False), SCORES, strict=True):
            assert row[:4] == pytest.approx(softmax(scores))
        assert f"{softmax(SCORES[0])[3]:.3f}" in view.text("en", padding=False)

    def test_the_table_shows_what_the_softmax_gets(self, view):
        table = view.blocks(Table)[0]
        assert [row[1:4] for row in table.rows] == [row[:3] for row in SCORES]
        assert [row[4] for row in table.rows] == [f"{row[3]} → −∞" for row in SCORES]

    def test_zero_after_the_softmax_would_lose_a_share(self, view):
        (note,) = view.blocks(Note)
        lost = softmax(SCORES[0])[3]
        for words in (note.words.en, note.words.ko):
            assert f"{1 - lost:.3f}" in words
            assert f"{lost:.3f}" in words
            assert "3" in re.findall(r"\d+(?:\.\d+)?", words)  # the score that takes so much


class TestLookAhead:
    def test_hides_j_greater_than_i(self, view):
        rows = shares(view, padding=False, look_ahead=True)
        for i, row in enumerate(rows):
            assert row[:4] == pytest.approx([*softmax(SCORES[i][: i + 1]), *[0.0] * (3 - i)])
            assert all(number == 0.0 for number in row[i + 1 : 4])
        assert rows[0][0] == 1.0

    def test_both_together(self, view):
        rows = shares(view, look_ahead=True)
        assert rows[3][3] == 0.0
        assert rows[1][:4] == pytest.approx([*softmax(SCORES[1][:2]), 0.0, 0.0])

    def test_the_frames_draw_each_mask(self, view):
        (frames,) = view.blocks(Steps)
        drawn = ["".join("".join(row[1:]) for row in one.blocks[0].rows) for one in frames.frames]
        assert drawn == [
            "○○○○" * 4,
            "○○○×" * 4,
            "○×××" + "○○××" + "○○○×" + "○○○○",
            "○×××" + "○○××" + "○○○×" + "○○○×",
        ]

    def test_no_word_depends_on_a_later_one(self):
        free, hidden = (
            output_changes(SCORES, mask)
            for mask in (None, make_mask(padding=False, look_ahead=True))
        )
        assert min(free) > 0.1
        assert hidden[:2] == [0.0, 0.0]
        assert min(hidden[2:]) > 0.1


def test_which_mask_goes_where():
    rows = mask_table().rows
    assert [[cell.en for cell in row] for row in rows] == [
        ["encoder self-attention", "source", "source", "yes", "no"],
        ["decoder self-attention", "target", "target", "yes", "yes"],
        ["cross-attention", "target", "source", "yes", "no"],
    ]


def test_weights_without_a_mask_are_the_plain_softmax():
    torch.testing.assert_close(
        attention_weights(SCORES), torch.tensor(SCORES, dtype=torch.float64).softmax(-1)
    )


class TestOwnModel:
    @pytest.mark.parametrize(("kind", "count"), [("transformer", 2), ("rnn-attention", 1)])
    def test_padding_gets_nothing(self, view, make_translator, kind, count):
        blocks = LESSON.own_model_blocks(make_translator(kind), "ka to mi")
        (table,) = view.select(Table, blocks)
        assert [row[1] for row in table.rows] == [0.0] * count
        assert [drawing.name for drawing in view.select(ModelPlot, blocks)] == ["masks"]
        moved = re.search(r"first word is ([^;]+);", blocks[0].words.en)
        assert float(moved[1]) < 1e-5
