"""Lesson 9: what the residual path does to gradients."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from attendo.lessons.blocks import Chart, ModelPlot, Paragraph, Steps, Table
from attendo.lessons.chapters.ch09_residuals.gradient_paths import (
    depth_chart,
    gradient_factors,
    list_paths,
    path_length_chart,
    path_table,
    remaining_gradient,
    run_network,
    unrolled_table,
)
from attendo.lessons.chapters.ch09_residuals.lesson import LESSON
from attendo.lessons.render.charts import plot_chart


def sigmoid(number: float) -> float:
    return 1 / (1 + math.exp(-number))


def loss_of(x, w1, w2, w3, skip, target) -> float:
    h1 = sigmoid(w1 * x)
    return (target - sigmoid(w3 * sigmoid(w2 * h1) + skip * h1)) ** 2


def derivative(x, weights, skip, target, position) -> float:
    """Differentiate by small steps, without any gradient."""
    step, ends = 1e-5, []
    for sign in (1, -1):
        moved = list(weights)
        moved[position] += sign * step
        ends.append(loss_of(x, *moved, skip, target))
    return (ends[0] - ends[1]) / (2 * step)


class TestThreeUnits:
    def test_without_a_skip(self, view):
        forward = view.blocks(Table)[0]
        reported = [f"{number:.5f}" for number in forward.rows[0]]
        assert reported == ["0.51250", "0.51281", "0.51282", "0.23735"]
        plain = run_network(skip=0.0)
        assert (f"{plain.w3:.5f}", f"{plain.w2:.7f}", f"{plain.w1:.6f}") == (
            "-0.12483",
            "-0.0031169",
            "-0.000076",
        )

    def test_with_a_skip(self, view):
        forward, backward = view.blocks(Table)[1:3]
        assert [f"{number:.5f}" for number in forward.rows[0]] == ["0.52561", "0.22505"]
        by_name = {row[0]: row[1:] for row in backward.rows}
        assert [f"{number:.5f}" for number in by_name["dL/dw₃"]] == ["-0.12483", "-0.12132"]
        assert [f"{number:.7f}" for number in by_name["dL/dw₂"]] == ["-0.0031169", "-0.0030291"]
        assert f"{by_name['dL/dw₁'][1]:.7f}" == "-0.0030291"
        assert round(by_name["dL/dw₁"][1] / by_name["dL/dw₁"][0]) == 40

    def test_the_first_gradient_comes_in_two_ways(self):
        with_skip = run_network()
        assert with_skip.long_way + with_skip.short_way == pytest.approx(with_skip.w1, rel=1e-12)
        assert with_skip.long_way == pytest.approx(-0.000074, abs=5e-7)
        assert with_skip.short_way == pytest.approx(-0.00295, abs=1e-5)

    @pytest.mark.parametrize("skip", [0.0, 0.1, -0.7])
    def test_other_inputs_give_what_small_steps_give(self, view, skip):
        given = {"x": 1.2, "w1": -0.4, "w2": 0.9, "w3": 0.3, "skip": skip, "target": 0.2}
        backward = view.blocks(Table, given)[2]
        weights = (-0.4, 0.9, 0.3)
        for name, position in (("dL/dw₁", 0), ("dL/dw₂", 1), ("dL/dw₃", 2)):
            (row,) = (row for row in backward.rows if row[0] == name)
            assert row[1] == pytest.approx(derivative(1.2, weights, 0.0, 0.2, position), rel=1e-4)
            assert row[2] == pytest.approx(derivative(1.2, weights, skip, 0.2, position), rel=1e-4)

    def test_a_first_weight_without_gradient_causes_no_division_by_zero(self, view):
        assert "times**" not in " ".join(block.words.en for block in view.blocks(Paragraph, x=0))


class TestChainRule:
    @pytest.mark.parametrize("skip", [0.0, 0.1, -0.7])
    def test_the_factors_multiply_to_the_gradients_of_autograd(self, skip):
        weights = (-0.4, 0.9, 0.3)
        found = run_network(1.2, weights, skip=skip, target=0.2)
        factors = gradient_factors(1.2, weights, skip=skip, target=0.2)
        products = {name: math.prod(one.value for one in own) for name, own in factors.items()}
        expected = {
            "w₃": found.w3,
            "w₂": found.w2,
            "w₁": found.long_way,
            "w_r": found.short_way,
        }
        assert products == pytest.approx(expected, rel=1e-9)

    def test_every_factor_is_shown(self, view):
        plain, skipping = view.blocks(Steps)
        assert [len(one.blocks[0].rows) for one in plain.frames] == [3, 5, 7]
        assert [len(one.blocks[0].rows) for one in skipping.frames] == [3, 5, 7, 5]

    def test_the_unrolled_sum_is_the_value_of_the_stack(self):
        for _, value, _, unrolled in unrolled_table(0.3, 5).rows:
            assert unrolled == pytest.approx(value, rel=1e-12)


class TestChain:
    def test_a_zero_block_blocks_the_signal_and_residuals_carry_it(self, view):
        last = view.blocks(Table)[3].rows[-1]
        assert last == [3, -1e-6, pytest.approx(1.25e-7), pytest.approx(-0.124999875, abs=1e-12)]

    def test_is_the_product_of_the_local_gradients(self, view):
        chained, carried = remaining_gradient([0.3, -2.0], signal=-0.125)
        assert chained == pytest.approx(-0.125 * 0.3 * -2.0)
        assert carried == pytest.approx(-0.125 * 1.3 * -1.0)
        given = {"local": [[0.25, -0.5, 2, 1, 1]], "signal": 4, "num_blocks": 2}
        rows = view.blocks(Table, given)[3].rows
        assert rows == [[1, 0.25, 1.0, 5.0], [2, -0.5, -0.5, 2.5]]

    def test_depth_widens_the_gap(self):
        chart = depth_chart(0.1, 6)
        without, with_residuals = (series.values for series in chart.series)
        assert all(after < 0.03 * before for before, after in pairwise(without))
        assert min(with_residuals) > 1.0
        unit = sigmoid(0.05) * (1 - sigmoid(0.05)) * 0.1
        assert without[0] == pytest.approx(unit)
        assert with_residuals[0] == pytest.approx(1 + unit)
        assert plot_chart(chart, "ko").lstrip().startswith(b"<?xml")

    def test_a_weight_of_zero_can_be_plotted(self, view):
        (lines, _) = view.blocks(Chart, {"w1": 0})
        assert set(lines.series[0].values) == {0.0}
        assert plot_chart(lines, "en")


class TestPaths:
    def test_three_blocks_unravel_into_eight_paths(self):
        table = path_table()
        assert len(table.rows) == 8
        assert [row[1] for row in table.rows] == [
            "x ────────────────── y",
            "x ─────────────(f₃)─ y",
            "x ───────(f₂)─────── y",
            "x ─(f₁)───────────── y",
            "x ───────(f₂)──(f₃)─ y",
            "x ─(f₁)────────(f₃)─ y",
            "x ─(f₁)──(f₂)─────── y",
            "x ─(f₁)──(f₂)──(f₃)─ y",
        ]
        assert [row[2] for row in table.rows] == [0, 1, 1, 1, 2, 2, 2, 3]

    @pytest.mark.parametrize("num_blocks", range(1, 6))
    def test_their_number_doubles_and_no_path_comes_twice(self, num_blocks):
        paths = list_paths(num_blocks)
        assert len(paths) == len(set(paths)) == 2**num_blocks
        counts = path_length_chart(num_blocks).series[0].values
        assert counts == [math.comb(num_blocks, passed) for passed in range(num_blocks + 1)]

    @pytest.mark.parametrize("local", [[1e-6] * 4, [0.25, -0.5], [1.0, 2.0, -3.0]])
    def test_what_they_carry_adds_up_to_the_gradient(self, local):
        carried = sum(row[3] for row in path_table(local).rows)
        assert carried == pytest.approx(math.prod(1 + one for one in local))
        assert carried == pytest.approx(remaining_gradient(local, signal=1.0)[1])

    def test_the_lesson_lists_as_many_as_are_asked_for(self, view):
        assert 32 in [len(table.rows) for table in view.blocks(Table, {"num_blocks": 5})]
        assert "2⁵ = 32" in view.text("ko", num_blocks=5)


class TestOwnModel:
    def blocks(self, make_translator, **options):
        translator = make_translator(num_layers=3, num_decoder_layers=2, **options)
        return LESSON.own_model_blocks(translator, "ka to mi")

    def test_measures_every_layer_relative_to_the_last(self, view, make_translator):
        blocks = self.blocks(make_translator)
        (table,) = view.select(Table, blocks)
        assert len(table.rows) == 4  # the input and three layers
        encoder, encoder_cut, decoder, decoder_cut = zip(
            *(row[1:] for row in table.rows), strict=True
        )
        assert (encoder[3], encoder_cut[3], decoder[2], decoder_cut[2]) == (1, 1, 1, 1)
        assert (decoder[3], decoder_cut[3]) == (None, None)
        assert decoder_cut[0] < 1e-3 * decoder[0]
        assert [drawing.name for drawing in view.select(ModelPlot, blocks)] == ["gradients"]

    def test_a_model_without_residuals_has_none_to_cut(self, view, make_translator):
        blocks = self.blocks(make_translator, residual=False)
        for row in view.select(Table, blocks)[0].rows:
            assert row[1] == row[2]
            assert row[3] == row[4]
        assert "built without" in blocks[0].words.en
