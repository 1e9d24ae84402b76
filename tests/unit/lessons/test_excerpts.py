"""The lines of the model that lessons show: they exist, are few, and come from the source."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import attendo
from attendo.lessons.blocks import LANGUAGES, Code
from attendo.lessons.contents import load_lesson
from attendo.lessons.excerpts.by_lesson import EXCERPTS, build_code
from attendo.lessons.excerpts.source import Excerpt, highlight, read_excerpt
from attendo.lessons.render.markdown import write_code_page

ROOT = Path(attendo.__file__).parents[2]
MAX_LINES = 25
ALL = [one for excerpts in EXCERPTS.values() for one in excerpts]


def sample(first, second=2):
    """Return a sum."""
    total = first + second
    # The comment stays.
    return 2 * total


@pytest.mark.parametrize("number", EXCERPTS)
def test_the_lines_of_a_lesson_are_in_the_source_and_few(number):
    (block,) = build_code(number)
    assert sum(len(one.text.splitlines()) for one in block.listings) <= MAX_LINES
    for one in block.listings:
        ast.parse(one.text)
        assert '"""' not in one.text
        source = (ROOT / one.file).read_text(encoding="utf-8").splitlines()
        first, *_ = one.text.splitlines()
        assert source[one.line - 1].strip() == first
        assert {line.strip() for line in one.text.splitlines()} <= {line.strip() for line in source}


def test_a_lesson_ends_with_its_code():
    assert isinstance(load_lesson(4).blocks()[-1], Code)
    assert set(EXCERPTS) >= set(range(16))


@pytest.mark.parametrize("excerpt", ALL, ids=lambda one: one.name)
def test_highlighting_keeps_every_character(excerpt):
    text = read_excerpt(excerpt).text
    lines = highlight(text)
    assert ["".join(part for _, part in line) for line in lines] == text.splitlines()
    assert any(style for line in lines for style, _ in line)


def test_a_region_begins_at_the_assignment():
    found = read_excerpt(Excerpt(__name__, "sample", since="total"))
    assert found.text.splitlines()[0] == "total = first + second"
    assert found.text.splitlines()[-1] == "return 2 * total"
    assert "Return a sum" not in read_excerpt(Excerpt(__name__, "sample")).text
    with pytest.raises(ValueError, match="assigns no 'missing'"):
        read_excerpt(Excerpt(__name__, "sample", since="missing"))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_of_the_code_documents_every_object_once(lang):
    page = write_code_page(lang)
    names = [line for line in page.splitlines() if line.startswith("::: ")]
    assert len(names) == len(set(names))
    assert "::: attendo.model.attention.MultiHeadAttention" in names
