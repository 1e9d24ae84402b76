"""The figures of the lessons as numbers, which a page draws."""

from __future__ import annotations

import base64
import json
import sys

import numpy as np
import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.inspection import capture
from attendo.inspection.figure_data import describe_figure
from attendo.inspection.figure_data.registry import FIGURES
from attendo.inspection.plots import PLOTS
from attendo.lessons.blocks import ModelPlot
from attendo.lessons.contents import load_lessons
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
TEXT = "ka to mi re"


@pytest.fixture(scope="module")
def translator(toy) -> Translator:
    torch.manual_seed(5)
    return Translator(
        build_model("transformer", SIZES, toy.prepared.tokenizer).eval(), toy.prepared.tokenizer
    )


@pytest.fixture(scope="module")
def record(translator):
    return capture(translator, TEXT)


def panels_of(figure, kind):
    return [panel for row in figure["rows"] for panel in row if panel["kind"] == kind]


def values_of(heatmap):
    numbers = np.frombuffer(base64.b64decode(heatmap["data"]), "<f2")
    return numbers.reshape(heatmap["num_rows"], heatmap["num_columns"])


def test_every_plot_of_a_lesson_has_a_figure(translator):
    plots = {
        block.name
        for lesson in load_lessons()
        for block in lesson.own_model_blocks(translator, TEXT)
        if isinstance(block, ModelPlot)
    }
    assert plots <= FIGURES.keys() <= PLOTS.keys()


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_json_in_both_languages_without_matplotlib(
    translator, record, monkeypatch, name
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    english, korean = (
        json.loads(json.dumps(figure, allow_nan=False))
        for figure in (
            describe_figure(name, record, translator, language=lang) for lang in ("en", "ko")
        )
    )
    assert english["title"] != korean["title"]
    assert [len(row) for row in english["rows"]] == [len(row) for row in korean["rows"]]


def test_weights_are_those_of_the_record(translator, record):
    figure = describe_figure("score_matrix", record, translator, layer=1, head=2)
    scores, weights = map(values_of, panels_of(figure, "heatmap"))
    assert weights == pytest.approx(record.attention("encoder_self")[1, 2], abs=2e-3)
    softmax = np.exp(scores.astype(float))
    assert softmax / softmax.sum(-1, keepdims=True) == pytest.approx(weights, abs=5e-3)
    assert "layer 2, head 3" in figure["about"]


def test_a_word_is_the_weighted_sum_of_its_values(translator, record):
    figure = describe_figure("one_word", record, translator, row=1)
    weights = panels_of(figure, "bars")[1]["values"]
    (summed,) = panels_of(figure, "heatmap")
    table = values_of(summed)
    assert sum(weights) == pytest.approx(1.0, abs=1e-3)
    assert np.isnan(table[-2]).all()
    assert table[:-2].sum(0) == pytest.approx(table[-1], abs=5e-3)


def test_masked_cells_have_no_value(translator, record):
    masks = {one["title"]: values_of(one) for one in
             panels_of(describe_figure("masks", record, translator), "heatmap")}  # fmt: skip
    (causal,) = (mask for title, mask in masks.items() if "future" in title)
    length = len(record.tgt["tokens"])
    allowed = ~np.isnan(causal[:length, :length])
    assert (allowed == np.tril(np.ones((length, length), bool))).all()


def test_an_unknown_figure_is_rejected_with_the_nearest_name(translator, record):
    with pytest.raises(InputError, match="no plot 'one_wrod'"):
        describe_figure("one_wrod", record, translator)
