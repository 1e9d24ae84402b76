"""Lesson 17: learning."""

from __future__ import annotations

import json

import pytest
import torch

from attendo.bundle import save_bundle
from attendo.core.run_folder import RunFolder, checkpoint_dir
from attendo.inspection.checkpoint_view import view_checkpoint
from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Note, Steps, Table
from attendo.lessons.chapters.ch17_learning.checkpoints import select
from attendo.lessons.chapters.ch17_learning.lesson import LESSON, drop
from attendo.lessons.chapters.ch17_learning.optimization import (
    INPUT,
    TARGET,
    descend,
    loss_of,
    update_by_adam,
)
from attendo.lessons.chapters.ch17_learning.overfitting import (
    NUM_HELD_OUT,
    NUM_WORDS,
    STEPS,
    find_best,
    split_combinations,
    to_sentences,
    train_on_few,
)
from attendo.training.run_log import RunLog


@pytest.mark.parametrize("weight", [-2.0, 0.0, 3.0, 7.5])
def test_the_backward_pass_is_that_of_autograd(weight):
    (step,) = descend(weight, 0.1, 1)
    w = torch.tensor(weight, dtype=torch.float64, requires_grad=True)
    loss = 0.5 * (w * INPUT - TARGET) ** 2
    loss.backward()
    assert step.loss == pytest.approx(float(loss.detach())) == loss_of(weight)
    assert step.gradient == pytest.approx(float(w.grad))
    assert step.new_weight == pytest.approx(weight - 0.1 * float(w.grad))


def test_a_high_rate_diverges_and_a_low_one_is_slow():
    losses = {rate: [one.loss for one in descend(0.0, rate)] for rate in (0.01, 0.1, 0.52)}
    assert losses[0.52] == sorted(losses[0.52])
    assert losses[0.1] == sorted(losses[0.1], reverse=True)
    assert losses[0.1][-1] < losses[0.01][-1] < losses[0.01][0]


@pytest.mark.parametrize(
    ("gradients", "betas"),
    [
        ([0.2, 0.1, 0.4, -0.1], (0.9, 0.98)),
        ([250.0, 0.0, -3.0], (0.0, 0.5)),
        ([0.0, 1.0], (0.9, 0.999)),
    ],
)
def test_adam_by_hand_is_that_of_torch(gradients, betas):
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.001, betas=betas, eps=1e-9)
    ours = update_by_adam(gradients, rate=0.001, beta_1=betas[0], beta_2=betas[1], epsilon=1e-9)
    for gradient, step in zip(gradients, ours, strict=True):
        weight.grad = torch.full((1,), gradient, dtype=torch.float64)
        optimizer.step()
        state = optimizer.state[weight]
        assert step.weight == pytest.approx(float(weight.detach()), rel=1e-9, abs=1e-15)
        assert step.first_moment == pytest.approx(float(state["exp_avg"]), rel=1e-9)
        assert step.second_moment == pytest.approx(float(state["exp_avg_sq"]), rel=1e-9)


def test_the_numbers_of_adam_can_be_changed(view):
    (steps,) = view.blocks(Steps)
    assert len(steps.frames) == 4
    text = view.text("ko", gradients=[[1, 2, 3, 4]], beta_1=0.5)
    assert "m = 0.5 · 0 + 0.5 · 1 = 0.5" in text


@pytest.mark.parametrize("p", [0.0, 0.25, 0.5, 0.9])
def test_dropout_scales_what_it_keeps(p):
    x, first, *_, mean, evaluation = drop(p)
    assert torch.equal(evaluation, x)
    kept = first != 0
    assert torch.allclose(first[kept], x[kept] / (1 - p))
    assert torch.allclose(mean, x, atol=0.15 * float(x.abs().max()) / (1 - p))
    if p == 0:
        assert torch.equal(first, x)


