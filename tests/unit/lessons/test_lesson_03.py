"""Lesson 3: what order is to an encoder, sines and cosines, and what they cost."""

from __future__ import annotations

from math import cos, sin

import numpy as np
import pytest
import torch

from attendo.inspection import capture
from attendo.inspection.plots.registry import PLOTS
from attendo.lessons.blocks import LANGUAGES, Chart, Matrix, ModelPlot, Note, Table
from attendo.lessons.chapters.ch03_positions.lesson import (
    EXAM,
    LESSON,
    OTHER_EXAM,
    PRINCE,
    PRINCESS,
)
from attendo.lessons.chapters.ch03_positions.word_order import (
    compare_orders,
    count_layer_parameters,
    count_projection_parameters,
    position_chart,
)
from attendo.model.positional_encoding import sinusoidal

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


def by_formula(position, dimension, d_model):
    """PE of the paper, by the standard library."""
    angle = position / 10_000 ** (2 * (dimension // 2) / d_model)
    return cos(angle) if dimension % 2 else sin(angle)


class TestOrder:
    @pytest.mark.parametrize(("one", "other"), [(PRINCE, PRINCESS), (EXAM, OTHER_EXAM)])
    def test_the_sentences_hold_the_same_words_in_another_order(self, one, other):
        assert one != other
        assert sorted(one.split()) == sorted(other.split())

    def test_they_are_those_of_the_lesson(self):
        assert PRINCE.replace(" 는", "는").replace(" 를", "를") == "왕자는 공주를 구했다"
        assert PRINCESS.replace(" 는", "는").replace(" 를", "를") == "공주는 왕자를 구했다"
        whole = "Although I did not get 95 in last TOEFL, I could get in the Ph.D program"
        assert EXAM.replace(" ,", ",") == whole

    @pytest.mark.parametrize(("one", "other"), [(PRINCE, PRINCESS), (EXAM, OTHER_EXAM)])
    def test_without_positions_every_vector_is_the_same_with_them_none_is(self, one, other):
        assert all(change < 1e-12 for _, change in compare_orders(one, other, "none"))
        for kind in ("sinusoidal", "learned", "concatenated"):
            assert all(change > 1e-3 for _, change in compare_orders(one, other, kind))

    def test_the_same_order_changes_nothing(self):
        assert all(change < 1e-12 for _, change in compare_orders(EXAM, EXAM, "sinusoidal"))

    def test_not_changes_most_of_all_words(self):
        changes = dict(compare_orders(EXAM, OTHER_EXAM, "sinusoidal"))
        assert max(changes, key=changes.get) == "not"

    def test_the_tables_hold_both_columns(self, view):
        for kind in ("sinusoidal", "learned"):
            first, second, *_ = view.blocks(Table, {"kind": kind})
            assert [row[0].ko for row in first.rows] == PRINCE.split()
            assert [row[0] for row in second.rows] == [word for word in EXAM.split() if word != ","]
            expected = [change for _, change in compare_orders(PRINCE, PRINCESS, kind)]
            assert [row[2] for row in first.rows] == expected
            assert max(row[1] for row in first.rows) < 1e-12


class TestWaves:
    def test_the_toy_is_the_formula_in_both_orders(self, view):
        _, paper, halves, timing_signal = view.blocks(Matrix)[:4]
        expected = np.array([[by_formula(p, i, 4) for i in range(4)] for p in range(6)])
        assert np.array(paper.values) == pytest.approx(expected, abs=1e-12)
        assert np.array(halves.values) == pytest.approx(expected[:, [0, 2, 1, 3]], abs=1e-12)
        signal = [[sin(p), sin(p / 1e4), cos(p), cos(p / 1e4)] for p in range(6)]
        assert np.array(timing_signal.values) == pytest.approx(np.array(signal), abs=1e-12)

    @pytest.mark.parametrize(("position", "d_model"), [(0, 4), (17, 6), (10_000, 512), (5, 7)])
    def test_any_position_and_width(self, view, position, d_model):
        given = {"position": position, "d_model": d_model}
        vector = view.blocks(Matrix, given)[4].values[0]
        expected = [by_formula(position, i, d_model) for i in range(min(8, d_model))]
        assert vector == pytest.approx(expected, abs=1e-9)
        turned = view.blocks(Matrix, {**given, "layout": "halves"})[4].values[0]
        pairs = [by_formula(position, 2 * i, d_model) for i in range((d_model + 1) // 2)]
        assert turned[: min(8, len(pairs))] == pytest.approx(pairs[:8], abs=1e-9)

    def test_the_curves_are_columns_of_twenty_positions_by_512(self, view):
        chart = position_chart()
        assert chart in view.blocks(Chart)
        assert chart.x == [float(index) for index in range(20)]
        for one in chart.series:
            dimension = int(one.label.en.split()[-1])
            expected = [by_formula(index, dimension, 512) for index in range(20)]
            assert one.values == pytest.approx(expected, abs=1e-9)
        assert len(chart.series) == 5


class TestHeatMap:
    @pytest.mark.parametrize("layout", ["interleaved", "halves", "tensor2tensor"])
    def test_it_holds_columns_of_the_papers_table(self, view, layout):
        heat_map = view.blocks(Matrix, layout=layout)[-1]
        table = sinusoidal(20, 512, layout=layout, dtype=torch.float64)
        columns = [int(column) for column in heat_map.columns]
        assert np.array(heat_map.values) == pytest.approx(table[:, columns].numpy(), abs=0.0051)


class TestVirtues:
    @pytest.mark.parametrize("d_model", [4, 64])
    def test_the_measured_values(self, view, d_model):
        largest, same, gap, far = (
            row[1] for row in view.blocks(Table, {"d_model": d_model})[2].rows
        )
        table = np.array([[by_formula(p, i, d_model) for i in range(d_model)] for p in range(500)])
        assert largest == pytest.approx(np.abs(table).max(), abs=1e-9)
        assert largest <= 1.0
        assert same == 0.0
        gaps = np.linalg.norm(table[:, None] - table[None], axis=-1) + 1e9 * np.eye(500)
        assert gap == pytest.approx(gaps.min(), rel=1e-4)
        assert gap > 0.01
        expected = max(abs(by_formula(5000, i, d_model)) for i in range(d_model))
        assert far == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("lang", LANGUAGES)
    def test_likeness_depends_on_the_distance_alone(self, view, lang):
        text = view.text(lang)
        for d in (4, 512):
            vectors = {
                p: np.array([by_formula(p, i, d) for i in range(d)]) for p in (3, 5, 8, 10, 12)
            }
            near, far = vectors[3] @ vectors[5], vectors[3] @ vectors[8]
            assert vectors[10] @ vectors[12] == pytest.approx(near)
            assert (near < far) == (d == 4)
            assert f"{near:.4f}" in text
            assert f"{far:.4f}" in text


class TestCosts:
    def test_mixing_costs_two_matrices(self):
        assert count_projection_parameters(512) == 2 * 512 * 512 == 524_288

    @pytest.mark.parametrize("d", [512, 1024])
    def test_a_layer_is_four_projections_two_matrices_two_norms(self, d):
        attention, network = 4 * (d * d + d), 2 * d * 2048 + 2048 + d
        assert count_layer_parameters(d) == attention + network + 2 * 2 * d


class TestYourModel:
    def test_pictures_and_the_change_of_two_pieces_reversed(self, make_translator):
        translator = make_translator(num_heads=2, num_layers=1)
        blocks = LESSON.own_model_blocks(translator, "ka to mi re")
        names = [block.name for block in blocks if isinstance(block, ModelPlot)]
        assert names == ["positions", "position_toy", "input_sum"]
        record = capture(translator, "ka to mi re", "RE MI")
        assert all(PLOTS[name].is_possible(record, translator.model) for name in names)
        (table,) = [block for block in blocks if isinstance(block, Table)]
        model, tokenizer = translator.model, translator.tokenizer
        with torch.no_grad():
            one, other = (
                model.encode(torch.tensor(tokenizer.encode_src([text]))).states[0]
                for text in ("ka to mi re", "to ka mi re")
            )
        expected = (one - other[[1, 0, 2, 3, 4]]).norm(dim=-1).tolist()
        assert [row[1] for row in table.rows] == pytest.approx(expected, abs=1e-5)

    def test_one_piece_is_enough(self, make_translator):
        assert LESSON.own_model_blocks(make_translator(num_heads=2, num_layers=1), "ka")

    def test_a_baseline_with_positions_shows_those(self, make_translator):
        translator = make_translator("conv-s2s", num_layers=2, num_decoder_layers=2)
        names = [block.name for block in LESSON.own_model_blocks(translator, "ka to")]
        assert names == ["positions", "position_toy"]

    @pytest.mark.parametrize("options", [{"kind": "rnn-attention"}, {"positions": "none"}])
    def test_without_positions_there_is_a_message(self, options, make_translator):
        blocks = LESSON.own_model_blocks(make_translator(**options), "ka to")
        assert [type(block) for block in blocks] == [Note]
