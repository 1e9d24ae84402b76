"""Lesson 22: from 2017 to today."""

from __future__ import annotations

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Note, Table, localize
from attendo.lessons.chapters.ch22_since_2017.diagram import draw_layers
from attendo.lessons.chapters.ch22_since_2017.layer_gradients import DEPTHS, gradients_by_layer
from attendo.lessons.chapters.ch22_since_2017.lesson import (
    KEY,
    LESSON,
    NORM_INPUT,
    PARTS,
    QUERY,
    option_values,
)
from attendo.lessons.chapters.ch22_since_2017.memory import (
    CacheShape,
    fused_difference,
    measure_numbers_per_token,
)
from attendo.lessons.chapters.ch22_since_2017.published_sizes import (
    DECODER_ONLY,
    LLAMA2_70B,
    DecoderOnly,
)
from attendo.lessons.chapters.ch22_since_2017.rotary import (
    added_score,
    frequencies,
    rotary_score,
    rotate,
)
from attendo.lessons.diagrams.shapes import Box, Line
from attendo.model.config import TransformerConfig
from attendo.model.transformer import Transformer

POSITIONS = st.integers(0, 100)


def vector(rows):
    return torch.tensor(rows[0], dtype=torch.float64)


def table(view, title, **values) -> Table:
    tables = view.blocks(Table, values=values)
    return next(one for one in tables if getattr(one.title, "en", "") == title)


@given(m=POSITIONS, n=POSITIONS, shift=POSITIONS)
def test_a_rotated_score_depends_on_the_distance_only(m, n, shift):
    q, k = vector(QUERY), vector(KEY)
    score = rotary_score(q, k, m, n)
    assert rotary_score(q, k, m + shift, n + shift) == pytest.approx(score, abs=1e-9)
    assert float(rotate(q, m).norm()) == pytest.approx(float(q.norm()))


def test_rotations_are_products_of_complex_numbers():
    q, position = vector(QUERY), 7
    complex_pairs = [complex(*pair) for pair in q.view(-1, 2).tolist()]
    for index, theta in enumerate(frequencies(4).tolist()):
        assert theta == pytest.approx(10_000 ** (-2 * index / 4))
        turned = complex_pairs[index] * complex(
            math.cos(position * theta), math.sin(position * theta)
        )
        found = rotate(q, position)[2 * index : 2 * index + 2].tolist()
        assert found == pytest.approx([turned.real, turned.imag])


def test_the_table_of_scores_follows_the_positions(view):
    title = "score of q and k at several positions"
    for values in ({}, {"query_position": 2, "key_position": 9}):
        rows = table(view, title, **values).rows
        assert len({round(row[3], 6) for row in rows[:4]}) == 1
        assert len({row[2] for row in rows[:4]}) == 1
        assert len({round(row[4], 6) for row in rows[:4]}) > 1
        for m, n, distance, rotated, added in rows:
            assert distance == m - n
            assert rotated == pytest.approx(rotary_score(vector(QUERY), vector(KEY), m, n))
            assert added == pytest.approx(added_score(vector(QUERY), vector(KEY), m, n))


def test_post_norm_loses_the_gradient_with_depth():
    post = [gradients_by_layer("post", depth)[0] for depth in DEPTHS]
    pre = [gradients_by_layer("pre", depth)[0] for depth in DEPTHS]
    assert post == sorted(post, reverse=True)
    assert post[-1] < post[0] / 50
    assert pre[-1] > pre[0] / 5


def test_the_chart_has_every_layer(view):
    chart = view.blocks(Chart, num_layers=6)[0]
    assert chart.x == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert [one.values for one in chart.series] == [
        list(gradients_by_layer("post", 6)),
        list(gradients_by_layer("pre", 6)),
    ]


def test_both_norms_by_hand(view):
    (matrix,) = (one for one in view.blocks(Matrix) if one.rows)
    x = NORM_INPUT[0]
    root = math.sqrt(sum(number**2 for number in x) / len(x) + 1e-5)
    assert matrix.values[2] == pytest.approx([number / root for number in x])
    assert matrix.values[1] == pytest.approx(matrix.values[3])  # of x and of x + 10
    assert matrix.values[2] != pytest.approx(matrix.values[4], abs=0.1)


