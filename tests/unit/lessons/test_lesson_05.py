"""Lesson 5: scores grow with d_k, softmax hardens, its gradient dies; divided, none of it."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch

from attendo.inspection import capture
from attendo.inspection.plots.registry import PLOTS
from attendo.lessons.blocks import Chart, ModelPlot, Table
from attendo.lessons.chapters.ch05_scaling.lesson import (
    LESSON,
    SIZES,
    deviation_chart,
    gradient_chart,
    remaining_gradient,
    sample_vectors,
    score_statistics,
)


def softmax(scores):
    raised = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def by_numpy(d_k, divisor, num_keys=8):
    """Scores and shares (rows, n) of the lesson's own draws."""
    query, key = (vectors[..., :d_k].numpy() for vectors in sample_vectors(num_keys))
    scores = np.einsum("bqd,bkd->bk", query, key) / divisor
    return scores, softmax(scores)


class TestMeasured:
    def test_every_size_from_4_to_1024_is_measured(self, view):
        assert SIZES == (4, 8, 16, 32, 64, 128, 256, 512, 1024)
        (table,) = view.blocks(Table)
        assert [row[0] for row in table.rows] == list(SIZES)

    @pytest.mark.parametrize("num_keys", [8, 3])
    def test_the_table_is_what_numpy_finds(self, view, num_keys):
        (table,) = view.blocks(Table, {"num_keys": num_keys})
        for size, *figures in table.rows:
            expected = []
            for divisor in (1.0, sqrt(size)):
                scores, shares = by_numpy(size, divisor, num_keys)
                derivatives = np.sort((shares * (1 - shares)).sum(axis=-1))
                middle = derivatives[(len(derivatives) - 1) // 2]
                expected.append((scores.std(ddof=1), shares.max(axis=-1).mean(), middle))
            paired = [figure for pair in zip(*expected, strict=True) for figure in pair]
            assert figures == pytest.approx(paired, rel=1e-6, abs=1e-12)

    def test_samples_have_mean_0_and_variance_1(self):
        for vectors in sample_vectors(8):
            assert float(vectors.mean()) == pytest.approx(0.0, abs=0.01)
            assert float(vectors.var()) == pytest.approx(1.0, abs=0.01)

    def test_scores_spread_by_the_root_and_divided_by_one(self):
        for size in SIZES:
            assert score_statistics(size, divided=False).deviation == pytest.approx(
                sqrt(size), rel=0.06
            )
            assert score_statistics(size, divided=True).deviation == pytest.approx(1.0, rel=0.06)

    def test_undivided_the_gradient_vanishes(self):
        left = [score_statistics(size, divided=False).gradient for size in SIZES]
        assert left == sorted(left, reverse=True)
        assert left[0] > 0.5
        assert left[-1] < 1e-4
        assert score_statistics(1024, divided=False).largest_weight > 0.95

    def test_divided_nothing_changes(self):
        for size in SIZES:
            assert score_statistics(size, divided=True).gradient == pytest.approx(0.79, abs=0.03)
            assert score_statistics(size, divided=True).largest_weight < 0.4

    def test_the_sum_is_the_trace_of_the_softmaxs_derivative(self):
        scores = torch.tensor([0.3, -1.0, 2.0, 0.5], dtype=torch.float64)
        whole = torch.autograd.functional.jacobian(lambda x: x.softmax(dim=0), scores)
        assert float(remaining_gradient(scores.softmax(dim=0))) == pytest.approx(
            float(whole.trace())
        )

    def test_the_charts_hold_the_same(self, view):
        growth, decay = deviation_chart(), gradient_chart()
        blocks = view.blocks()
        assert growth in blocks
        assert decay in blocks
        (table,) = view.blocks(Table)
        columns = list(zip(*table.rows, strict=True))
        for chart, positions in ((growth, (1, 2)), (decay, (5, 6))):
            assert [tuple(one.values) for one in chart.series] == [columns[at] for at in positions]


class TestOneWord:
    @pytest.mark.parametrize(("d_k", "num_keys"), [(64, 8), (1, 8), (1024, 5)])
    def test_the_bars_are_its_shares(self, view, d_k, num_keys):
        bars = next(
            one
            for one in view.blocks(Chart, {"d_k": d_k, "num_keys": num_keys})
            if one.form == "bars"
        )
        for one, divisor in zip(bars.series, (1.0, sqrt(d_k)), strict=True):
            assert one.values == pytest.approx(by_numpy(d_k, divisor, num_keys)[1][0], abs=1e-9)

    def test_a_temperature_divides_once_more(self, view):
        bars = next(one for one in view.blocks(Chart, {"temperature": 2.5}) if one.form == "bars")
        expected = by_numpy(64, 2.5 * sqrt(64))[1][0]
        assert bars.series[2].values == pytest.approx(expected, abs=1e-9)
        assert max(bars.series[2].values) < max(bars.series[1].values)


class TestYourModel:
    @pytest.mark.parametrize("options", [{}, {"scale": False}, {"d_k": 5, "d_v": 8}])
    def test_the_heads_of_its_first_layer(self, options, make_translator):
        translator = make_translator(**{"num_heads": 2, "num_layers": 1, **options})
        model, text = translator.model, "ka to mi"
        _, table, drawing = LESSON.own_model_blocks(translator, text)
        ids = torch.tensor(translator.tokenizer.encode_src([text]))
        attention = model.encoder.layers[0].self_attention
        with torch.no_grad():
            x = model.src_positions(model.src_embedding(ids))
            queries, keys = (
                part(x)[0].unflatten(-1, (2, -1)).transpose(0, 1).numpy()
                for part in (attention.query, attention.key)
            )
        for number, (query, key) in enumerate(zip(queries, keys, strict=True)):
            scores = query @ key.T
            divided = scores / sqrt(query.shape[-1])
            expected = [
                number + 1,
                scores.std(ddof=1),
                divided.std(ddof=1),
                softmax(scores).max(axis=-1).mean(),
                softmax(divided).max(axis=-1).mean(),
            ]
            assert table.rows[number] == pytest.approx(expected, abs=1e-5)
        assert isinstance(drawing, ModelPlot)
        record = capture(translator, text, "MI TO")
        assert PLOTS[drawing.name].is_possible(record, model)
