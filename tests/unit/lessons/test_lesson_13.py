"""Lesson 13: learning."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Steps, Table
from attendo.lessons.chapters.ch13_training.lesson import LESSON
from attendo.lessons.chapters.ch13_training.teacher_forcing import (
    count_correct,
    first_probabilities,
    forcing_steps,
    learning_rate_chart,
    loss_parts,
    smoothed_target_chart,
    targets_from_loss,
)
from attendo.lessons.render.charts import plot_chart
from attendo.lessons.tiny_model import train_tiny_model

SRC = "어제 카페 갔었어 거기 사람 많더라"
TGT = "I went to the cafe there were many people there"
TRUE = [*TGT.split(), "<eos>"]
WORDS = ("I", "went", "to", "the", "cafe", "there", "were", "many", "people", "<eos>")
SIX = ["a", "am", "i", "thanks", "student", "<eos>"]
STUDENT = ["i", "am", "a", "student", "<eos>"]


def rows_of(frames: Steps) -> list[list[list]]:
    return [frame.blocks[0].rows for frame in frames.frames]


def probs(tiny, read: list[str]) -> torch.Tensor:
    """Tell the next word's distribution after these words, by a pass of its own."""
    fed = torch.tensor([[len(WORDS) - 1, *(WORDS.index(word) for word in read)]])
    with torch.no_grad():
        mask = torch.ones_like(fed, dtype=torch.bool)[:, None]
        return tiny.model(tiny.encode_src(SRC), fed, tgt_mask=mask)[0, -1].softmax(-1)


class TestTeacherForcing:
    def test_the_sentence_has_6_tokens_and_10(self, view):
        shown = view.text("en")
        assert f"“{SRC}” (6 tokens), “{TGT}” (10 tokens)" in shown
        assert f"“{SRC}”(토큰 6개)와 “{TGT}”(토큰 10개)" in view.text("ko")
        (frames,) = view.blocks(Steps)
        assert len(frames.frames) == 11

    @pytest.mark.parametrize("steps", [0, 10, 20, 60])
    def test_while_learning_it_reads_the_true_words(self, steps):
        tiny = train_tiny_model(((SRC, TGT),), WORDS, steps=steps)
        for step, (learning, _) in enumerate(rows_of(forcing_steps(steps=steps))):
            assert learning[1] == " ".join(["<sos>", *TRUE[:step]])
            expected = probs(tiny, TRUE[:step])  # no word sees a later one, so this is the same
            assert learning[2] == WORDS[int(expected.argmax())]
            assert learning[3] == pytest.approx(float(expected[WORDS.index(TRUE[step])]), abs=1e-5)

    @pytest.mark.parametrize("steps", [0, 20, 60])
    def test_while_translating_it_reads_its_own(self, steps):
        tiny = train_tiny_model(((SRC, TGT),), WORDS, steps=steps)
        own: list[str] = []
        for _, translating in rows_of(forcing_steps(steps=steps)):
            assert translating[1] == " ".join(["<sos>", *own])
            if own[-1:] == ["<eos>"]:
                assert translating[2].en == "(ended)"
                continue
            own.append(WORDS[int(probs(tiny, own).argmax())])
            assert translating[2] == own[-1]

    def test_after_an_error_only_the_learner_finds_back(self, view):
        rows = rows_of(forcing_steps())
        wrong = next(step for step, row in enumerate(rows) if row[0][2] != TRUE[step])
        learning, translating = rows[wrong + 1]
        assert learning[1].split()[-1] == TRUE[wrong]
        assert translating[1].split()[-1] != TRUE[wrong]
        forced, free = count_correct(20)
        assert free < forced < 11
        assert f"{forced} of 11 words right, translating {free} of 11" in view.text("en")

    def test_at_the_end_both_output_the_sentence(self):
        assert count_correct(100) == (11, 11)
        assert all(one[2] == two[2] for one, two in rows_of(forcing_steps(steps=100)))


class TestSmoothing:
    @pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
    def test_targets_are_those_of_the_paper(self, smoothing):
        targets = targets_from_loss(torch.tensor([2, 0]), smoothing)
        expected = (1 - smoothing) * np.eye(6)[[2, 0]] + smoothing / 6
        assert targets.numpy() == pytest.approx(expected, abs=1e-9)

    def test_the_chart_draws_both(self):
        chart = smoothed_target_chart("student")
        hard, soft = (one.values for one in chart.series)
        assert chart.x == SIX
        assert hard == [0, 0, 0, 0, 1, 0]
        assert soft == pytest.approx([0.1 / 6] * 4 + [0.9 + 0.1 / 6, 0.1 / 6])
        assert plot_chart(chart, "ko").lstrip().startswith(b"<?xml")


