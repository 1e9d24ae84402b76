"""Lesson 12: from vector to word."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from attendo.inspection import capture
from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Table
from attendo.lessons.chapters.ch12_softmax.lesson import LESSON, train_model, training_chart
from attendo.lessons.tiny_model import TARGET_VOCABULARY, train_tiny_model

WORDS = ["a", "am", "i", "thanks", "student", "<eos>"]


def matrices(view, **given) -> dict[str, np.ndarray]:
    blocks = view.blocks(values=given)
    return {one.title: np.array(one.values) for one in blocks if isinstance(one, Matrix)}


def table(view, **given) -> Table:
    (found,) = (block for block in view.blocks(values=given) if isinstance(block, Table))
    return found


def softmax(logits: list[float], temperature: float = 1.0) -> list[float]:
    powers = [math.exp(number / temperature) for number in logits]
    return [power / sum(powers) for power in powers]


def test_the_vocabulary_has_six_words(view):
    assert list(TARGET_VOCABULARY) == WORDS
    assert [row[:2] for row in table(view).rows] == [list(pair) for pair in enumerate(WORDS)]


def test_logits_are_the_products_of_the_vector_with_each_row(view):
    shown = matrices(view)
    assert shown["h"].shape == (1, 8)
    assert shown["W"].shape == (6, 8)
    assert (shown["h"] @ shown["W"].T)[0] == pytest.approx(shown["z"][0], abs=1e-5)
    assert [row[2] for row in table(view).rows] == pytest.approx(shown["z"][0], abs=1e-6)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 2.5, 5.0])
def test_the_softmax_at_a_temperature(view, temperature):
    rows = table(view, temperature=temperature).rows
    logits = [row[2] for row in rows]
    assert [row[3] for row in rows] == pytest.approx(softmax(logits), abs=1e-5)
    assert [row[4] for row in rows] == pytest.approx(softmax(logits, temperature), abs=1e-5)
    assert max(rows, key=lambda row: row[4])[1] == "thanks"


def test_merci_becomes_thanks_by_training_alone(view):
    (chart,) = (block for block in view.blocks() if isinstance(block, Chart))
    assert chart == training_chart()
    before, after = (one.values for one in chart.series)
    assert sum(before) == pytest.approx(1.0, abs=1e-5)
    assert sum(after) == pytest.approx(1.0, abs=1e-5)
    assert WORDS[int(np.argmax(before))] != "thanks"
    assert before[3] < 0.3
    # Trained with label smoothing 0.1, it stops at 0.9 + 0.1 / 6, and 0.1 / 6 for all others.
    assert after[3] == pytest.approx(0.9 + 0.1 / 6, abs=0.01)
    assert after[0] == pytest.approx(0.1 / 6, abs=0.005)


def test_what_comes_after_the_word_is_the_end():
    probabilities = train_model(150).teacher_force("merci", "thanks").probabilities
    assert WORDS[int(probabilities[1].argmax())] == "<eos>"


def test_training_steps_can_be_changed(view):
    probs = [table(view, steps=steps).rows[3][3] for steps in (0, 30, 150)]
    assert probs == sorted(probs)
    assert probs[0] == training_chart(steps=30).series[0].values[3]
    assert matrices(view, steps=0)["W"] != pytest.approx(matrices(view, steps=150)["W"], abs=0.05)


def test_the_tiny_model_learns_what_the_trainer_would():
    """One step by hand: Adam's first step moves every weight by the rate, against its gradient."""
    before, after = (
        train_tiny_model((("merci", "thanks"),), steps=steps, d_model=8).model for steps in (0, 1)
    )
    rate = 8**-0.5 * 60**-1.5
    moves = [
        (new - old).detach().abs()
        for old, new in zip(before.parameters(), after.parameters(), strict=True)
    ]
    assert max(float(one.max()) for one in moves) == pytest.approx(rate, rel=1e-3)


def test_training_leaves_the_random_state_of_others_alone():
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train_tiny_model.__wrapped__((("merci", "thanks"),), steps=2, d_model=8)
    assert torch.equal(torch.rand(3), expected)


def test_the_same_training_gives_the_same_model():
    one, other = (
        train_tiny_model.__wrapped__((("merci", "thanks"),), steps=5, d_model=8) for _ in range(2)
    )
    assert torch.equal(
        one.teacher_force("merci", "thanks").logits, other.teacher_force("merci", "thanks").logits
    )


@pytest.mark.parametrize("kind", ["transformer", "rnn-seq2seq"])
def test_your_own_model(make_translator, kind):
    translator = make_translator(kind, num_layers=1)
    reported, shown, drawing = LESSON.own_model_blocks(translator, "ka to mi")
    size = translator.tokenizer.tgt_vocab_size
    assert f"{1 / size:.6f}" in reported.words.en
    assert f"{1 / size:.6f}" in reported.words.ko
    top = capture(translator, "ka to mi", top=5).steps[0]["top"]
    assert shown.rows == [[one["piece"], one["probability"]] for one in top]
    assert isinstance(drawing, ModelPlot)
    assert drawing.name == "logits"
