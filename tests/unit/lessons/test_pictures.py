"""Every picture that the lessons promise is drawn by one call, and shown in its lesson."""

from __future__ import annotations

import inspect

import pytest

from attendo.bundle import build_model
from attendo.core.errors import AttendoError
from attendo.lessons.blocks import LANGUAGES, Chart, Drawing, Frames, Matrix, Table
from attendo.lessons.contents import find_lesson
from attendo.lessons.pictures import _OWN, SHOWN_IN, draw
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}


@pytest.fixture(scope="module")
def translator(toy):
    tokenizer = toy.prepared.tokenizer
    return Translator(build_model("transformer", SIZES, tokenizer).eval(), tokenizer)


@pytest.mark.parametrize(
    ("name", "lang"),
    # both languages of the model's pictures are tested where they are drawn
    [
        *((name, lang) for name in _OWN for lang in LANGUAGES),
        *((name, "ko") for name in sorted(SHOWN_IN) if name not in _OWN),
    ],
)
def test_one_call_draws_it(name, lang, translator, tmp_path):
    model = {} if name in _OWN else {"translator": translator, "text": "ka to mi re"}
    path = draw(name, tmp_path / f"{name}.png", lang=lang, **model)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 5000


@pytest.mark.parametrize("name", sorted(SHOWN_IN))
def test_its_lesson_shows_it(name, translator):
    lesson = find_lesson(SHOWN_IN[name])
    if name in _OWN:
        assert any(isinstance(b, Chart | Matrix | Table | Frames) for b in lesson.blocks())
        source = inspect.getsource(inspect.getmodule(lesson.tell))
        words = {
            "unravelled_paths": "unravel(",
            "target_and_learnt": "learnt_distributions(",
            "smoothed_targets": "smoothed_targets(",
            "learning_rate": "learning_rate_curve(",
            "bleu_by_length": "bleu_by_length(",
        }
        assert words[name] in source
    else:
        own = lesson.on_your_model(translator, "ka to mi re")
        assert name in [block.name for block in own if isinstance(block, Drawing)]


def test_wrong_requests_are_told(tmp_path):
    with pytest.raises(AttendoError, match="did you mean 'two_heads'"):
        draw("two_head", tmp_path / "a.png")
    with pytest.raises(AttendoError, match="drawn from a model"):
        draw("two_heads", tmp_path / "a.png")
    with pytest.raises(AttendoError):
        draw("learning_rate", tmp_path / "a.txt")
