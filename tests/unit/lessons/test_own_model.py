"""The last part of the lessons, for models that have what they show and for those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.inspection.plots.registry import available_plots
from attendo.lessons.blocks import LocalizedText, ModelPlot, Note, Paragraph
from attendo.lessons.contents import MODULES, load_lesson
from attendo.lessons.own_model import build_section, find_model_dir, save_all_plots
from attendo.translator import Translator

SIZES = {
    "transformer": {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1},
    "rnn-attention": {"d_model": 16},
    "rnn-seq2seq": {"d_model": 16},
    "conv-s2s": {"d_model": 16, "num_layers": 2, "num_decoder_layers": 2},
}
BASELINES = ("rnn-attention", "rnn-seq2seq", "conv-s2s")
TEXT = "ka to mi re"


@pytest.fixture(scope="module")
def translators(toy):
    tokenizer = toy.prepared.tokenizer
    return {
        kind: Translator(build_model(kind, sizes, tokenizer).eval(), tokenizer)
        for kind, sizes in SIZES.items()
    }


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize("number", MODULES)
def test_what_a_model_lacks_is_said_once(number, kind, translators):
    part = build_section(load_lesson(number), translators[kind], TEXT)
    assert part.blocks
    assert sum(isinstance(block, Note) for block in part.blocks) <= 1
    possible = available_plots(part.record, part.translator)
    assert all(block.name in possible for block in part.blocks if isinstance(block, ModelPlot))


@pytest.mark.parametrize("kind", BASELINES)
def test_lesson_4_announces_nothing_that_does_not_come(kind, translators):
    (block,) = build_section(load_lesson(4), translators[kind], TEXT).blocks
    assert isinstance(block, Note)


def test_pictures_that_no_note_explains_are_named_together(translators):
    lesson = replace(
        load_lesson(4),
        on_your_model=lambda *_: [
            Paragraph(LocalizedText("see", "보세요")),
            ModelPlot("stack", LocalizedText("the stack", "층 구조")),
            ModelPlot("logits", LocalizedText("logits", "로짓")),
            ModelPlot("masks", LocalizedText("masks", "마스크")),
        ],
    )
    said, logits, note = build_section(lesson, translators["rnn-seq2seq"], TEXT).blocks
    assert (said.words.en, logits.name) == ("see", "logits")
    assert note.words.en.startswith("Not shown: the stack, masks.")
    assert "층 구조, 마스크" in note.words.ko
    assert len(build_section(lesson, translators["transformer"], TEXT).blocks) == 4


def test_pictures_go_into_files_and_what_moves_as_a_film_too(translators, tmp_path):
    part = build_section(load_lesson(1), translators["transformer"], TEXT)
    names = [path.name for path in save_all_plots(part, tmp_path, "ko")]
    assert names == ["1-decoder_steps.png", "1-decoder_steps.gif", "2-head_lines.png"]
    assert (tmp_path / "1-decoder_steps.gif").read_bytes().startswith(b"GIF89a")


def test_without_a_model_one_is_told_how_to_get_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="quickstart"):
        find_model_dir(None)
    (tmp_path / "runs/quickstart/en-ko/model").mkdir(parents=True)
    assert find_model_dir(None).name == "en-ko"
    assert find_model_dir(tmp_path) == tmp_path
