"""Every figure of the list: what the lesson computes, and what the terminal shows.

The pages are held against the same list in a browser (`tests/web/test_serve_pages.py`).
"""

from __future__ import annotations

import io
import re
import tomllib
from pathlib import Path

import pytest
from rich.console import Console

from attendo.lessons.blocks import LANGUAGES, Chart, Matrix, Steps, Table, localize
from attendo.lessons.contents import MODULES, load_lesson
from attendo.lessons.render.number_format import format_cell, format_number
from attendo.lessons.render.terminal import render_lesson

FIGURES = tomllib.loads((Path(__file__).parent / "figures.toml").read_text(encoding="utf-8"))[
    "figure"
]
COMPUTED = [figure for figure in FIGURES if "computed" in figure]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?(?![\d.%])")


def say_it(figure, lang):
    shown = figure["shown"]
    return shown if isinstance(shown, str) else shown[lang]


def name(figure):
    return f"{figure['lesson']}-{figure.get('block', '')}-{figure.get('row', '')}"


def walk(blocks):
    for block in blocks:
        yield block
        if isinstance(block, Steps):
            for frame in block.frames:
                yield from walk(frame.blocks)


def rows_of(block):
    """Give every row of a block that holds numbers: its label, and the numbers."""
    if isinstance(block, Matrix):
        yield from zip(block.rows or [None] * len(block.values), block.values, strict=True)
    elif isinstance(block, Table):
        for first, *rest in block.rows:
            is_label = not isinstance(first, float)
            cells = rest if is_label else [first, *rest]
            label = format_cell(first, 0, "en") if is_label else None
            yield label, [cell for cell in cells if isinstance(cell, int | float)]
    elif isinstance(block, Chart):
        for place, x in enumerate(block.x):
            yield str(x), [one.values[place] for one in block.series]


def is_called(block, title):
    """A table without a title goes by one of its headers."""
    names = [getattr(block, "title", ""), *getattr(block, "headers", [])]
    return title in [localize(one, "en") for one in names]


def find_row(figure):
    """Give the block, and the numbers of its row."""
    blocks = load_lesson(figure["lesson"]).blocks()
    block = next(one for one in walk(blocks) if is_called(one, figure["block"]))
    label = figure.get("row")
    return block, next(own for name, own in rows_of(block) if label in (None, name))


def last_place(text):
    """Half a unit of the last digit that is written: 0.005 for 1.25, 0.5e-9 for 1.25e-07."""
    digits, _, power = text.partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.5 * 10.0 ** (int(power or 0) - decimals)


def read(text):
    return float(text.replace(",", ""))


def normalise(text):
    """As the page is read: one kind of minus, one kind of space."""
    return " ".join(text.replace("\N{MINUS SIGN}", "-").split())


@pytest.fixture(scope="module")
def terminal():
    shown = {}
    for number in MODULES:
        lesson = load_lesson(number)
        for lang in LANGUAGES:
            console = Console(width=400, file=io.StringIO(), record=True)
            console.print(render_lesson(lesson, lesson.blocks(), lang))
            shown[number, lang] = normalise(console.export_text())
    return shown


def test_every_lesson_has_figures():
    assert {figure["lesson"] for figure in FIGURES} == set(MODULES)
    assert all(set(figure) <= {"lesson", "shown", "block", "row", "computed"} for figure in FIGURES)


@pytest.mark.parametrize("figure", COMPUTED, ids=name)
def test_the_lesson_computes_it(figure):
    _, numbers = find_row(figure)
    for number, known in zip(numbers, figure["computed"], strict=True):
        assert number == pytest.approx(read(known), abs=1.001 * last_place(known), rel=0)


@pytest.mark.parametrize("figure", COMPUTED, ids=name)
def test_what_is_listed_as_shown_is_what_the_lesson_computes(figure):
    block, numbers = find_row(figure)
    written = {format_number(number, getattr(block, "digits", 4)) for number in numbers}
    shown = say_it(figure, "en").removeprefix(figure.get("row", ""))
    assert set(NUMBER.findall(shown)) <= written


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_terminal_shows_all(lang, terminal):
    missing = []
    for figure in FIGURES:
        shown = say_it(figure, lang)
        if shown not in terminal[figure["lesson"], lang]:
            missing.append((figure["lesson"], shown))
    assert not missing
