"""What every lesson keeps, whatever it is about."""

from __future__ import annotations

import io
import json
import math
import re

import pytest
from rich.console import Console

from attendo.core.errors import AttendoError, ConfigError
from attendo.inspection.plots.registry import PLOTS
from attendo.lessons.blocks import LANGUAGES, Block, Chart, LocalizedText, Matrix, ModelPlot, Steps
from attendo.lessons.contents import MODULES, load_lesson, load_lessons
from attendo.lessons.inputs import Choice, Grid, Number, Switch, Text
from attendo.lessons.render.markdown import write_lesson
from attendo.lessons.render.site import write_site
from attendo.lessons.render.terminal import render_lesson, render_questions

HANGUL = re.compile("[가-힣]")
LATIN = re.compile("[A-Za-z]")


@pytest.fixture(params=sorted(MODULES))
def lesson(request):
    return load_lesson(request.param)


def all_words(lesson):
    """Give every bilingual text of a lesson, wherever it stands."""

    def walk(value):
        if isinstance(value, LocalizedText):
            yield value
        elif isinstance(value, list | tuple):
            for one in value:
                yield from walk(one)
        elif isinstance(value, dict):
            yield from walk(list(value.values()))
        elif hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                yield from walk(getattr(value, name))

    yield from walk([lesson.title, lesson.summary, list(lesson.inputs), list(lesson.questions)])
    yield from walk(lesson.blocks())


def render(lesson, lang):
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(render_lesson(lesson, lesson.blocks(), lang))
    console.print(render_questions(lesson, lang, with_answers=True))
    return console.export_text()


def other_value(one):
    """Give an allowed value that is not the default."""
    match one:
        case Number():
            return one.low if one.default != one.low else one.high
        case Grid():
            changed = [list(row) for row in one.default]
            changed[0][0] = changed[0][0] + 1
            return changed
        case Switch():
            return not one.default
        case Choice():
            return next(key for key, _ in one.choices if key != one.default)
        case Text():
            return f"{one.default} 또"[: one.most]
    raise AssertionError(one)


def test_it_is_whole(lesson):
    assert load_lesson(lesson.number) is lesson
    assert re.fullmatch(r"\d(\.\d)*(, \d(\.\d)*)?", lesson.paper)
    assert len(lesson.questions) == 3
    assert lesson.code
    for place in lesson.code:
        file, line = place.find()
        assert file.startswith("src/attendo/")
        assert line > 0


def test_nothing_is_left_untranslated(lesson):
    for words in all_words(lesson):
        assert words.en.strip()
        assert words.ko.strip()
        assert not HANGUL.search(
            re.sub(r"“[^”]*”|\"[^\"]*\"|`[^`]*`", "", words.en)
        ) or lesson.number in (3, 13), words.en
        if len(words.en.split()) > 3:
            assert HANGUL.search(words.ko), words.ko
            assert words.ko != words.en


def test_terminal_and_documentation_show_it_in_both_languages(lesson):
    for lang in LANGUAGES:
        shown = render(lesson, lang)
        assert lesson.title.say(lang) in shown
        assert "nan" not in shown.lower().split()
        page = write_lesson(lesson, lesson.blocks(), lang)
        assert page.text.startswith(f"# {lesson.number}. ")
        assert len(re.findall(r"!\[", page.text)) == len(page.images)


def test_it_goes_as_json_and_every_number_is_finite(lesson):
    for lang in LANGUAGES:
        told = json.loads(json.dumps(lesson.to_dict(lang), allow_nan=False))
        assert told["number"] == lesson.number
        assert told["blocks"]


def test_every_input_changes_something_and_bad_values_are_refused(lesson):
    before = json.dumps(lesson.to_dict("en")["blocks"])
    for one in lesson.inputs:
        after = json.dumps(lesson.to_dict("en", {one.name: other_value(one)})["blocks"])
        assert after != before, one.name
        for wrong in (math.nan, math.inf, "x" * 10_000, None, [[[]]], {"a": 1}):
            with pytest.raises(ConfigError):
                lesson.blocks({one.name: wrong})
    with pytest.raises(ConfigError, match="unknown input"):
        lesson.blocks({"no_such_input": 1})


def test_the_extremes_of_every_number_work(lesson):
    for one in lesson.inputs:
        if isinstance(one, Number):
            for value in (one.low, one.high):
                json.dumps(lesson.to_dict("ko", {one.name: value}), allow_nan=False)


def test_questions_know_their_answers(lesson):
    for question in lesson.questions:
        right = question.answer()
        if isinstance(right, str):
            assert right in dict(question.choices)
            assert question.check(right)
            wrong = next(key for key, _ in question.choices if key != right)
        else:
            assert question.check(repr(float(right)))
            wrong = repr(float(right) + max(1.0, 10 * question.tolerance))
        assert not question.check(wrong)
        assert not question.check("")
        assert not question.check("그건 모르겠어요")
    with pytest.raises(AttendoError, match="no question 4"):
        lesson.question(4)


def test_drawings_name_pictures_that_exist(lesson, request):
    def walk(blocks):
        for block in blocks:
            assert isinstance(block, Block)
            if isinstance(block, ModelPlot):
                assert block.name in PLOTS
            if isinstance(block, Steps):
                for frame in block.frames:
                    walk(frame.blocks)

    walk(lesson.blocks())


def test_it_is_quick(lesson):
    """The page computes a lesson again at every change."""
    import time

    lesson.blocks()  # what is cached is made once
    best = min(_seconds(time.process_time, lesson) for _ in range(3))
    assert best < 2.0


def _seconds(clock, lesson):
    begin = clock()
    lesson.blocks()
    return clock() - begin


def test_the_site_has_a_page_a_lesson_and_language(tmp_path):
    written = write_site(tmp_path / "lessons")
    assert len(written) == 2 * (len(load_lessons()) + 1)
    index = (tmp_path / "lessons" / "index.ko.md").read_text(encoding="utf-8")
    assert index.startswith("# 강의")
    for path in written:
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / picture).stat().st_size > 1000


def test_a_matrix_whose_labels_do_not_fit_is_refused():
    with pytest.raises(ValueError, match="do not fit"):
        Matrix("A", [[1.0, 2.0]], columns=["a"])
    assert Chart.kind == "chart"


def test_an_unknown_lesson_is_told():
    with pytest.raises(AttendoError, match="no lesson 99"):
        load_lesson(99)


def test_choices_are_named_by_key_label_or_number(lesson):
    for question in lesson.questions:
        right = question.answer()
        for place, (key, label) in enumerate(question.choices, 1):
            names = [label] if isinstance(label, str) else [label.en, label.ko]
            for given in (key, *names, str(place)):
                assert question.check(given) is (key == right), given
