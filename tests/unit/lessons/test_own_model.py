"""The section of a lesson on the learner's own model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attendo.core.errors import InputError
from attendo.lessons.blocks import LocalizedText, ModelPlot, Note, Paragraph
from attendo.lessons.contents import load_lesson
from attendo.lessons.own_model import build_section, find_model_dir, save_all_plots

BASELINES = ("rnn-attention", "rnn-seq2seq", "conv-s2s")
TEXT = "ka to mi re"


@pytest.mark.parametrize("kind", BASELINES)
def test_lesson_4_announces_nothing_that_does_not_follow(kind, make_translator):
    translation, block = build_section(load_lesson(4), make_translator(kind), TEXT).blocks
    assert TEXT in translation.words.en
    assert isinstance(block, Note)


def test_plots_that_no_note_explains_are_named_together(make_translator):
    lesson = replace(
        load_lesson(4),
        own_model_blocks=lambda *_: [
            Paragraph(LocalizedText("see", "보세요")),
            ModelPlot("stack", LocalizedText("the stack", "층 구조")),
            ModelPlot("logits", LocalizedText("logits", "로짓")),
            ModelPlot("masks", LocalizedText("masks", "마스크")),
        ],
    )
    _, paragraph, logits, note = build_section(lesson, make_translator("rnn-seq2seq"), TEXT).blocks
    assert (paragraph.words.en, logits.name) == ("see", "logits")
    assert note.words.en.startswith("Not shown: the stack, masks.")
    assert "층 구조, 마스크" in note.words.ko
    assert len(build_section(lesson, make_translator(), TEXT).blocks) == 5


def test_plots_are_saved_and_animated_ones_also_as_gif(make_translator, tmp_path):
    section = build_section(load_lesson(1), make_translator(), TEXT)
    names = [path.name for path in save_all_plots(section, tmp_path, "ko")]
    assert names == ["1-decoder_steps.png", "1-decoder_steps.gif", "2-head_lines.png"]
    assert (tmp_path / "1-decoder_steps.gif").read_bytes().startswith(b"GIF89a")


def test_without_a_model_the_error_explains_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="quickstart"):
        find_model_dir(None)
    (tmp_path / "runs/quickstart/en-ko/model").mkdir(parents=True)
    assert find_model_dir(None).name == "en-ko"
    assert find_model_dir(tmp_path) == tmp_path
