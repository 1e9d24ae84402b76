"""`attendo look`, on a model that has learned nothing."""

from __future__ import annotations

import pytest

import attendo.inspection.html_page as pages
from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.inspection import Record

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def look(toy, tmp_path, monkeypatch, capsys):
    """Run the verb in an empty folder; give its output, its errors and its exit code."""
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "read_template", lambda: f"<html>{pages.RECORD_PLACEHOLDER}</html>")

    def call(*words: object) -> tuple[str, str, int]:
        with pytest.raises(SystemExit) as ended:
            run(["look", "model", *map(str, words)])
        shown = capsys.readouterr()
        return shown.out, shown.err, int(ended.value.code or 0)

    return call


def test_a_page_and_the_translation(look, tmp_path):
    out, errors, code = look("ka to mi", "--tgt", "MI TO KA")
    assert (out, code) == ("MI TO KA\n", 0)
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    assert "attendo.record" in page
    assert "look.html" in errors


def test_the_record_alone(look, tmp_path):
    out, _, _ = look("ka to mi", "-o", "record.json", "--tgt", "MI TO KA")
    record = Record.load(tmp_path / "record.json")
    assert record.search["method"] == "given"
    assert record.tgt["text"] == out.strip() == "MI TO KA"
    assert record.ablation is not None


def test_what_costs_time_can_be_left_out(look, tmp_path):
    look("ka", "-o", "record.json", "--no-attribution", "--no-ablation")
    record = Record.load(tmp_path / "record.json")
    assert record.attribution is None
    assert record.ablation is None
    assert record.logit_lens is not None


def test_only_pages_and_records_are_written(look, tmp_path):
    _, errors, code = look("ka", "-o", "look.pdf")
    assert code == 2
    assert "look.pdf" in errors
    assert not (tmp_path / "look.pdf").exists()


def test_the_attribution_takes_as_many_steps_as_given(look, tmp_path):
    look("ka", "-o", "record.json", "--attribution-steps", 5, "--no-ablation")
    assert Record.load(tmp_path / "record.json").attribution["num_steps"] == 5


def test_nothing_is_replaced_silently(look, tmp_path):
    (tmp_path / "look.html").write_text("mine", encoding="utf-8")
    _, errors, code = look("ka")
    assert code == 2
    assert "look.html exists" in errors
    assert (tmp_path / "look.html").read_text(encoding="utf-8") == "mine"
    assert look("ka", "--force")[2] == 0


@pytest.mark.parametrize("text", ["", "   ", "\u200b"])
def test_an_empty_sentence_is_rejected(look, tmp_path, text):
    _, errors, code = look(text)
    assert code == 2
    assert "empty" in errors
    assert not (tmp_path / "look.html").exists()


def test_a_sentence_of_five_hundred_tokens_is_cut_and_reported(look, tmp_path):
    _, _, code = look(" ".join(["ka", "to"] * 250), "-o", "record.json", "--no-ablation",
                      "--no-attribution")  # fmt: skip
    assert code == 0
    record = Record.load(tmp_path / "record.json")
    assert any("window of 256 tokens of 501" in note for note in record.notes)


def test_pictures_too(look, tmp_path):
    _, errors, code = look("ka to", "--pictures", "pictures")
    assert code == 0
    drawn = sorted(path.name for path in (tmp_path / "pictures").iterdir())
    assert "all_heads.png" in drawn
    assert "beam_tree.png" in drawn
    assert errors.count(".png") == len(drawn)
