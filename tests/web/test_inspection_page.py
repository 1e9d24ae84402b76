"""What the browser tests start from: the page of `attendo look`, and the plan of the lessons."""

from __future__ import annotations

import os

import pytest

from attendo.lessons.contents import NUMBERS
from web.lesson_plan import CHANGES
from web.live import STATIC_PAGE, write_real_page


def test_every_lesson_is_changed():
    assert tuple(CHANGES) == NUMBERS


def test_the_page_is_small_and_fetches_nothing(repository, tmp_path):
    if os.environ.get("CI") != "true" and not (repository / STATIC_PAGE).exists():
        pytest.skip("the page is not built: make web")
    text = write_real_page(tmp_path).read_text(encoding="utf-8")
    assert len(text.encode()) < 5_000_000
    assert "<noscript" in text
    for outside in ('src="http', 'href="http', "@import", "//cdn"):
        assert outside not in text
