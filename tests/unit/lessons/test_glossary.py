"""The glossary: its terms are those of the lessons, and its pages are up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from attendo.lessons.blocks import LANGUAGES
from attendo.lessons.contents import CHAPTERS
from attendo.lessons.glossary import load_terms, rows, to_markdown
from attendo.lessons.prose import load_fragments

DOCS = Path(__file__).parents[3] / "docs"


def text_of(number, lang):
    fragments = load_fragments(f"attendo.lessons.chapters.{CHAPTERS[number]}", lang)
    return " ".join(fragments.values()).casefold()


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("term", load_terms(), ids=lambda term: term.name.en)
def test_the_lesson_of_a_term_uses_it(term, lang):
    name = re.sub(r"\(.*\)", "", term.name.localize(lang)).casefold()
    text = text_of(term.lesson, lang)
    assert any(one.strip() in text for one in name.split(","))


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_of_the_documentation_is_the_glossary(lang):
    """If it is not: python -m attendo.lessons.glossary docs."""
    page = DOCS / f"glossary{'' if lang == 'en' else '.ko'}.md"
    assert page.read_text(encoding="utf-8") == to_markdown(lang)


def test_terms_are_unique_and_sorted():
    for lang in LANGUAGES:
        names = [row[0] for row in rows(lang)]
        assert len(names) == len(set(names))
        assert names == sorted(names, key=str.casefold)
