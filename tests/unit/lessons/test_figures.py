"""Every figure of the list: what the lesson computes, and what the terminal shows.

The pages are held against the same list in a browser (`tests/web/lesson_plan.py`).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from attendo.lessons.blocks import LANGUAGES, Chart, Matrix, Table, localize
from attendo.lessons.contents import NUMBERS
from attendo.lessons.render.number_format import format_cell, format_number

FIGURES = tomllib.loads((Path(__file__).parent / "figures.toml").read_text(encoding="utf-8"))[
    "figure"
]
COMPUTED = [figure for figure in FIGURES if "computed" in figure]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?(?![\d.%])")


def expected_text(figure, lang):
    shown = figure["shown"]
    return shown if isinstance(shown, str) else shown[lang]


def name(figure):
    return f"{figure['lesson']}-{figure.get('block', '')}-{figure.get('row', '')}"


def rows_of(block):
    """Yield every row of a block that holds numbers: its label, and the numbers."""
    if isinstance(block, Matrix):
        labels = block.localize("en").rows or [None] * len(block.values)
        yield from zip(labels, block.values, strict=True)
    elif isinstance(block, Table):
        for first, *rest in block.rows:
            is_label = not isinstance(first, float)
            cells = rest if is_label else [first, *rest]
            label = format_cell(first, 0, "en") if is_label else None
            yield label, [cell for cell in cells if isinstance(cell, int | float)]
    elif isinstance(block, Chart):
        for index, x in enumerate(block.x):
            yield str(x), [one.values[index] for one in block.series]


def is_called(block, title):
    """A table without a title goes by one of its headers."""
    names = [getattr(block, "title", ""), *getattr(block, "headers", [])]
    return title in [localize(one, "en") for one in names]


def find_row(view, figure):
    """Return the block, and the numbers of its row."""
    block = next(one for one in view.all_blocks() if is_called(one, figure["block"]))
    label = figure.get("row")
    return block, next(own for name, own in rows_of(block) if label in (None, name))


def half_unit(text):
    """Half a unit of the last digit that is written: 0.005 for 1.25, 0.5e-9 for 1.25e-07."""
    digits, _, power = text.partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.5 * 10.0 ** (int(power or 0) - decimals)


def read(text):
    return float(text.replace(",", ""))


def test_every_lesson_has_figures():
    assert {figure["lesson"] for figure in FIGURES} == set(NUMBERS)
    assert all(set(figure) <= {"lesson", "shown", "block", "row", "computed"} for figure in FIGURES)


@pytest.mark.parametrize("figure", COMPUTED, ids=name)
def test_the_lesson_computes_it(figure, view_of):
    _, numbers = find_row(view_of(figure["lesson"]), figure)
    for number, known in zip(numbers, figure["computed"], strict=True):
        assert number == pytest.approx(read(known), abs=1.001 * half_unit(known), rel=0)


@pytest.mark.parametrize("figure", COMPUTED, ids=name)
def test_the_listed_text_holds_the_computed_numbers(figure, view_of):
    block, numbers = find_row(view_of(figure["lesson"]), figure)
    written = {format_number(number, getattr(block, "digits", 4)) for number in numbers}
    shown = expected_text(figure, "en").removeprefix(figure.get("row", ""))
    assert set(NUMBER.findall(shown)) <= written


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_terminal_shows_all(lang, view_of):
    missing = []
    for figure in FIGURES:
        shown = expected_text(figure, lang)
        text = view_of(figure["lesson"]).text(lang, width=400)
        if shown not in text.replace("\N{MINUS SIGN}", "-"):
            missing.append((figure["lesson"], shown))
    assert not missing
