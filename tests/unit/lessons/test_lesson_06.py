"""Lesson 6: many heads."""

from __future__ import annotations

import math

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Steps, Table
from attendo.lessons.chapters.ch06_heads.constructed_heads import make_one_head, make_two_heads
from attendo.lessons.chapters.ch06_heads.lesson import LESSON, cost_table, count_cost
from attendo.model.attention import MultiHeadAttention

SENTENCE = "The animal didn't cross the street because it was too tired"
WORDS = SENTENCE.split()


def costs(view) -> dict[str, list]:
    """Return the rows of the table of costs by their names."""
    table = view.blocks(Table)[1]
    return {row[0]: row[1:] for row in table.rows}


class TestSplit:
    def test_shapes_of_512_over_8_heads_of_64(self, view):
        shapes = [row[1] for row in view.blocks(Table)[0].rows]
        together, apart = "(11, 512)", "(8, 11, 64)"
        assert shapes == [together, together, apart, "(8, 11, 11)", apart, together, together]
        changed = view.blocks(values={"d_model": "256", "num_heads": "4", "length": 7})
        assert view.select(Table, changed)[0].rows[2][1] == "(4, 7, 64)"


class TestCost:
    def test_equals_that_of_one_full_head(self, view):
        rows = costs(view)
        assert rows["8 × 64"] == rows["1 × 512"]
        assert rows["8 × 64"][0] == 4 * 512 * 512
        assert rows["8 × 512"][0] == 8 * rows["1 × 512"][0]

    def test_multiply_adds_are_those_that_pytorch_counts(self):
        for heads, size, length in ((1, 32, 5), (4, 8, 5), (4, 32, 9)):
            attention = MultiHeadAttention(32, heads, d_k=size, d_v=size, bias=False)
            x = torch.randn(1, length, 32)
            with FlopCounterMode(display=False) as counter:
                attention(x, x, x, need_weights=True)
            # one multiply-add is two operations
            assert count_cost(32, heads, size, length)[1] == counter.get_total_flops() // 2

    def test_one_head_is_compared_with_itself_only(self):
        assert [row[0] for row in cost_table(64, 1, 3).rows] == ["1 × 64"]


class TestSentence:
    """The constructed example."""

    def test_all_heads_at_once_and_then_one_by_one(self, view):
        (frames,) = view.blocks(Steps)
        first, *others = frames.frames
        (together,) = first.blocks
        assert isinstance(together, Matrix)
        assert together.rows == WORDS
        for position, frame in enumerate(others):
            (chart,) = frame.blocks
            assert isinstance(chart, Chart)
            assert chart.x == WORDS
            assert chart.series[0].values == [row[position] for row in together.values]

    def test_one_head_looks_at_animal_and_another_at_tired(self, view):
        (frames,) = view.blocks(Steps)
        shares = frames.frames[0].blocks[0].values
        best = [WORDS[max(range(11), key=lambda row: shares[row][head])] for head in (0, 1)]
        assert best == ["animal", "tired"]
        # by hand: one score of 8 / sqrt(2) against ten of 0
        expected = math.exp(8 / math.sqrt(2)) / (math.exp(8 / math.sqrt(2)) + 10)
        assert shares[WORDS.index("animal")][0] == pytest.approx(expected, rel=1e-5)
        assert shares[WORDS.index("tired")][1] == pytest.approx(expected, rel=1e-5)
        for head in (0, 1):
            assert sum(row[head] for row in shares) == pytest.approx(1.0)

    def test_one_full_head_has_to_share(self, view):
        table = view.blocks(Table)[2]
        pronoun, being, _, state = (row[1:] for row in table.rows)
        half = math.exp(4) / (2 * math.exp(4) + 9)  # two scores of 8 / sqrt(4), nine of 0
        assert being[1] == pytest.approx(half, rel=1e-5)
        assert state[1] == pytest.approx(half, rel=1e-5)
        assert [being[2], state[2]] == pytest.approx([0.966, 0.966], abs=5e-4)
        assert [row[0] for row in (pronoun, being, state)] == [1, 0, 0]

    def test_a_question_without_sharpness_looks_everywhere_alike(self, view):
        (frames,) = view.blocks(Steps, {"sharpness": 0})
        for row in frames.frames[0].blocks[0].values:
            assert row == pytest.approx([1 / 11] * 2)

    def test_both_constructions_cost_the_same(self):
        counts = [
            sum(weight.numel() for weight in make(1.0).parameters())
            for make in (make_one_head, make_two_heads)
        ]
        assert counts == [64, 64]

    @pytest.mark.parametrize(("lang", "word"), [("en", "constructed"), ("ko", "일부러 만든")])
    def test_it_is_marked_as_constructed(self, view, lang, word):
        assert word in view.text(lang)


class TestOwnModel:
    def test_counts_the_heads_of_a_transformer(self, view, make_translator):
        blocks = LESSON.own_model_blocks(make_translator(), "ka to mi")
        (table,) = view.select(Table, blocks)
        assert [row[1:] for row in table.rows] == [[2, 4, 4, 2 * 4 * (16 * 16 + 16)]] * 3
        assert [drawing.name for drawing in view.select(ModelPlot, blocks)] == [
            "all_heads",
            "two_heads",
            "head_lines",
            "concatenated_heads",
        ]
