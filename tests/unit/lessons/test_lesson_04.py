"""Lesson 4: one word in six steps gives the same numbers as the matrices."""

from __future__ import annotations

import json

import numpy as np
import pytest

from attendo.lessons.blocks import Matrix, ModelPlot, Note, Paragraph, Steps, Table
from attendo.lessons.chapters.ch04_attention_by_hand.lesson import LESSON, W_K, W_Q, W_V, WORDS, X


def by_numpy(scale=True):
    """The formulas of the lesson, in NumPy."""
    query, key, value = (np.array(X) @ np.array(matrix) for matrix in (W_Q, W_K, W_V))
    scores = query @ key.T
    powers = np.exp(scores / np.sqrt(3) if scale else scores)
    weights = powers / powers.sum(-1, keepdims=True)
    return query, scores, powers, weights, weights @ value


def matrix(view, title, given=None):
    return next(one for one in view.blocks(Matrix, given) if one.title == title)


def test_all_inputs_are_printed(view):
    printed = {one.title: one.values for one in view.blocks(Matrix) if isinstance(one.title, str)}
    assert [printed[name] for name in ("X", "W_Q", "W_K", "W_V")] == [X, W_Q, W_K, W_V]


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("word", WORDS)
def test_six_steps_of_a_word_are_a_row_of_the_matrices(view, word, scale):
    row = WORDS.index(word)
    query, scores, powers, weights, output = by_numpy(scale)
    (steps,) = view.blocks(Steps, {"word": word, "scale": scale})
    vectors, products, _, softmax, _, total = (frame.blocks for frame in steps.frames)
    assert vectors[0].values == [query[row].tolist()]
    assert [line[2] for line in products[0].rows] == scores[row].tolist()
    for line in products[0].rows:
        assert eval(line[1].replace("·", "*")) == line[2]  # noqa: S307 - a sum of products
    assert [line[1] for line in softmax[0].rows] == pytest.approx(powers[row], rel=1e-5)
    assert [line[2] for line in softmax[0].rows] == pytest.approx(weights[row], rel=1e-5)
    assert total[0].values[0] == pytest.approx(output[row], rel=1e-5)


def test_large_numbers_do_not_overflow(view):
    given = {"x": [[100] * 4] * 3, "w_q": [[100] * 3] * 4, "w_k": [[100] * 3] * 4}
    json.dumps(LESSON.to_dict("en", given), allow_nan=False)


def test_it_names_self_attention_and_compares_it(view):
    assert any("Self-attention" in block.words.en for block in view.blocks(Paragraph))
    assert len(view.blocks(Table)) == 2


def test_the_own_section_counts_words_that_look_at_themselves(make_translator):
    blocks = LESSON.own_model_blocks(make_translator(num_heads=2, num_layers=1), "ka to mi")
    assert isinstance(blocks[0], Paragraph)
    assert "of 8 rows" in blocks[0].words.en  # 4 tokens, 2 heads, 1 layer
    assert [block.name for block in blocks if isinstance(block, ModelPlot)]
    assert [type(one) for one in LESSON.own_model_blocks(make_translator("conv-s2s"), "ka")] == [
        Note
    ]
