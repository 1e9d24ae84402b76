"""The diagrams of the lessons: nothing is cut off or overlaps, and numbers follow the inputs."""

from __future__ import annotations

import re
from math import prod

import pytest

from attendo.lessons.blocks import LANGUAGES, Note, Paragraph, localize
from attendo.lessons.chapters.ch09_residuals.gradient_paths import run_network
from attendo.lessons.contents import load_lesson
from attendo.lessons.diagrams.by_lesson import DIAGRAMS, PARAGRAPHS_BEFORE
from attendo.lessons.diagrams.machine import Machine
from attendo.lessons.diagrams.shapes import Box, Diagram, Line, Words, text_width
from attendo.lessons.inputs import parse_values
from attendo.lessons.render.svg import render_diagram

NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-\d+)?")
TOLERANCE = 3.0
"""A text may be this much wider than estimated, in pixels."""


def draw(number, **changed):
    return DIAGRAMS[number](parse_values(load_lesson(number).inputs, changed))


def extent(shape, lang):
    """Return the left, top, right and bottom edge of a shape."""
    if isinstance(shape, Box):
        return shape.x, shape.y, shape.x + shape.width, shape.y + shape.height
    if isinstance(shape, Line):
        points = [float(one) for one in re.findall(r"-?[\d.]+", shape.path)]
        return min(points[::2]), min(points[1::2]), max(points[::2]), max(points[1::2])
    width = text_width(localize(shape.text, lang), shape.size)
    left = shape.x - {"start": 0, "middle": width / 2, "end": width}[shape.anchor]
    return left, shape.y - shape.size, left + width, shape.y


@pytest.fixture(params=[number for number in DIAGRAMS if number != 11])
def diagram(request):
    return draw(request.param)


def test_it_fits_a_phone_without_scrolling(diagram):
    """The page shrinks a diagram to 0.72 of its size; a phone leaves 336 pixels."""
    assert diagram.width * 0.72 <= 336


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_is_cut_off(diagram, lang):
    for shape in diagram.shapes:
        left, top, right, bottom = extent(shape, lang)
        assert left >= -TOLERANCE, shape
        assert top >= -TOLERANCE, shape
        assert right <= diagram.width + TOLERANCE, shape
        assert bottom <= diagram.height + TOLERANCE, shape


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_text_fits_its_box_and_overlaps_no_other(diagram, lang):
    texts = [one for one in diagram.shapes if isinstance(one, Words)]
    boxes = [one for one in diagram.shapes if isinstance(one, Box)]
    for box in boxes:
        wanted = text_width(localize(box.text, lang), box.size)
        assert wanted <= box.width + TOLERANCE, localize(box.text, lang)
    solid = [extent(one, lang) for one in [*texts, *boxes]]
    for index, text in enumerate(texts):
        left, top, right, bottom = extent(text, lang)
        for position, (a, b, c, d) in enumerate(solid):
            is_apart = right <= a + TOLERANCE or c <= left + TOLERANCE
            is_apart = is_apart or bottom <= b + TOLERANCE or d <= top + TOLERANCE
            assert position == index or is_apart, localize(text.text, lang)


@pytest.mark.parametrize("number", [4, 8, 14])
def test_a_lesson_shows_its_diagram_after_the_paragraphs_that_explain_it(number):
    blocks = load_lesson(number).blocks()
    (index,) = [index for index, one in enumerate(blocks) if isinstance(one, Diagram)]
    before = [one for one in blocks[:index] if isinstance(one, Paragraph | Note)]
    assert len(before) == PARAGRAPHS_BEFORE.get(number, 1)
    assert isinstance(blocks[index + 1], Paragraph)


def test_every_lesson_has_a_diagram():
    assert set(DIAGRAMS) >= set(range(1, 16))


def test_the_architecture_is_the_map_of_the_lessons():
    drawn = draw(11)
    assert isinstance(drawn, Machine)
    assert drawn.is_map


@pytest.mark.parametrize(
    ("number", "changed"),
    [
        (4, {"x": [[3, 0, 1, 0], [0, 2, 0, 2], [1, 1, 1, 1]]}),
        (6, {"num_heads": "4"}),
        (8, {"residual": False}),
        (9, {"skip": 0.0}),
        (10, {"d_ff": 64}),
        (12, {"temperature": 5}),
        (14, {"beam_size": 3}),
    ],
)
def test_it_follows_the_inputs(number, changed):
    assert draw(number, **changed).shapes != draw(number).shapes


def test_the_factors_on_the_drawing_multiply_to_the_gradient():
    texts = [one.text for one in draw(9).shapes if isinstance(one, Words)]
    products = [one for one in texts if isinstance(one, str) and " · " in one]
    found = run_network()
    for text, expected in zip(products, (found.long_way, found.short_way), strict=True):
        *factors, value = map(float, NUMBER.findall(text))
        assert value == pytest.approx(expected, abs=1e-6)
        assert prod(factors) == pytest.approx(expected, rel=2e-3)


def test_the_file_has_both_texts_and_colors_by_shade():
    image = render_diagram(draw(7), "ko").decode()
    assert "룩어헤드 마스크" in image
    assert "look-ahead" not in image