def test_the_cache_is_what_a_model_keeps():
    config = TransformerConfig(vocab_size=1)
    shape = CacheShape(config.num_layers, config.num_heads, config.num_heads, 64)
    assert shape.numbers_per_token() == measure_numbers_per_token()
    assert shape.gibibytes(1024) == pytest.approx(6144 * 1024 * 2 / 2**30)


def test_the_cache_table_follows_the_length(view):
    rows = table(view, "key-value cache for 8,192 tokens", context=8192).rows
    assert [row[1] for row in rows] == [64, 8, 1]
    assert rows[0][3] == pytest.approx(2 * 80 * 64 * 128 * 8192 * 2 / 2**30)
    assert rows[0][2] == 8 * rows[1][2] == 64 * rows[2][2]


def test_fused_attention_is_the_same_function():
    assert 0 <= fused_difference() < 1e-5


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("GPT-2", 124_439_808),
        ("GPT-2 XL", 1_557_611_200),
        ("Llama 2 7B", 6_738_415_616),
        ("Llama 2 70B", 68_976_648_192),
    ],
)
def test_published_models_have_the_parameters_of_their_weights(name, known):
    model = next(one for one in DECODER_ONLY if one.name == name)
    assert model.num_parameters() == known
    assert LLAMA2_70B.layer_parameters() < LLAMA2_70B._replace(num_kv_heads=None).layer_parameters()


def test_the_formula_counts_what_a_layer_of_attendo_has():
    """An encoder layer is a layer of GPT: attention and network with biases, two layer norms."""
    layer = Transformer(4, d_model=16, d_ff=64, num_heads=4, num_layers=1).encoder.layers[0]
    counted = sum(parameter.numel() for parameter in layer.parameters())
    gpt = DecoderOnly("", "", "", 1, 16, 64, 4, 4, is_gated=False, has_bias=True)
    assert gpt.layer_parameters() == counted


def test_the_options_are_those_of_the_config(view):
    rows = table(view, "parts of the Transformer and options of Attendo").rows
    for part, row in zip(PARTS, rows, strict=True):
        if part.option is None:
            assert row[3] == "–"
        else:
            assert part.option in TransformerConfig.model_fields
            assert row[3].startswith(f"{part.option} = ")
    for value in option_values("norm"):
        assert TransformerConfig(vocab_size=4, norm=value).norm == value
    # A dash in the table stays true only as long as there is no such option.
    assert "rotary" not in option_values("positions")
    assert "swiglu" not in option_values("activation")
    assert not {"num_kv_heads", "norm_kind"} & set(TransformerConfig.model_fields)


def test_your_own_model(make_translator):
    translator = make_translator(norm="pre", activation="gelu")
    shown, cache, drawing = LESSON.own_model_blocks(translator, "ka to mi")
    assert {row[1] for row in shown.rows} >= {"pre", "gelu", "sinusoidal"}
    assert "64 numbers" in cache.words.en  # 2 layers, 4 heads of 4, keys and values
    assert isinstance(drawing, ModelPlot)
    (note,) = LESSON.own_model_blocks(make_translator("rnn-seq2seq"), "ka to mi")
    assert isinstance(note, Note)


def test_residual_connections_begin_after_the_norm_or_after_the_sum():
    """In post-norm the sum is normalized; in pre-norm the norm is inside of the branch."""
    boxes = [one for one in draw_layers({}).shapes if isinstance(one, Box)]
    lines = [one for one in draw_layers({}).shapes if isinstance(one, Line)]
    below = []
    for one in (one for one in lines if one.style == "residual"):
        x, y = map(float, re.findall(r"[\d.]+", one.path)[:2])
        under = [box for box in boxes if abs(box.x + box.width / 2 - x) < 1 and box.y > y]
        below.append(localize(min(under, key=lambda box: box.y).text, "en") if under else "x")
    assert below == ["x", "LayerNorm", "x", "+"]
