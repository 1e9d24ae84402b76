"""Lesson 0: the drawing of the whole machine, in both shapes and as text."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from attendo.lessons.blocks import LANGUAGES, Table, localize
from attendo.lessons.chapters.ch00_overview.lesson import LESSON as LESSON
from attendo.lessons.contents import NUMBERS
from attendo.lessons.diagrams.machine import DECODER, ENCODER, STAGES, draw_machine, machine_text
from attendo.lessons.diagrams.shapes import Box, Line, text_width
from attendo.lessons.machine_values import page_drawing
from attendo.lessons.render.svg import render_diagram
from attendo.translator import Translator

BADGE = 21
"""The width of the number of a lesson on the page."""


@pytest.fixture(params=["wide", "narrow"])
def drawing(request):
    return getattr(draw_machine(), request.param)


def boxes_of(drawing):
    return {one.stage: one for one in drawing.shapes if isinstance(one, Box) and one.stage}


def test_every_part_has_a_box_and_an_arrow_that_leads_to_it(drawing):
    boxes = boxes_of(drawing)
    assert list(boxes) == [stage.name for stage in STAGES]
    reached = {one.stage for one in drawing.shapes if isinstance(one, Line)}
    assert set(boxes) <= reached


def test_nothing_overlaps_and_every_label_fits(drawing):
    boxes = list(boxes_of(drawing).values())
    for index, one in enumerate(boxes):
        assert one.x >= 0
        assert one.x + one.width <= drawing.width
        assert one.y >= 0
        assert one.y + one.height <= drawing.height
        for lang in LANGUAGES:
            wanted = text_width(localize(one.text, lang)) + BADGE * len(one.lessons) + 12
            assert wanted <= one.width, localize(one.text, lang)
        for other in boxes[index + 1 :]:
            is_apart = one.y + one.height < other.y or other.y + other.height < one.y
            assert is_apart or one.x + one.width < other.x or other.x + other.width < one.x


def test_data_flows_upwards_in_the_wide_drawing_and_downwards_in_the_narrow_one():
    machine = draw_machine()
    for column in (ENCODER, DECODER):
        wide, narrow = (
            [boxes_of(drawing)[stage.name].y for stage in column]
            for drawing in (machine.wide, machine.narrow)
        )
        assert wide == sorted(wide, reverse=True)
        assert narrow == sorted(narrow)


def test_every_sub_layer_has_a_residual_connection(drawing):
    residuals = {
        one.stage for one in drawing.shapes if isinstance(one, Line) and one.style == "residual"
    }
    assert residuals == {stage.name for stage in STAGES if stage.name.endswith("_add")}


def test_the_lessons_of_the_drawing_exist():
    assert {number for stage in STAGES for number in stage.lessons} <= set(NUMBERS)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_text_fits_a_terminal_and_its_arrow_meets_cross_attention(lang):
    lines = machine_text().localize(lang).splitlines()
    assert max(map(cell_len, lines)) <= 76
    (cross,) = (stage.label.localize(lang) for stage in STAGES if stage.name == "cross")
    (met,) = (line for line in lines if "└──→" in line)
    assert cross in met
    borders = [index for index, letter in enumerate(met) if letter == "│"]
    assert len(borders) == 4


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_file_of_the_documentation_is_valid_xml(lang, drawing):
    from xml.etree import ElementTree

    root = ElementTree.fromstring(render_diagram(drawing, lang))  # noqa: S314 - made by us
    assert root.tag.endswith("svg")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}rect"))) > len(STAGES)


def test_the_table_has_one_row_per_run_of_the_decoder(view):
    (table,) = view.blocks(Table)
    assert [row[0] for row in table.rows] == [1, 2, 3, 4, 5]
    assert [row[2] for row in table.rows] == ["i", "am", "a", "student", "<eos>"]


def test_a_page_without_a_server_gets_the_drawing_and_the_numbers(make_translator):
    translator = make_translator("transformer")
    drawing = page_drawing(translator, "ka to mi")
    assert drawing is not None
    assert drawing["values"]["text"] == "ka to mi"
    assert set(drawing["values"]["attention"]) == {"encoder_self", "decoder_self", "cross"}
    names = [stage.name for stage in STAGES]
    for lang in LANGUAGES:
        machine = drawing["drawings"][lang]
        assert [stage["name"] for stage in machine["stages"]] == names
        assert not any(stage["lessons"] for stage in machine["stages"])
        for shape in ("wide", "narrow"):
            assert not any(one.get("lessons") for one in machine[shape]["shapes"])
    unknown = Translator(translator.model, translator.tokenizer, about={"src_lang": "fi"})
    assert page_drawing(unknown, None) is None