def test_sentences_held_out_have_known_words_in_new_combinations():
    for count in (NUM_WORDS, 12, 96):
        training, held_out = split_combinations(count)
        assert len(set(training)) == count
        assert len(set(held_out)) == NUM_HELD_OUT
        assert not set(training) & set(held_out)
        for position in range(3):
            assert {one[position] for one in training} == set(range(NUM_WORDS))
    assert to_sentences((0, 0, 1)) == ("나는 사과를 좋아한다", "I like apples")


def test_few_pairs_are_memorized_and_many_are_understood(view):
    few, many = train_on_few(12), train_on_few(48)
    best, last = find_best(few), few[-1]
    assert [one.step for one in few][-1] == STEPS
    assert last.train_loss < 0.01 < best.train_loss
    assert 0 < best.step < STEPS
    assert last.held_out_loss > 1.1 * best.held_out_loss
    assert many[-1].num_right > 0.9 * NUM_HELD_OUT > 3 * last.num_right
    chart = view.blocks(Chart)[-1]
    assert [one.values[-1] for one in chart.series] == [last.train_loss, last.held_out_loss]
    table = view.blocks(Table)[-1]
    assert table.rows[0][1:] == [
        best.step,
        best.held_out_loss,
        last.held_out_loss,
        best.num_right,
        last.num_right,
    ]


def test_dropout_is_shown_row_by_row(view):
    (matrix,) = view.blocks(Matrix)
    assert matrix.values == drop(0.5).tolist()


@pytest.fixture
def run(make_translator, tmp_path):
    """A run with samples of three validations, of which two have kept their checkpoints."""
    folder = RunFolder(tmp_path / "ka-en")
    for seed, step in enumerate((20, 30), 1):
        translator = make_translator(num_layers=1, seed=seed)
        model, tokenizer = translator.model, translator.tokenizer
        save_bundle(checkpoint_dir(folder.checkpoints_dir, step), model, tokenizer, about={})
    folder.config_path.write_text("{}")
    log = RunLog(folder.path)
    for step in (10, 20, 30):
        log.write("train", step - 5, loss=9.0 / step)
        log.write("validation", step, loss=8.0 / step)
    log.close()
    lines = (
        {"step": step, "samples": [{"src": "ka to", "output": f"out {step}", "ref": None}]}
        for step in (10, 20, 30)
    )
    folder.samples_path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def test_a_run_is_watched_from_its_samples_and_its_checkpoints(run):
    reported, table, steps, _ = LESSON.run_blocks(run, None)
    assert "“ka to”" in reported.words.en
    views = {step: view_checkpoint(run, step, "ka to") for step in (20, 30)}
    assert table.rows == [
        [10, 0.9, 0.8, "out 10", ""],
        [20, 0.45, 0.4, views[20].translation, "●"],
        [30, 0.3, pytest.approx(8 / 30), views[30].translation, "●"],
    ]
    for frame, view in zip(steps.frames, views.values(), strict=True):
        (matrix,) = frame.blocks
        assert matrix.rows == view.tgt
        assert matrix.columns == view.src
        assert matrix.values == [[round(one, 2) for one in row] for row in view.attention]


def test_another_sentence_has_no_samples(run):
    rows = LESSON.run_blocks(run, "mi re")[1].rows
    assert [row[0] for row in rows] == [10, 20, 30]
    assert rows[0][3] is None
    assert all(row[3] is not None for row in rows[1:])


def test_a_run_without_checkpoints_and_samples_shows_nothing(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    assert LESSON.run_blocks(RunFolder(tmp_path), None) == []


def test_many_checkpoints_are_thinned_evenly():
    assert select(list(range(100)), 12)[0] == 0
    assert select(list(range(100)), 12)[-1] == 99
    assert len(select(list(range(100)), 12)) == 12


def test_your_own_model(make_translator):
    translator = make_translator(num_layers=1)
    reported, plot = LESSON.own_model_blocks(translator, "ka to mi")
    count = sum(weight.numel() for weight in translator.model.parameters())
    assert f"{2 * count:,}" in reported.words.en
    assert isinstance(plot, ModelPlot)
    assert plot.name == "gradients"
    (note,) = LESSON.own_model_blocks(make_translator("rnn-seq2seq"), "ka to mi")
    assert isinstance(note, Note)
