"""Lesson 8: add and norm."""

from __future__ import annotations

import statistics

import pytest
import torch

from attendo.lessons.blocks import Matrix, ModelPlot, Table
from attendo.lessons.chapters.ch08_add_and_norm.lesson import (
    LESSON,
    OTHERS,
    count_add_and_norm,
    normalize_both,
)
from attendo.lessons.chapters.ch08_add_and_norm.measurements import (
    position_differences,
    spread_by_depth,
)

SUM = [1, 3, 4, 5, 7]


def by_hand(numbers, *, gamma=1.0, beta=0.0, eps=1e-5) -> list[float]:
    mean, variance = statistics.fmean(numbers), statistics.pvariance(map(float, numbers))
    return [(number - mean) / (variance + eps) ** 0.5 * gamma + beta for number in numbers]


def output(view, **given) -> list[float]:
    return view.blocks(Matrix, given)[-1].values[0]


class TestOneVector:
    def test_residual_and_sublayer_are_added(self, view):
        x, sublayer, total, *_ = view.blocks(Matrix)
        assert total.values == [SUM]
        assert [a + b for a, b in zip(x.values[0], sublayer.values[0], strict=True)] == SUM

    def test_mean_variance_and_root(self, view):
        table = view.blocks(Table)[0]
        assert [row[1] for row in table.rows] == pytest.approx([4.0, 4.0, (4 + 1e-5) ** 0.5])

    def test_is_the_formula(self, view):
        assert output(view) == pytest.approx([-1.5, -0.5, 0.0, 0.5, 1.5], abs=1e-5)
        assert output(view) == pytest.approx(by_hand(SUM))

    @pytest.mark.parametrize(
        "changed", [{"gamma": 2.5}, {"beta": -1.0}, {"eps": 5.0}, {"gamma": 3, "beta": 2}]
    )
    def test_gamma_beta_and_eps(self, view, changed):
        assert output(view, **changed) == pytest.approx(by_hand(SUM, **changed))

    def test_other_numbers(self, view):
        x, sublayer = [[0, 0, 2, 9, -4]], [[1, 5, 0, 0, 1]]
        assert output(view, x=x, sublayer=sublayer) == pytest.approx(by_hand([1, 5, 2, 9, -3]))

    def test_equal_numbers_are_kept_from_a_division_by_zero(self, view):
        assert output(view, x=[[0] * 5], sublayer=[[3] * 5]) == [0.0] * 5

    def test_without_the_residual_x_is_lost(self, view):
        sublayer = [-1, 2, 0, 2, 2]
        assert output(view, residual=False) == pytest.approx(by_hand(sublayer))
        assert output(view, residual=False, x=[[9, 9, 0, 0, 0]]) == output(view, residual=False)

    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_starts_with_gamma_one_and_beta_zero(self, view, lang):
        assert "γ = 1" in view.text(lang, gamma=2, beta=3)
        assert "β = 0" in view.text(lang, gamma=2, beta=3)


class TestBatchNorm:
    def rows(self, view, **given):
        table = view.blocks(Table, given)[1]
        return [row[2:] for row in table.rows]

    def test_layer_norm_does_not_depend_on_the_others(self, view):
        layer = self.rows(view)[:3]
        for row in layer:
            assert row == pytest.approx(by_hand(SUM))

    def test_batch_norm_does(self, view):
        first, second, third = self.rows(view)[3:]
        batches = ([SUM, *OTHERS], [SUM, *OTHERS, [0] * 5], [SUM, OTHERS[0]])
        for row, batch in zip((first, second, third), batches, strict=True):
            expected = [by_hand(column)[0] for column in zip(*batch, strict=True)]
            assert row == pytest.approx(expected)
        assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > 0.1

    def test_other_words_change_batch_norm_only(self, view):
        before, after = self.rows(view), self.rows(view, others=[[0, 0, 0, 0, 1], [9, 9, 9, 9, 9]])
        assert after[:3] == before[:3]
        assert after[3:] != before[3:]

    def test_it_cannot_norm_a_single_word_while_learning(self):
        with pytest.raises(ValueError, match="more than 1 value"):
            normalize_both(torch.ones(1, 5, dtype=torch.float64), 1e-5)


def test_occurs_twice_in_an_encoder_layer_and_three_times_in_a_decoder_layer():
    assert count_add_and_norm() == (2, 3)


class TestOwnModel:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_lists_what_gamma_and_beta_became(self, view, make_translator, norm):
        translator = make_translator(norm=norm)
        model = translator.model
        with torch.no_grad():
            model.encoder.layers[1].self_add.norm.weight[3] = 0.25
            model.decoder.layers[0].cross_add.norm.bias[5] = 2.0
        blocks = LESSON.own_model_blocks(translator, "ka to mi")
        (table,) = view.select(Table, blocks)
        assert [row[1:] for row in table.rows] == [
            [1, 1, 0, 0],
            [0.25, 1, 0, 0],
            [1, 1, 0, 2],
            [1, 1, 0, 0],
        ]
        assert [drawing.name for drawing in view.select(ModelPlot, blocks)] == ["add_and_norm"]


def test_sums_grow_and_normalized_sums_do_not():
    added, normalized = (spread_by_depth(has_norm=way) for way in (False, True))
    assert added[-1] == pytest.approx(2 ** (len(added) / 2), rel=0.3)
    assert normalized == pytest.approx([1.0] * len(normalized), rel=0.1)


def test_residual_connections_carry_positions_upwards():
    kept, lost = (position_differences(residual=way) for way in (True, False))
    assert kept[0] == lost[0]
    assert kept[-1] > 1e-3
    assert lost[-1] < 1e-9
