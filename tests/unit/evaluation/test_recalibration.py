"""A finished model is calibrated on other sentences."""

from __future__ import annotations

import json

import pytest
import torch

from attendo.bundle import build_model, save_bundle
from attendo.cli.main import run
from attendo.core.errors import InputError
from attendo.evaluation.recalibration import recalibrate
from attendo.memory.store import TranslationMemory
from attendo.memory.unit import Unit
from attendo.tasks.translation.corrections import read_corrections
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def pairs(toy) -> list[tuple[str, str]]:
    lines = (path.read_text(encoding="utf-8").splitlines() for path in (toy.src, toy.tgt))
    return list(zip(*lines, strict=True))[:120]


@pytest.fixture
def model_dir(toy, tmp_path):
    torch.manual_seed(3)
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer, about={"src_lang": "ko"})
    return tmp_path / "model"


def test_an_untrained_model_is_never_sure(model_dir, pairs):
    translator = Translator.load(model_dir, device="cpu")
    sources, references = zip(*pairs, strict=True)
    calibration = recalibrate(translator, sources, references)
    assert calibration.num_tokens == sum(
        len(ids) for ids in translator.tokenizer.encode_tgt(references)
    )
    assert calibration.nll_after <= calibration.nll_before
    assert calibration.quality is not None
    assert calibration.quality.num_sentences == len(pairs)
    assert calibration.quality.bands["high"].count == 0


def test_too_few_sentences_are_refused(model_dir, pairs):
    sources, references = zip(*pairs[:99], strict=True)
    with pytest.raises(InputError, match="99 sentences"):
        recalibrate(Translator.load(model_dir, device="cpu"), sources, references)


def attendo(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        run(["calibrate", *map(str, words)])
    return int(ended.value.code or 0)


def test_the_command_changes_nothing_but_the_calibration(model_dir, pairs, tmp_path):
    index_path = model_dir / "bundle.json"
    before = json.loads(index_path.read_text())
    table = tmp_path / "dev.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    assert attendo(model_dir, "--path", table, "--device", "cpu") == 0
    after = json.loads(index_path.read_text())
    calibration = after["about"].pop("calibration")
    assert after == before
    assert calibration["quality"]["num_sentences"] == len(pairs)
    assert Translator.load(model_dir, device="cpu").quality is not None


@pytest.mark.parametrize("arguments", [[], ["--src", "a"], ["--src", "a", "--path", "b"]])
def test_missing_files_are_reported(model_dir, arguments):
    assert attendo(model_dir, *arguments) == 2


def test_corrections_count_too_unless_the_model_was_trained_on_them(model_dir, pairs, tmp_path):
    index = json.loads((model_dir / "bundle.json").read_text())
    index["about"]["tgt_lang"] = "en"
    (model_dir / "bundle.json").write_text(json.dumps(index))
    store = tmp_path / "memory.db"
    units = [Unit(f"{src} {number}", tgt, "ko", "en") for number, (src, tgt) in enumerate(pairs)]
    with TranslationMemory(store) as memory:
        memory.add(units)
        held_back = len(read_corrections(store, "ko", "en").held_back)
    assert 0 < held_back < len(units)

    def count_calibrated(*words: object) -> int:
        assert attendo(model_dir, "--corrections", store, *words) == 0
        calibration = json.loads((model_dir / "bundle.json").read_text())["about"]["calibration"]
        return int(calibration["quality"]["num_sentences"])

    table = tmp_path / "dev.tsv"
    table.write_text("".join(f"{src}\t{tgt}\n" for src, tgt in pairs), encoding="utf-8")
    assert count_calibrated() == len(units)
    assert count_calibrated("--path", table) == len(units) + len(pairs)
    (model_dir / "adaptation.json").write_text("{}")
    assert count_calibrated("--path", table) == held_back + len(pairs)
