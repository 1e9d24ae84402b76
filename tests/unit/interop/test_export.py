"""The one door out: every format is checked by the library that it is for."""

from __future__ import annotations

import json

import pytest
import torch

from attendo.bundle import Bundle, build_model, load_bundle, save_bundle
from attendo.cli.main import run
from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError
from attendo.interop import ctranslate2 as interop
from attendo.interop import export as door
from attendo.interop import parity
from attendo.interop.export import export
from attendo.interop.parity import compare, sample_sources
from attendo.text.tokenizer import END_ID
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1, "position_layout": "halves"}
TEXTS = ["ka to mi", "so", "lu re lu re lu"]


@pytest.fixture
def make_folder(toy, tmp_path):
    def make(kind: str = "transformer", **options):
        tokenizer = toy.prepared.tokenizer
        sizes = SIZES if kind == "transformer" else {"d_model": 16}
        model = build_model(kind, {**sizes, **options}, tokenizer)
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(2.0)
        save_bundle(tmp_path / "model", model, tokenizer, about={"max_src_tokens": 12})
        return tmp_path / "model"

    return make


@pytest.mark.parametrize("to", ["ctranslate2", "onnx", "hf-marian"])
@pytest.mark.filterwarnings("ignore::UserWarning:transformers")
def test_each_library_has_the_same_output(make_folder, tmp_path, to):
    report = export(make_folder(), to=to, out=tmp_path / "new" / "out", sentences=TEXTS)
    assert report.unchecked is None
    assert (report.parity.num_sentences, report.parity.is_faithful) == (3, True)
    assert report.parity.largest_difference < 1e-4
    assert report.parity.same_text == {1: 3, 4: 3}
    assert report.parity.differing == []
    files = [path for path in report.folder.rglob("*") if path.is_file()]
    assert report.num_bytes == sum(path.stat().st_size for path in files) > 1000
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]


@pytest.mark.parametrize("quantization", ["int8", "float16"])
def test_a_quantized_copy_reports_its_distance(make_folder, tmp_path, quantization):
    folder = make_folder()
    exact = export(folder, to="ctranslate2", out=tmp_path / "exact", sentences=TEXTS)
    rough = export(
        folder, to="ctranslate2", out=tmp_path / "q", quantization=quantization, sentences=TEXTS
    )
    assert rough.quantization == quantization
    assert rough.parity.measure == "log-probabilities"
    assert rough.parity.largest_difference > 10 * exact.parity.largest_difference
    assert rough.num_bytes < exact.num_bytes


def test_another_model_does_not_pass_for_this_one(make_folder, tmp_path):
    folder = make_folder()
    export(folder, to="ctranslate2", out=tmp_path / "out", sentences=TEXTS)
    other = load_bundle(folder)
    other.model.decoder.layers[0].cross_attention.output.bias.data[3] += 1.0
    found = compare(other, interop.load_reference(tmp_path / "out"), ["ka to mi re so lu"])
    assert not found.is_faithful
    assert found.largest_difference > 1e-3


def test_what_differs_is_shown(make_folder):
    bundle = load_bundle(make_folder())

    class Stubborn:
        def logits(self, src, tgt):
            return [
                parity._teacher_forced_logits(bundle, *pair) + 0.25
                for pair in zip(src, tgt, strict=True)
            ]

        def translate(self, src, _beam_size):
            return [[5, END_ID] for _ in src]

    found = compare(bundle, Stubborn(), TEXTS)
    assert (found.measure, found.is_faithful) == ("logits", False)
    assert found.largest_difference == pytest.approx(0.25, abs=1e-5)
    assert found.same_text[4] < 3
    word = bundle.tokenizer.decode_tgt([[5]])[0]
    assert [one["theirs"] for one in found.differing] == [word] * len(found.differing)
    assert found.differing[0]["source"] in TEXTS
    assert json.loads(json.dumps(found.to_dict()))["same_text"] == {
        str(beam): count for beam, count in found.same_text.items()
    }


def test_sources_are_made_up_for_any_model(make_folder):
    bundle = load_bundle(make_folder())
    drawn = sample_sources(bundle, 20)
    assert drawn == sample_sources(bundle, 20)
    assert len({tuple(row) for row in drawn}) > 10
    assert all(row[-1] == END_ID and 2 <= len(row) <= 12 for row in drawn)
    assert {number for row in drawn for number in row[:-1]} <= set(
        range(END_ID + 1, bundle.tokenizer.src_vocab_size)
    )
    korean = Bundle(bundle.model, bundle.tokenizer, {"src_lang": "ko"})
    assert sample_sources(korean, 5) != drawn[:5]


