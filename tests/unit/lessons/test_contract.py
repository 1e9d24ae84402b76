"""The contract of every lesson: texts, inputs, answers, renderers, and the learner's own model."""

from __future__ import annotations

import json
import math
import re
import time

import pytest
import torch

from attendo.core.errors import AttendoError, ConfigError
from attendo.decoding.ensemble import Ensemble
from attendo.inspection.plots.registry import PLOTS, available_plots
from attendo.lessons.blocks import (
    LANGUAGES,
    Chart,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Steps,
    Table,
    localize,
)
from attendo.lessons.contents import NUMBERS, PREREQUISITES, load_lesson, load_lessons
from attendo.lessons.inputs import Choice, Grid, Number, Switch, Text
from attendo.lessons.own_model import build_section
from attendo.lessons.render.markdown import write_lesson
from attendo.lessons.render.number_format import format_cell, format_number
from attendo.lessons.render.site import write_site
from attendo.lessons.render.terminal import render_block
from attendo.translator import Translator

HANGUL = re.compile("[가-힣]")
QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|`[^`]*`|\(.*?\)")
KOREAN_EXAMPLES = {2, 3, 13, 16, 18}  # lessons whose English text quotes Korean words
ANSWERS = {
    0: (("5", "4"), ("encoder", "decoder"), ("encoder-output", "vocabulary")),
    1: (("first", "last"), ("0.333", "0.5"), ("19.1", "13.6")),
    2: (("0", "1"), ("row", "column"), ("16", "256")),
    3: (("-0.544", "0.544"), ("5", "2"), ("10,12", "3,8")),
    4: (("4", "2"), ("x₂", "x₁"), ("1", "3")),
    5: (("16", "256"), ("0.0099", "0.25"), ("double", "fourfold")),
    6: (("64", "768"), ("same", "more"), ("0.5", "1")),
    7: (("10", "15"), ("encoder_self", "decoder_self"), ("1", "0.665")),
    8: (("-1.5", "98.5"), ("batch", "layer"), ("-2", "-1.5")),
    9: (("16", "8"), ("double", "same"), ("-0.166", "-0.000125")),
    10: (("525,568", "524288"), ("exchanged", "all"), ("12", "45")),
    11: (("5x7", "7x5"), ("1,051,648", "1050624"), ("encoder-6", "encoder-4")),
    12: (("0.167", "0.2"), ("thanks", "a"), ("stays", "rises")),
    13: (("0.9167", "0.9"), ("true", "predicted"), ("2", "4")),
    14: (("i am a student", "student i am"), ("20", "400"), ("23", "20")),
    15: (("attention", "recurrent"), ("4", "2"), ("1,024", "512")),
    18: (("2/7", "1"), ("0.7788", "0.8"), ("unclear", "clear")),
    21: (("same", "different"), ("21", "28"), ("exact", "accuracy")),
    22: (("107,104", "7,5"), ("0.8485", "0.6"), ("8", "64")),
    19: (("21", "36"), ("120", "150"), ("encoder", "decoder")),
    20: (("-2", "2"), ("0.04", "0.2"), ("climatology", "persistence")),
    16: (("9", "6"), ("shorter", "longer"), ("4", "1")),
    17: (("0.001", "0.25"), ("5", "4"), ("held-out", "training")),
}
"""A right and a wrong answer to each question."""
PRODUCTS = {
    1: ["W · s₀", "U · h", "c₁"],
    2: ["one-hot · E"],
    4: ["Q", "K", "V", "Q · Kᵀ", "output"],
    10: ["x · W₁ + b₁", "FFN(x)"],
    12: ["z"],
}
"""The matrices whose cells the page explains, by lesson."""
KINDS = ("transformer", "rnn-attention", "rnn-seq2seq", "conv-s2s")
TEXT = "ka to mi re"


@pytest.fixture(params=NUMBERS)
def view(request, view_of):
    return view_of(request.param)


@pytest.fixture
def lesson(view):
    return view.lesson


def localized_texts(value):
    """Yield every localized text inside of a value."""
    if isinstance(value, LocalizedText):
        yield value
    elif isinstance(value, list | tuple):
        for one in value:
            yield from localized_texts(one)
    elif isinstance(value, dict):
        yield from localized_texts(list(value.values()))
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from localized_texts(getattr(value, name))


def other_value(one):
    """Return an allowed value that is not the default."""
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


def wrong_values(one):
    """Yield values that the input must refuse."""
    yield from (math.nan, math.inf, "x" * 10_000, None, [[[]]], {"a": 1})
    match one:
        case Number():
            yield from (one.low - 1, one.high + 1)
            if float(one.step).is_integer():
                yield one.low + 0.5
        case Grid():
            yield one.default[0]
            yield [[*row, 1] for row in one.default]
        case Choice():
            yield "no such choice"
        case Text():
            yield " "


def test_it_is_complete(lesson):
    assert load_lesson(lesson.number) is lesson
    assert re.fullmatch(r"\d(\.\d)*(, \d(\.\d)*)?", lesson.paper)
    assert len(lesson.questions) == 3
    assert all(question.hints for question in lesson.questions)
    assert lesson.code
    for file, line in (one.locate() for one in lesson.code):
        assert file.startswith("src/attendo/")
        assert line > 0


def test_everything_is_translated(lesson, view):
    parts = [lesson.title, lesson.summary, lesson.inputs, lesson.questions, view.blocks()]
    for text in localized_texts(parts):
        assert text.en.strip()
        assert text.ko.strip()
        if lesson.number not in KOREAN_EXAMPLES:
            assert not HANGUL.search(QUOTED.sub("", text.en)), text.en
        if len(text.en.split()) > 3 and re.search("[a-z]{4}", text.en):  # not a formula
            assert HANGUL.search(text.ko), text.ko


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_terminal_shows_every_number_in_80_columns(lang, lesson, view):
    lines = view.lines(lang, width=80)
    words = set(" ".join(lines).split())
    assert lesson.title.localize(lang) in " ".join(lines)
    assert "nan" not in words
    for block in view.all_blocks():
        if isinstance(block, Matrix):
            names = block.localize(lang).rows
            for index, row in enumerate(block.values):
                label = [names[index]] if names else []
                assert " ".join([*label, *(format_number(n, block.digits) for n in row)]) in lines
        elif isinstance(block, Table):
            cells = [format_cell(cell, block.digits, lang) for row in block.rows for cell in row]
            assert {word for cell in cells for word in cell.split()} <= words


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_documentation_shows_it(lang, lesson, view):
    page = write_lesson(lesson, view.blocks(), lang)
    assert page.text.startswith(f"# {lesson.number}. ")
    assert len(re.findall(r"!\[", page.text)) == len(page.images)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_json_holds_finite_numbers(lang, lesson):
    data = json.loads(json.dumps(lesson.to_dict(lang), allow_nan=False))
    assert data["number"] == lesson.number
    assert data["blocks"]


def matrices_of(blocks):
    """Yield every matrix, also those inside of frames."""
    for block in blocks:
        if isinstance(block, Matrix):
            yield block
        elif isinstance(block, Steps):
            for frame in block.frames:
                yield from matrices_of(frame.blocks)


@pytest.mark.parametrize(("number", "titles"), PRODUCTS.items())
def test_a_matrix_is_the_product_that_the_page_explains(number, titles, view_of):
    explained = [one for one in matrices_of(view_of(number).blocks()) if one.product]
    assert [localize(one.title, "en") for one in explained] == titles
    for one in explained:
        left, right = (
            torch.tensor(part).double() for part in (one.product.left, one.product.right)
        )
        product = left @ right + torch.tensor(one.product.plus or [0.0]).double()
        torch.testing.assert_close(product, torch.tensor(one.values).double(), rtol=0, atol=1e-5)
        parts = one.to_dict("en")["product"]
        assert parts == {name: getattr(one.product, name) for name in ("left", "right", "plus")}


def test_every_input_has_an_effect_and_wrong_values_are_rejected(lesson, view):
    for one in lesson.inputs:
        assert view.blocks(values={one.name: other_value(one)}) != view.blocks(), one.name
        for wrong in wrong_values(one):
            with pytest.raises(ConfigError, match=one.name):
                lesson.blocks({one.name: wrong})
    with pytest.raises(ConfigError, match="unknown input"):
        lesson.blocks({"no_such_input": 1})


def test_the_extremes_of_every_number_work(lesson):
    for one in lesson.inputs:
        if isinstance(one, Number):
            for value in (one.low, one.high):
                json.dumps(lesson.to_dict("ko", {one.name: value}), allow_nan=False)


def test_questions_accept_the_right_answer_only(lesson):
    for question, (right, wrong) in zip(lesson.questions, ANSWERS[lesson.number], strict=True):
        assert question.check(right)
        assert not any(question.check(answer) for answer in (wrong, "", "그건 모르겠어요"))
        answer = question.answer()
        assert question.check(answer if isinstance(answer, str) else repr(float(answer)))
        for number, (key, label) in enumerate(question.choices, 1):
            names = [label] if isinstance(label, str) else [label.en, label.ko]
            for name in (key, *names, "abcdef"[number - 1]):
                assert question.check(name) is (key == answer), name
    with pytest.raises(AttendoError, match="no question 4"):
        lesson.question(4)


def test_plots_exist(view):
    assert all(block.name in PLOTS for block in view.all_blocks() if isinstance(block, ModelPlot))


def test_it_is_fast_and_leaves_the_random_state_alone(lesson):
    """The web page computes a lesson again at every change."""
    state = torch.get_rng_state()
    lesson.blocks()  # fills the caches
    seconds = []
    for _ in range(3):
        begin = time.process_time()
        lesson.blocks()
        seconds.append(time.process_time() - begin)
    assert min(seconds) < 2.0
    assert torch.equal(torch.get_rng_state(), state)


@pytest.fixture(scope="module")
def translators(make_translator):
    made = {kind: make_translator(kind) for kind in KINDS}
    model, tokenizer = made["transformer"].model, made["transformer"].tokenizer
    return {**made, "ensemble": Translator(Ensemble([model, model]), tokenizer)}


@pytest.mark.parametrize("kind", KINDS)
def test_it_shows_what_a_model_of_any_kind_has(kind, lesson, translators):
    section = build_section(lesson, translators[kind], TEXT)
    plots = [block for block in section.blocks if isinstance(block, ModelPlot)]
    notes = [block for block in section.blocks if isinstance(block, Note)]
    assert section.blocks
    assert len(notes) <= 1  # what the model lacks is printed once
    assert {plot.name for plot in plots} <= set(available_plots(section.record, section.translator))
    for block in section.blocks:
        assert all(render_block(block, lang) for lang in LANGUAGES)
    if kind == "transformer":
        assert not notes
        assert plots or lesson.number in (2, 16, 18)


def test_an_ensemble_gets_an_answer(lesson, translators):
    if lesson.number not in (12, 13, 14, 18):  # these need no single model
        blocks = lesson.own_model_blocks(translators["ensemble"], TEXT)
        assert any(isinstance(block, Note | Table | ModelPlot) for block in blocks)


def test_the_site_has_one_page_per_lesson_and_language(tmp_path):
    written = write_site(tmp_path / "lessons")
    assert len(written) == 2 * (len(load_lessons()) + 1)
    index = (tmp_path / "lessons" / "index.ko.md").read_text(encoding="utf-8")
    assert index.startswith("# 강의")
    for path in written:
        for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", path.read_text(encoding="utf-8")):
            assert (path.parent / picture).stat().st_size > 1000


def test_prerequisites_come_earlier_and_are_named_once():
    assumed: dict[int, set[int]] = {}
    for number in NUMBERS:
        direct = PREREQUISITES.get(number, ())
        assert all(one < number for one in direct)
        indirect = {other for one in direct for other in assumed[one]}
        assert indirect.isdisjoint(direct), number
        assumed[number] = {*direct, *indirect}


def test_a_matrix_with_wrong_labels_is_rejected():
    with pytest.raises(ValueError, match="do not fit"):
        Matrix("A", [[1.0, 2.0]], columns=["a"])
    assert Chart.kind == "chart"


def test_an_unknown_lesson_is_an_error():
    with pytest.raises(AttendoError, match="no lesson 99"):
        load_lesson(99)
