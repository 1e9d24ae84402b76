"""Lesson 15: what a layer costs, how long it waits and how far it sees."""

from __future__ import annotations

from math import ceil

import pytest

from attendo.inspection import capture
from attendo.inspection.plots.registry import PLOTS
from attendo.lessons.blocks import Chart, Matrix, ModelPlot, Paragraph, Table
from attendo.lessons.chapters.ch15_complexity.layer_costs import (
    NAMES,
    TIMED,
    count_operations,
    crossing_length,
    filters_needed,
    measure_times,
    operations_chart,
    path_lengths,
    sequential_steps,
    visible_words,
)
from attendo.lessons.chapters.ch15_complexity.lesson import LESSON

QUIET = {"measure": False}


def log_of(n, k):
    """The smallest number of layers whose reach k^layers covers n words, without logarithms."""
    layers = 1
    while k**layers < n:
        layers += 1
    return layers


class TestOperations:
    @pytest.mark.parametrize(
        "given", [{}, {"n": 2000, "d": 64}, {"k": 7, "r": 5}, {"n": 20, "r": 32}]
    )
    def test_they_are_those_of_the_papers_table(self, view, given):
        n, d, k, r = ({"n": 70, "d": 512, "k": 3, "r": 32} | given).values()
        rows = view.blocks(Table, given)[0].rows
        expected = [n**2 * d, n * d**2, k * n * d**2, min(r, n) * n * d]
        assert [row[2] for row in rows] == expected
        assert [row[1] for row in rows] == ["n² · d", "n · d²", "k · n · d²", "r · n · d"]

    @pytest.mark.parametrize("d", [8, 100, 512])
    def test_the_crossings_are_where_a_search_finds_them(self, d):
        for kind in ("recurrent", "convolution"):
            found = next(
                n
                for n in range(1, 10_000)
                if count_operations("attention", n, d) >= count_operations(kind, n, d)
            )
            assert crossing_length(kind, d) == found
        assert crossing_length("restricted", d, r=40) == 40
        above, at = (
            count_operations("attention", n, d) / count_operations("restricted", n, d, r=40)
            for n in (41, 40)
        )
        assert above > 1.0 == at

    def test_the_curve_counts_in_millions(self, view):
        chart = operations_chart(64, 5, 7)
        assert chart.series[0].values[0] == pytest.approx(16**2 * 64 / 1e6)
        assert chart.series[1].values[-1] == pytest.approx(4096 * 64**2 / 1e6)
        assert chart.series[2].values[-1] == pytest.approx(5 * 4096 * 64**2 / 1e6)
        assert chart.series[3].values[-1] == pytest.approx(7 * 4096 * 64 / 1e6)
        assert operations_chart() in view.blocks(values=QUIET)

    def test_a_long_text_is_reported_differently(self, view):
        short, long = (
            [block.words.en for block in view.blocks(Paragraph, {"n": n, "d": 64})]
            for n in (63, 64)
        )
        assert any("needs less work" in words for words in short)
        assert not any("needs less work" in words for words in long)


class TestWays:
    @pytest.mark.parametrize(
        ("n", "k", "r"), [(27, 3, 32), (28, 3, 4), (9, 4, 2), (2, 3, 2), (25, 9, 5)]
    )
    def test_paths_are_what_a_pencil_finds(self, n, k, r):
        assert path_lengths(n, k, r) == {
            "attention": 1,
            "recurrent": n,
            "convolution": log_of(n, k),
            "plain": ceil((n - 1) / (k - 1)),
            "restricted": ceil((n - 1) / (r // 2)),
        }

    def test_only_a_recurrent_layer_waits(self):
        assert sequential_steps(12) == {
            "attention": 1,
            "convolution": 1,
            "restricted": 1,
            "recurrent": 12,
        }

    def test_the_table_holds_them_for_a_sentence_and_at_most_27_words(self, view):
        for n, size in ((70, 27), (10, 10)):
            rows = view.blocks(Table, {"n": n})[1].rows
            assert [row[2] for row in rows] == [1, size, 1, 1, 1]
            paths = path_lengths(size, 3, 8)
            kinds = ("attention", "recurrent", "convolution", "plain", "restricted")
            assert [row[4] for row in rows] == [paths[kind] for kind in kinds]
            assert [row[3] for row in rows] == ["1", "n", "log_k n", "n / k", "n / r"]


class TestSight:
    def test_a_filter_of_three_cannot_see_a_word_four_positions_away(self, view):
        (matrix,) = view.blocks(Matrix)
        for row, line in enumerate(matrix.values):
            assert line == [int(abs(row - column) <= 1) for column in range(6)]
        assert matrix.values[5][1] == matrix.values[0][4] == 0
        reported = " ".join(block.words.en for block in view.blocks(Paragraph))
        assert "**not** among them" in reported
        assert [label.en for label in matrix.rows] == [label.en for label in matrix.columns]
        assert "layers needed to see it: 4." in reported

    def test_a_filter_of_nine_can(self, view):
        (matrix,) = view.blocks(Matrix, {"k": 9})
        assert matrix.values[4] == [1] * 6
        reported = " ".join(block.words.en for block in view.blocks(Paragraph, {"k": 9}))
        assert "**not**" not in reported
        assert "layers needed to see it: 1." in reported

    @pytest.mark.parametrize("k", range(3, 10))
    def test_the_number_of_filters_that_are_needed(self, k):
        assert filters_needed(k) == ceil(4 / ((k - 1) // 2))

    def test_attention_sees_all(self):
        assert visible_words().all()


class TestClock:
    def test_what_is_measured_is_shown(self, view):
        times = measure_times()
        assert set(times) == set(NAMES)
        assert all(len(values) == len(TIMED) and min(values) > 0 for values in times.values())
        chart = [block for block in view.blocks() if isinstance(block, Chart)][-1]
        assert [one.values for one in chart.series] == [times[kind] for kind in NAMES]
        table = [block for block in view.blocks() if isinstance(block, Table)][-1]
        assert [row[0] for row in table.rows] == list(TIMED)

    def test_without_the_switch_nothing_is_measured(self):
        measure_times.cache_clear()
        charts = [block for block in LESSON.blocks(QUIET) if isinstance(block, Chart)]
        assert len(charts) == 1
        assert measure_times.cache_info().misses == 0


class TestYourModel:
    def test_it_is_counted_for_its_own_sentence_and_width(self, make_translator):
        translator = make_translator()
        _, table, drawing = LESSON.own_model_blocks(translator, "ka to mi")
        n = len(translator.tokenizer.encode_src(["ka to mi"])[0])
        expected = [n * n * 16, n * 256, 3 * n * 256, n * n * 16]
        assert [row[1] for row in table.rows] == expected
        assert isinstance(drawing, ModelPlot)
        record = capture(translator, "ka to mi", "MI TO")
        assert PLOTS[drawing.name].is_possible(record, translator.model)
        assert drawing.focus == {"kind": "encoder_self"}
