"""Lesson 1: additive attention by a pencil, a state that forgets, figures that were measured."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attendo.architectures.rnn_attention_scores import AdditiveScore
from attendo.architectures.rnn_layers import RecurrentLayer
from attendo.inspection import capture
from attendo.inspection.plots.registry import PLOTS
from attendo.lessons.blocks import Chart, Formula, Matrix, ModelPlot, Note, Steps, Table
from attendo.lessons.chapters.ch01_rnn_to_attention.lesson import (
    ANNOTATIONS,
    LESSON,
    STATE,
    U,
    V,
    W,
)
from attendo.lessons.chapters.ch01_rnn_to_attention.memory import (
    PREVIOUS_WORDS,
    WIDTH,
    bleu_chart,
    load_measurements,
    make_cell,
    source_gradient_norms,
    word_influence,
)

ROOT = Path(__file__).parents[3]


def matrix(view, title, given=None):
    return next(one for one in view.blocks(Matrix, given) if one.title == title)


def by_pencil(annotations=ANNOTATIONS, state=STATE, w=W, u=U, v=V, keep=0.5):
    """The formulas of the lesson, in NumPy."""
    h, s = np.array(annotations, float), np.array(state[0], float)
    steps = []
    for printed in PREVIOUS_WORDS.values():
        scores = np.array(
            [np.array(v[0]) @ np.tanh(np.array(w) @ s + np.array(u) @ one) for one in h]
        )
        shares = np.exp(scores) / np.exp(scores).sum()
        context = shares @ h
        s = keep * s + (1 - keep) * np.tanh(np.array(printed) + context)
        steps.append((scores, shares, context, s))
    return steps


def check_steps(view, given, **changed):
    expected = by_pencil(**changed)
    scores, shares, context, _ = expected[0]
    assert matrix(view, "e₁", given).values[0] == pytest.approx(scores, abs=1e-5)
    assert matrix(view, "α₁", given).values[0] == pytest.approx(shares, abs=1e-5)
    assert matrix(view, "c₁", given).values[0] == pytest.approx(context, abs=1e-5)
    (frames,) = view.blocks(Steps, given)
    assert len(frames.frames) == len(PREVIOUS_WORDS)
    for frame, step in zip(frames.frames, expected, strict=True):
        for block, numbers in zip(frame.blocks, step[1:], strict=True):
            assert block.values[0] == pytest.approx(numbers, abs=1e-5)
            assert block.title[0] in "αcs"


def test_scores_shares_context_and_states_are_those_of_the_formulas(view):
    check_steps(view, None)


@pytest.mark.parametrize(
    "changed",
    [
        {"annotations": [[3, -1], [0, 0.5], [2, 2]]},
        {"state": [[0.25, -2]]},
        {"w": [[0, 1], [1, 0]]},
        {"u": [[1, 1], [0, -1]]},
        {"v": [[-1, 3]]},
        {"keep": 0.9},
    ],
)
def test_every_input_of_the_example_goes_into_the_formulas(view, changed):
    check_steps(view, changed, **changed)


def test_the_formulas_of_additive_attention_are_shown(view):
    reported = [block.text for block in view.blocks(Formula)]
    assert "e_ij = v · tanh(W · s_{i-1} + U · h_j)" in reported
    assert "s_i = f(s_{i-1}, y_{i-1}, c_i)" in reported


def test_a_gru_with_still_gates_is_the_formula_of_its_docstring():
    cell = make_cell(0.75)
    x, state = torch.tensor([[[0.3, -0.2, 0.5, 1.0]]]), torch.tensor([[[0.6, -0.4]]])
    _, after = cell.rnn(x, state)
    expected = 0.75 * np.array([0.6, -0.4]) + 0.25 * np.tanh([0.8, 0.8])
    assert after.flatten().tolist() == pytest.approx(expected, abs=1e-6)


class TestForgetting:
    def test_the_gradients_are_those_of_the_whole_jacobian(self):
        measured = word_influence("lstm", 7).last_state
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            reader = RecurrentLayer("lstm", WIDTH, WIDTH)
            AdditiveScore(WIDTH, WIDTH, WIDTH)  # draws what the lesson draws before its words
            x = nn.functional.normalize(torch.randn(1, 7, WIDTH), dim=-1)
        whole = torch.autograd.functional.jacobian(lambda y: reader(y)[0][0, -1], x)  # (E, 1, n, D)
        expected = whole[:, 0].pow(2).sum(dim=(0, 2)).sqrt()
        assert measured == pytest.approx(expected.tolist(), rel=1e-4)

    @pytest.mark.parametrize("cell", ["lstm", "gru"])
    def test_a_state_forgets_and_attention_does_not(self, cell):
        found = word_influence(cell, 30)
        assert found.last_state[0] < 0.05 * found.last_state[-1]
        early, late = np.mean(found.context[:10]), np.mean(found.context[10:20])
        assert 0.5 < early / late < 2.0

    def test_length_and_cell_change_the_chart(self, view):
        chart = view.blocks(Chart, {"length": 12, "cell": "gru"})[0]
        assert chart.x == [float(position) for position in range(1, 13)]
        assert chart.series[0].values == word_influence("gru", 12).last_state
        assert chart.series[0].values != word_influence("lstm", 12).last_state


class TestMeasuredFigures:
    def test_they_are_those_of_the_guide(self):
        guide = (ROOT / "docs/guides/baselines.md").read_text(encoding="utf-8")
        names = {
            "rnn-seq2seq": "RNN, one context vector",
            "rnn-attention": "RNN with attention",
            "transformer": "Transformer",
        }
        for kind, name in names.items():
            row = re.search(rf"^\| {name} \|(.+)\|$", guide, re.MULTILINE)[1]
            figures = [float(cell) for cell in row.split("|")[-4:]]
            assert load_measurements()["bleu"][kind] == figures
        assert load_measurements()["command"] in guide
        assert load_measurements()["sentences"] == [285, 499, 160, 52]

    def test_chart_and_table_hold_them(self, view):
        chart = bleu_chart()
        assert chart in view.blocks()
        assert chart.x == ["6-10", "11-15", "16-20", "21-30"]
        *_, table = view.blocks(Table)
        columns = list(zip(*table.rows, strict=True))
        assert columns[1] == (285, 499, 160, 52)
        for series, column in zip(chart.series, columns[2:], strict=True):
            assert series.values == list(column)


class TestYourModel:
    @pytest.mark.parametrize("kind", ["transformer", "rnn-attention", "conv-s2s"])
    def test_a_model_that_looks_is_drawn_looking(self, kind, make_translator):
        translator = make_translator(kind)
        drawings = [
            block
            for block in LESSON.own_model_blocks(translator, "ka to mi")
            if isinstance(block, ModelPlot)
        ]
        assert [one.name for one in drawings] == ["decoder_steps", "head_lines"]
        record = capture(translator, "ka to mi", "MI TO")
        for one in drawings:
            assert PLOTS[one.name].is_possible(record, translator.model)

    @pytest.mark.parametrize("is_reversed", [True, False])
    def test_a_model_without_attention_shows_what_its_vector_holds(
        self, is_reversed, make_translator
    ):
        translator = make_translator("rnn-seq2seq", reverse_source=is_reversed)
        model, tokenizer = translator.model, translator.tokenizer
        note, chart = LESSON.own_model_blocks(translator, "ka to mi re")
        assert isinstance(note, Note)
        ids = torch.tensor(tokenizer.encode_src(["ka to mi re"]))
        assert len(chart.x) == ids.size(1)
        # No piece comes twice, so the gradients lie in rows of the embedding of their own.
        context = model.start(model.encode(ids)).context[0]
        weight = model.src_embedding.weight
        rows = torch.stack(
            [torch.autograd.grad(one, weight, retain_graph=True)[0][ids[0]] for one in context]
        )
        expected = rows.pow(2).sum(dim=(0, 2)).sqrt().tolist()
        assert chart.series[0].values == pytest.approx(expected, rel=1e-4)
        assert source_gradient_norms(model, ids) == chart.series[0].values
