"""Lessons in a terminal of 80 columns: nothing is cut off, no row of a matrix is broken."""

from __future__ import annotations

import io

from rich.console import Console

from attendo.lessons.blocks import Formula, Matrix, Table
from attendo.lessons.render.terminal import render_block

WIDE = Matrix("W", [[-0.25, 1.5e-5, 3.0] * 5, [1.0, 2.0, 3.0] * 5], rows=["a", "b"])


def render(shown, width):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(shown)
    return [" ".join(line.split()) for line in console.export_text().splitlines()]


class TestTooWide:
    def test_a_matrix_is_shown_in_parts_with_numbered_columns(self):
        title, *lines = render(render_block(WIDE, "en"), 40)
        assert title == "W ="
        heads, first, second = lines[::3], lines[1::3], lines[2::3]
        assert " ".join(heads).split() == [str(position) for position in range(1, 16)]
        assert all(line.startswith("a ") for line in first)
        assert " ".join(line[2:] for line in first).split() == ["-0.250", "1.50e-05", "3"] * 5
        assert " ".join(line[2:] for line in second).split() == ["1", "2", "3"] * 5

    def test_one_that_fits_has_no_numbers_above_it(self):
        assert render(render_block(WIDE, "en"), 200)[1] == "a " + " ".join(
            ["-0.250 1.50e-05 3"] * 5
        )

    def test_a_column_wider_than_the_terminal_ends(self):
        text = " ".join(render(render_block(Matrix("M", [[1.25e-30, 2.0]]), "ko"), 5))
        assert "2" in text

    def test_formulas_are_below_each_other(self):
        formula = Formula("a = b + c     d = e · f")
        assert render(render_block(formula, "en"), 80) == ["a = b + c d = e · f"]
        assert render(render_block(formula, "en"), 20) == ["a = b + c", "d = e · f"]

    def test_columns_of_a_table_narrow_before_words_break(self):
        table = Table(["attention", "where"], [["encoder-decoder", "a long way from here"]])
        text = " ".join(render(render_block(table, "en"), 36))
        assert "encoder-decoder" in text
        assert "…" not in text