class TestLoss:
    @pytest.mark.parametrize("smoothing", [0.0, 0.1])
    @pytest.mark.parametrize("steps", [0, 150])
    def test_cross_entropy_is_entropy_and_divergence(self, steps, smoothing):
        tiny = train_tiny_model(
            (("je suis étudiant", "i am a student"),), steps=steps, smoothing=smoothing
        )
        q = tiny.teacher_force("je suis étudiant", "i am a student").probabilities.double().numpy()
        p = (1 - smoothing) * np.eye(6)[[SIX.index(word) for word in STUDENT]] + smoothing / 6
        found = loss_parts(steps, smoothing)
        assert found.cross_entropy == pytest.approx(-(p * np.log(q)).sum() / 5, abs=1e-5)
        assert found.cross_entropy == pytest.approx(found.entropy + found.divergence, abs=1e-9)
        assert found.divergence > 0

    def test_the_table_holds_them(self, view):
        table = next(one for one in view.blocks(Table, smoothing=0.2) if one.headers[1] == "H(p)")
        assert [row[1:] for row in table.rows] == [list(loss_parts(n, 0.2)) for n in (0, 150)]
        assert loss_parts(150, 0.2).divergence < 0.01 < loss_parts(0, 0.2).divergence

    def test_entropy_by_hand(self, view):
        true, other = 0.9 + 0.1 / 6, 0.1 / 6
        expected = -(true * math.log(true) + 5 * other * math.log(other))
        assert loss_parts(0, 0.1).entropy == pytest.approx(expected)
        assert f"{expected:.4f}" in view.text("ko")
        assert loss_parts(0, 0.0).entropy == 0

    def test_learned_distributions_next_to_their_targets(self, view):
        for smoothing in (0.0, 0.1, 0.3):
            targets, learned = (
                np.array(one.values) for one in view.blocks(Matrix, smoothing=smoothing)
            )
            positions = [SIX.index(word) for word in STUDENT]
            expected = (1 - smoothing) * np.eye(6)[positions] + smoothing / 6
            assert targets == pytest.approx(expected, abs=1e-9)
            assert learned == pytest.approx(expected, abs=0.02)
            assert learned.sum(1) == pytest.approx(np.ones(5), abs=1e-5)
            assert (learned.argmax(1) == positions).all()

    def test_the_labels_of_the_matrices(self, view):
        for matrix in view.blocks(Matrix):
            assert matrix.rows == STUDENT
            assert matrix.columns == SIX

    def test_reading_targets_off_the_loss_agrees_with_soft_targets(self):
        labels = torch.tensor([1, 4, 5])
        logits = torch.randn(3, 6, dtype=torch.float64)
        soft = F.cross_entropy(logits, targets_from_loss(labels, 0.1), reduction="sum")
        hard = F.cross_entropy(logits, labels, label_smoothing=0.1, reduction="sum")
        assert float(soft) == pytest.approx(float(hard))


class TestWarmup:
    def test_the_curve_is_equation_3(self, view):
        (chart,) = (
            one for one in view.blocks(Chart, d_model=256, warmup=1000) if one.form == "lines"
        )
        assert chart == learning_rate_chart(d_model=256, warmup_steps=1000)
        for series, d_model, warmup in zip(chart.series, (256, 512), (1000, 4000), strict=True):
            expected = [d_model**-0.5 * min(s**-0.5, s * warmup**-1.5) for s in chart.x]
            assert series.values == pytest.approx(expected)
            assert chart.x[int(np.argmax(series.values))] == warmup

    def test_the_curve_of_the_paper_is_shown_alone(self):
        chart = learning_rate_chart()
        assert len(chart.series) == 1
        assert max(chart.series[0].values) == pytest.approx(6.987712e-4)
        assert plot_chart(chart, "en")


@pytest.mark.parametrize("kind", ["transformer", "rnn-seq2seq"])
def test_your_own_model(make_translator, kind):
    translator = make_translator(kind, num_layers=1)
    reported, table, drawing = LESSON.own_model_blocks(translator, "ka to mi")
    goal = 0.9 + 0.1 / translator.tokenizer.tgt_vocab_size
    found = translator.translate(["ka to mi"], beam_size=4)[0]
    assert [row[0] for row in table.rows][: len(found.tokens)] == found.tokens
    for _, target, answer, loss in table.rows:
        assert target == pytest.approx(goal)
        assert loss == pytest.approx(-math.log(answer), rel=1e-2)
    mean = sum(row[3] for row in table.rows) / len(table.rows)
    assert f"{mean:.3f}" in reported.words.en
    assert isinstance(drawing, ModelPlot)
    assert drawing.name == "decoder_steps"


def test_one_update_raises_the_true_word_and_lowers_the_others(view):
    before, after = (first_probabilities(steps) for steps in (20, 21))
    assert sum(before) == pytest.approx(1.0, abs=1e-5)
    assert after[0] > before[0]
    (table,) = (one for one in view.blocks(Table) if one.rows[0][1:] == [before[0], after[0]])
    assert table.rows[1][1:] == pytest.approx([1 - before[0], 1 - after[0]], abs=1e-5)
