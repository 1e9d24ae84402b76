"""The page for teachers: every lesson once, exercises that run, answers that are computed."""

from __future__ import annotations

import pytest

from attendo.lessons.blocks import LANGUAGES
from attendo.lessons.contents import NUMBERS, load_lesson, load_lessons
from attendo.lessons.inputs import parse_values
from attendo.lessons.render.markdown import render_answer
from attendo.lessons.teaching.guide import SCHEDULE, SESSIONS, SETTINGS, write_teaching_page


def test_every_lesson_is_in_one_session_of_ninety_minutes():
    planned = [number for session in SESSIONS for number in session]
    assert planned == sorted(set(planned))
    assert set(planned) >= set(NUMBERS)
    assert sum(SCHEDULE.values()) == 90


@pytest.mark.parametrize("number", SETTINGS)
def test_an_exercise_changes_an_input_of_its_lesson(number):
    name, value = SETTINGS[number].split("=", 1)
    inputs = load_lesson(number).inputs
    assert parse_values(inputs, {name: value})[name] != parse_values(inputs, {})[name]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_page_has_every_question_with_its_computed_answer(lang):
    page = write_teaching_page(lang)
    for lesson in load_lessons():
        assert f"](lesson-{lesson.number:02d}.md)" in page
        for question in lesson.questions:
            answer, why = render_answer(question, lang)
            assert f"<strong>{answer}</strong>. {why}" in page
