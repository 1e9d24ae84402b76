"""`attendo look` on the models that the Transformer replaced."""

from __future__ import annotations

import json

import pytest

import attendo.inspection.html_page as pages
from attendo.bundle import build_model, load_bundle, save_bundle
from attendo.cli.main import run
from attendo.inspection import Record
from attendo.translator import Translator

KINDS = ("rnn-seq2seq", "rnn-attention", "conv-s2s")
TEXT = "ka to mi re"


@pytest.fixture(scope="module")
def folders(toy, tmp_path_factory):
    """A model folder of each kind, whose weights are random."""
    made = tmp_path_factory.mktemp("models")
    tokenizer = toy.prepared.tokenizer
    for kind in KINDS:
        save_bundle(made / kind, build_model(kind, {"d_model": 16}, tokenizer), tokenizer)
    return made


@pytest.fixture(params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture
def look(folders, kind, tmp_path, monkeypatch, capsys):
    """Run the verb in an empty folder; give its output, its errors and its exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "read_template", lambda: f"<p>{pages.RECORD_PLACEHOLDER}</p>")

    def call(*words: object) -> tuple[str, str, int]:
        with pytest.raises(SystemExit) as ended:
            run(["look", str(folders / kind), *map(str, words)])
        shown = capsys.readouterr()
        return shown.out, shown.err, int(ended.value.code or 0)

    return call


def test_a_page_with_the_model_s_own_translation(look, folders, kind, tmp_path):
    out, errors, code = look(TEXT)
    assert (code, "look.html" in errors) == (0, True)
    page = (tmp_path / "look.html").read_text(encoding="utf-8")
    record = Record.from_dict(json.loads(page.removeprefix("<p>").removesuffix("</p>")))
    bundle = load_bundle(folders / kind)
    made = Translator(bundle.model, bundle.tokenizer).translate([TEXT])[0]
    assert out == f"{made}\n"
    assert record.tgt["text"] == made
    assert record.model["kind"] == kind
    assert record.beam is not None
    assert len(record.steps) == len(record.tgt["tokens"])


def test_the_record_names_what_the_model_lacks(look, kind, tmp_path):
    assert look(TEXT, "-o", "record.json", "--tgt", "KA TO")[2] == 0
    record = Record.load(tmp_path / "record.json")
    assert record.kinds == (() if kind == "rnn-seq2seq" else ("cross",))
    assert record.logit_lens is record.attribution is record.ablation is None
    assert ("attention: the model has none" in record.notes) is (kind == "rnn-seq2seq")
    assert f"kind '{kind}'" in record.notes[-1]


@pytest.mark.parametrize("option", ["attribution", "ablation"])
def test_what_only_a_transformer_has_is_rejected_when_asked_for(look, kind, tmp_path, option):
    _, errors, code = look(TEXT, f"--{option}")
    assert code == 2
    assert f"{option} needs a Transformer, and this is a model of kind '{kind}'" in errors
    assert "hint" in errors
    assert list(tmp_path.iterdir()) == []


def test_leaving_it_out_raises_no_error(look, tmp_path):
    assert look(TEXT, "-o", "record.json", "--no-attribution", "--no-ablation")[2] == 0
    assert "attribution" not in Record.load(tmp_path / "record.json").notes[-1]


def test_the_pictures_that_there_are(look, kind, tmp_path):
    _, errors, code = look("ka to", "--pictures", "pictures", "--tgt", "KA")
    assert code == 0
    drawn = {path.stem for path in (tmp_path / "pictures").iterdir()}
    assert "logits" in drawn
    assert ("all_heads" in drawn) is (kind != "rnn-seq2seq")
    assert ("positions" in drawn) is (kind == "conv-s2s")
    assert not {"stack", "query_key_value", "two_heads", "beam_tree"} & drawn
    assert errors.count(".png") == len(drawn)