def test_every_reason_is_gathered(make_folder, tmp_path):
    folder = make_folder(attention_width=3, residual=False)
    with pytest.raises(ConfigError) as error:
        export(folder, to="ctranslate2", out=tmp_path / "out", quantization="int3")
    assert len(error.value.reasons) == 3
    assert "int8, int8_bfloat16, float16" in error.value.reasons[-1]
    with pytest.raises(ConfigError, match="quantization 'int8'"):
        export(folder, to="onnx", out=tmp_path / "out", quantization="int8")
    assert not (tmp_path / "out").exists()


def test_other_kinds_are_rejected(make_folder, tmp_path):
    folder = make_folder("rnn-seq2seq")
    for to in door.FORMATS.keys() - {"attendo"}:
        with pytest.raises(ConfigError, match="rnn-seq2seq"):
            export(folder, to=to, out=tmp_path / "out")


def test_a_model_folder_in_int8_is_small_and_the_same_for_ctranslate2(make_folder, tmp_path):
    folder, out = make_folder(), tmp_path / "int8"
    report = export(folder, to="attendo", out=out, quantization="int8")
    assert report.parity is not None
    sizes = [(one / "model.safetensors").stat().st_size for one in (folder, out)]
    assert sizes[1] < 0.6 * sizes[0]  # a file of this size is mostly its header
    stored = [Translator.load(one, engine="ctranslate2", precision="int8") for one in (folder, out)]
    texts = [[str(text) for text in one.translate(TEXTS, beam_size=2)] for one in stored]
    assert texts[0] == texts[1]
    with pytest.raises(ConfigError, match="float16"):
        export(folder, to="attendo", out=tmp_path / "other", quantization="int8_bfloat16")


def test_nothing_is_written_over(make_folder, tmp_path):
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists"):
        export(make_folder(), to="ctranslate2", out=tmp_path / "out")


def test_a_broken_write_leaves_nothing(make_folder, tmp_path, monkeypatch):
    def stop(_bundle, folder, **_):
        (folder / "half").write_text("", encoding="utf-8")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(interop, "write", stop)
    with pytest.raises(AttendoError, match="No space left"):
        export(make_folder(), to="ctranslate2", out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


def test_a_missing_library_leaves_the_export_unchecked(make_folder, tmp_path, monkeypatch):
    def miss(_folder):
        raise MissingExtraError("ctranslate2", "interop")

    monkeypatch.setattr(interop, "load_reference", miss)
    report = export(make_folder(), to="ctranslate2", out=tmp_path / "out")
    assert report.parity is None
    assert "attendo[interop]" in report.unchecked
    assert (tmp_path / "out" / "model.bin").is_file()


def test_an_unknown_format_is_named(make_folder, tmp_path):
    with pytest.raises(ConfigError, match="unknown format 'onx'") as error:
        export(make_folder(), to="onx", out=tmp_path / "out")
    assert "onnx" in error.value.hint


class TestCommand:
    def test_reports_what_it_found(self, make_folder, tmp_path, capsys):
        lines = tmp_path / "lines.txt"
        lines.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        words = ["--to", "ctranslate2", "-o", str(tmp_path / "out"), "--sentences", str(lines)]
        with pytest.raises(SystemExit) as ended:
            run(["export", str(make_folder()), *words])
        assert ended.value.code == 0
        reported = capsys.readouterr().out
        assert "ctranslate2, float32" in reported
        assert "comparison on 3" in reported
        assert "greedy: 3 of 3" in reported
        assert "beam 4: 3 of 3" in reported

    def test_prints_json(self, make_folder, tmp_path, capsys):
        words = ["--to", "onnx", "--out", str(tmp_path / "out"), "--json"]
        with pytest.raises(SystemExit):
            run(["export", str(make_folder()), *words])
        reported = json.loads(capsys.readouterr().out)
        assert reported["parity"]["is_faithful"] is True
        assert reported["format"] == "onnx"

    def test_warns_where_another_thing_is_computed(
        self, make_folder, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setattr(parity, "TOLERANCE", 0.0)
        with pytest.raises(SystemExit) as ended:
            run(["export", str(make_folder()), "--to", "ctranslate2", "-o", str(tmp_path / "out")])
        assert ended.value.code == 1
        assert "computes different results" in capsys.readouterr().err

    def test_bad_input_is_printed_in_words(self, tmp_path, capsys):
        with pytest.raises(SystemExit) as ended:
            run(["export", str(tmp_path), "--to", "onnx", "-o", str(tmp_path / "out")])
        assert ended.value.code == 2
        assert "not a model folder" in capsys.readouterr().err
