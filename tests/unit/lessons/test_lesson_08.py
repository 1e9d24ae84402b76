"""Lesson 8: add and norm."""

from __future__ import annotations

import io
import statistics

import pytest
import torch
from rich.console import Console

from attendo.bundle import build_model
from attendo.core.errors import ConfigError
from attendo.lessons.chapters.ch08_add_and_norm.lesson import LESSON, OTHERS, count_add_and_norm, normalize_both
from attendo.lessons.blocks import Matrix, ModelPlot, Note, Table
from attendo.lessons.render.terminal import render_lesson
from attendo.translator import Translator

SUM = [1, 3, 4, 5, 7]

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}


def render(lang, **given):
    console = Console(file=io.StringIO(), record=True, width=120)
    console.print(render_lesson(LESSON, LESSON.blocks(given), lang))
    return " ".join(console.export_text().split())


def find(kind, blocks):
    return [block for block in blocks if isinstance(block, kind)]


def by_hand(numbers, *, gamma=1.0, beta=0.0, eps=1e-5) -> list[float]:
    mean, variance = statistics.fmean(numbers), statistics.pvariance(map(float, numbers))
    return [(number - mean) / (variance + eps) ** 0.5 * gamma + beta for number in numbers]


def output(**given) -> list[float]:
    return find(Matrix, LESSON.blocks(given))[-1].values[0]


class TestOneVector:
    def test_residual_and_sublayer_are_added(self):
        x, sublayer, total, *_ = find(Matrix, LESSON.blocks())
        assert total.values == [SUM]
        assert [a + b for a, b in zip(x.values[0], sublayer.values[0], strict=True)] == SUM

    def test_mean_variance_and_root(self):
        table = find(Table, LESSON.blocks())[0]
        assert [row[1] for row in table.rows] == pytest.approx([4.0, 4.0, (4 + 1e-5) ** 0.5])

    def test_is_the_formula(self):
        assert output() == pytest.approx([-1.5, -0.5, 0.0, 0.5, 1.5], abs=1e-5)
        assert output() == pytest.approx(by_hand(SUM))

    @pytest.mark.parametrize(
        "changed", [{"gamma": 2.5}, {"beta": -1.0}, {"eps": 5.0}, {"gamma": 3, "beta": 2}]
    )
    def test_gamma_beta_and_eps(self, changed):
        assert output(**changed) == pytest.approx(by_hand(SUM, **changed))

    def test_other_numbers(self):
        x, sublayer = [[0, 0, 2, 9, -4]], [[1, 5, 0, 0, 1]]
        assert output(x=x, sublayer=sublayer) == pytest.approx(by_hand([1, 5, 2, 9, -3]))

    def test_equal_numbers_are_kept_from_a_division_by_zero(self):
        assert output(x=[[0] * 5], sublayer=[[3] * 5]) == [0.0] * 5

    def test_without_the_residual_x_is_lost(self):
        sublayer = [-1, 2, 0, 2, 2]
        assert output(residual=False) == pytest.approx(by_hand(sublayer))
        assert output(residual=False, x=[[9, 9, 0, 0, 0]]) == output(residual=False)

    @pytest.mark.parametrize("lang", ["en", "ko"])
    def test_starts_with_gamma_one_and_beta_zero(self, lang):
        assert "γ = 1" in render(lang, gamma=2, beta=3)
        assert "β = 0" in render(lang, gamma=2, beta=3)


class TestBatchNorm:
    def rows(self, **given):
        table = find(Table, LESSON.blocks(given))[1]
        return [row[2:] for row in table.rows]

    def test_layer_norm_does_not_depend_on_the_others(self):
        layer = self.rows()[:3]
        for row in layer:
            assert row == pytest.approx(by_hand(SUM))

    def test_batch_norm_does(self):
        first, second, third = self.rows()[3:]
        batches = ([SUM, *OTHERS], [SUM, *OTHERS, [0] * 5], [SUM, OTHERS[0]])
        for row, batch in zip((first, second, third), batches, strict=True):
            expected = [by_hand(column)[0] for column in zip(*batch, strict=True)]
            assert row == pytest.approx(expected)
        assert max(abs(a - b) for a, b in zip(first, second, strict=True)) > 0.1

    def test_other_words_change_batch_norm_only(self):
        before, after = self.rows(), self.rows(others=[[0, 0, 0, 0, 1], [9, 9, 9, 9, 9]])
        assert after[:3] == before[:3]
        assert after[3:] != before[3:]

    def test_it_cannot_norm_a_single_word_while_learning(self):
        with pytest.raises(ValueError, match="more than 1 value"):
            normalize_both(torch.ones(1, 5, dtype=torch.float64), 1e-5)


def test_stands_twice_in_an_encoder_layer_and_three_times_in_a_decoder_layer():
    assert count_add_and_norm() == (2, 3)


@pytest.mark.parametrize("lang", ["en", "ko"])
def test_shown_in_both_languages(lang):
    shown = render(lang)
    assert "1 3 4 5 7" in shown
    assert "-1.5000 -0.5000 0 0.5000 1.5000" in shown
    for number in (by_hand(column)[0] for column in zip(SUM, *OTHERS, strict=True)):
        assert f"{number:.3f}" in shown


def test_bad_inputs_are_refused():
    with pytest.raises(ConfigError, match=r"(?s)1 rows of 5.*eps.*outside"):
        LESSON.blocks({"x": [[1, 2]], "eps": 0})


@pytest.mark.parametrize(
    ("number", "right", "wrong"), [(1, "-1.5", "98.5"), (2, "batch", "layer"), (3, "-2", "-1.5")]
)
def test_questions(number, right, wrong):
    question = LESSON.question(number)
    assert question.check(right)
    assert not question.check(wrong)


class TestOwnModel:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_lists_what_gamma_and_beta_became(self, toy, norm):
        tokenizer = toy.prepared.tokenizer
        model = build_model("transformer", {**SIZES, "norm": norm}, tokenizer).eval()
        with torch.no_grad():
            model.encoder.layers[1].self_add.norm.weight[3] = 0.25
            model.decoder.layers[0].cross_add.norm.bias[5] = 2.0
        blocks = LESSON.own_model_blocks(Translator(model, tokenizer), "ka to mi")
        (table,) = find(Table, blocks)
        assert [row[1:] for row in table.rows] == [
            [1, 1, 0, 0],
            [0.25, 1, 0, 0],
            [1, 1, 0, 2],
            [1, 1, 0, 0],
        ]
        assert [drawing.name for drawing in find(ModelPlot, blocks)] == ["add_and_norm"]

    def test_another_model_is_told(self, toy):
        model = build_model("rnn-seq2seq", {"d_model": 16}, toy.prepared.tokenizer).eval()
        blocks = LESSON.own_model_blocks(Translator(model, toy.prepared.tokenizer), "ka to mi")
        assert [type(block) for block in blocks] == [Note]
