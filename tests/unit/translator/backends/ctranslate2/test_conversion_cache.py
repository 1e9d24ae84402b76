"""A model is converted once, by its content; `auto` knows when to leave it."""

from __future__ import annotations

import builtins
import json
import logging
import shutil
import sys

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError
from attendo.translator import Translator
from attendo.translator.backends.ctranslate2 import conversion_cache
from attendo.translator.backends.ctranslate2.conversion_cache import cached_conversion

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


@pytest.fixture
def make_folder(toy, tmp_path):
    def make(name: str = "a", kind: str = "transformer", **options):
        tokenizer = toy.prepared.tokenizer
        sizes = SIZES if kind == "transformer" else {"d_model": 16}
        model = build_model(kind, {**sizes, **options}, tokenizer)
        save_bundle(tmp_path / name, model, tokenizer, about={"src_lang": "ko"})
        return tmp_path / name

    return make


@pytest.fixture
def log(caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("attendo"), "propagate", True)
    caplog.set_level(logging.INFO, logger="attendo")
    return caplog


def list_places(cache) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.startswith("."))


def test_the_same_content_is_converted_once(cache, make_folder, tmp_path, monkeypatch):
    folder = make_folder()
    place = cached_conversion(folder)
    stamp = (place / "model.bin").stat().st_mtime_ns
    shutil.copytree(folder, tmp_path / "elsewhere" / "model")
    monkeypatch.setattr(conversion_cache, "load_bundle", pytest.fail)  # not even read again
    assert cached_conversion(tmp_path / "elsewhere") == place, "the folder of a run"
    assert (place / "model.bin").stat().st_mtime_ns == stamp
    assert list_places(cache) == [place.name]


def test_another_content_has_another_place(cache, make_folder):
    folder = make_folder()
    first = cached_conversion(folder)
    index = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    index["about"]["src_lang"] = "en"
    (folder / "bundle.json").write_text(json.dumps(index), encoding="utf-8")
    second = cached_conversion(folder)
    assert first != second
    assert len(list_places(cache)) == 2
    assert Translator.load(folder, engine="ctranslate2").about["src_lang"] == "en"


def test_a_conversion_that_broke_off_leaves_nothing(cache, make_folder, monkeypatch):
    folder = make_folder()

    def stop(_bundle, partial):
        (partial / "model.bin").write_bytes(b"half")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(conversion_cache, "write", stop)
        with pytest.raises(KeyboardInterrupt):
            cached_conversion(folder)
    assert list_places(cache) == []
    assert (cached_conversion(folder) / "attendo.json").is_file()


def test_a_damaged_conversion_says_what_to_delete(cache, make_folder):
    folder = make_folder()
    place = cached_conversion(folder)
    (place / "model.bin").write_bytes(b"damaged")
    translator = Translator.load(folder, engine="ctranslate2")
    with pytest.raises(AttendoError, match="cannot open") as error:
        translator.translate(["ka"])
    assert "delete" in error.value.hint


def test_a_cache_that_cannot_be_written_is_told(tmp_path, make_folder, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "file"))
    folder = make_folder()
    with pytest.raises(AttendoError, match="cannot be written") as error:
        Translator.load(folder, engine="ctranslate2")
    assert "ATTENDO_CACHE" in error.value.hint
    assert Translator.load(folder, engine="auto", device="cpu").backend.name == "attendo"


def test_auto_takes_it_where_it_can(cache, make_folder):
    loaded = Translator.load(make_folder(), engine="auto", device="cpu")
    assert loaded.backend.name == "ctranslate2"
    assert loaded.about == {"src_lang": "ko"}
    assert len(list_places(cache)) == 1


@pytest.mark.parametrize(
    ("kind", "options", "word"),
    [
        ("rnn-seq2seq", {}, "rnn-seq2seq"),
        ("transformer", {"attention_width": 3}, "attention_width"),
    ],
)
def test_auto_leaves_what_it_cannot_run(cache, make_folder, log, kind, options, word):
    folder = make_folder(kind=kind, **options)
    loaded = Translator.load(folder, engine="auto", device="cpu")
    assert loaded.backend.name == "attendo"
    assert loaded.translate(["ka to"])
    assert word in log.text
    with pytest.raises(ConfigError, match=word) as error:
        Translator.load(folder, engine="ctranslate2")
    assert 'engine="attendo"' in error.value.hint
    assert not cache.exists()


def test_auto_leaves_ensembles(cache, make_folder):
    folders = make_folder("a"), make_folder("b")
    assert Translator.load(*folders, engine="auto", device="cpu").backend.name == "attendo"
    with pytest.raises(ConfigError, match="ensemble"):
        Translator.load(*folders, engine="ctranslate2")


def test_a_missing_library_is_named(cache, make_folder, monkeypatch, log):
    folder = make_folder()
    real = builtins.__import__

    def refuse(name, *args, **named):
        if name.split(".")[0] == "ctranslate2":
            raise ModuleNotFoundError(name)
        return real(name, *args, **named)

    monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingExtraError, match="ctranslate2") as error:
        Translator.load(folder, engine="ctranslate2")
    assert "attendo[interop]" in error.value.hint
    assert Translator.load(folder, engine="auto", device="cpu").backend.name == "attendo"
    assert "not installed" in log.text


@pytest.mark.parametrize("engine", ["auto", "ctranslate2"])
def test_a_folder_without_a_model_is_told_as_ever(cache, tmp_path, engine):
    with pytest.raises(InputError, match="not a model folder"):
        Translator.load(tmp_path, engine=engine)


def test_an_unknown_engine_is_named(make_folder):
    with pytest.raises(ConfigError, match="no engine 'ctranslat'") as error:
        Translator.load(make_folder(), engine="ctranslat")
    assert "ctranslate2" in error.value.hint
