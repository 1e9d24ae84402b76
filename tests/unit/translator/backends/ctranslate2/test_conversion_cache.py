"""A model is converted once, by its content; `auto` knows when to leave it."""

from __future__ import annotations

import builtins
import json
import logging
import os
import shutil
import sys
import tempfile

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


def list_directories(cache) -> list[str]:
    return sorted(path.name for path in cache.iterdir() if not path.name.startswith("."))


def list_levels(log) -> list[str]:
    return [one.levelname for one in log.records if one.message.startswith("PyTorch decodes")]


def test_the_same_content_is_converted_once(cache, make_folder, tmp_path, monkeypatch):
    folder = make_folder()
    directory = cached_conversion(folder)
    stamp = (directory / "model.bin").stat().st_mtime_ns
    shutil.copytree(folder, tmp_path / "elsewhere" / "model")
    monkeypatch.setattr(conversion_cache, "load_bundle", pytest.fail)  # not even read again
    assert cached_conversion(tmp_path / "elsewhere") == directory, "the folder of a run"
    assert (directory / "model.bin").stat().st_mtime_ns == stamp
    assert list_directories(cache) == [directory.name]


def test_different_content_has_a_different_path(cache, make_folder):
    folder = make_folder()
    first = cached_conversion(folder)
    index = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
    index["about"]["src_lang"] = "en"
    (folder / "bundle.json").write_text(json.dumps(index), encoding="utf-8")
    second = cached_conversion(folder)
    assert first != second
    assert len(list_directories(cache)) == 2
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
    assert list_directories(cache) == []
    assert (cached_conversion(folder) / "attendo.json").is_file()


def test_a_damaged_conversion_explains_what_to_delete(cache, make_folder):
    folder = make_folder()
    directory = cached_conversion(folder)
    (directory / "model.bin").write_bytes(b"damaged")
    translator = Translator.load(folder, engine="ctranslate2")
    with pytest.raises(AttendoError, match="cannot open") as error:
        translator.translate(["ka"])
    assert "delete" in error.value.hint


@pytest.fixture
def no_cache(tmp_path, monkeypatch):
    """A cache that cannot be written, and an empty folder for temporary files."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "file"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    return tmp_path / "tmp"


def test_the_temporary_folder_is_used_if_the_cache_cannot_be_written(no_cache, make_folder):
    """Found in review: under systemd and in a container the slow engine served."""
    folder = make_folder()
    assert Translator.load(folder, engine="auto", device="cpu").backend.name == "ctranslate2"
    (private,) = no_cache.iterdir()
    assert private.stat().st_mode & 0o777 == 0o700
    assert cached_conversion(folder).is_relative_to(private)


def test_a_temporary_folder_that_others_can_write_is_not_used(no_cache, make_folder):
    temporary = conversion_cache.temporary_cache_dir()
    temporary.mkdir()
    temporary.chmod(0o777)
    assert conversion_cache.temporary_cache_dir() is None
    loaded = Translator.load(make_folder(), engine="auto", device="cpu")
    assert loaded.backend.name == "attendo"


def test_old_conversions_are_removed_the_least_recently_used_first(cache, make_folder):
    directories = []
    folders = [make_folder(name, d_ff=16 * (1 + age)) for age, name in enumerate("abcd")]
    for age, folder in enumerate(folders):
        directories.append(cached_conversion(folder))
        os.utime(directories[-1] / "attendo.json", (1000 + age, 1000 + age))
    cached_conversion(folders[0])  # used again
    kept = [one.stat().st_size for index in (0, 3, 2) for one in directories[index].iterdir()]
    conversion_cache.remove_old_conversions(cache, max_bytes=sum(kept))
    assert [directory.exists() for directory in directories] == [True, False, True, True]
    conversion_cache.remove_old_conversions(cache, max_bytes=1)
    assert [directory.exists() for directory in directories] == [True, False, False, True]


def test_a_cache_that_cannot_be_written_is_reported(no_cache, make_folder, monkeypatch, log):
    monkeypatch.setattr(conversion_cache, "temporary_cache_dir", lambda: None)
    folder = make_folder()
    with pytest.raises(AttendoError, match="cannot be written") as error:
        Translator.load(folder, engine="ctranslate2")
    assert "ATTENDO_CACHE" in error.value.hint
    assert Translator.load(folder, engine="auto", device="cpu").backend.name == "attendo"
    assert list_levels(log) == ["WARNING"]  # found in review: the slower engine served silently


def test_auto_takes_it_where_it_can(cache, make_folder):
    loaded = Translator.load(make_folder(), engine="auto", device="cpu")
    assert loaded.backend.name == "ctranslate2"
    assert loaded.about == {"src_lang": "ko"}
    assert len(list_directories(cache)) == 1


@pytest.mark.parametrize(
    ("kind", "options", "word", "level"),
    [
        ("rnn-seq2seq", {}, "rnn-seq2seq", "INFO"),
        ("transformer", {"attention_width": 3}, "attention_width", "WARNING"),
    ],
)
def test_auto_leaves_what_it_cannot_run(cache, make_folder, log, kind, options, word, level):
    folder = make_folder(kind=kind, **options)
    loaded = Translator.load(folder, engine="auto", device="cpu")
    assert loaded.backend.name == "attendo"
    assert loaded.translate(["ka to"])
    assert word in log.text
    assert list_levels(log) == [level]
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
    assert "attendo[ctranslate2]" in error.value.hint
    assert Translator.load(folder, engine="auto", device="cpu").backend.name == "attendo"
    assert "not installed" in log.text
    assert list_levels(log) == ["WARNING"]


@pytest.mark.parametrize("engine", ["auto", "ctranslate2"])
def test_a_folder_without_a_model_is_reported_as_before(cache, tmp_path, engine):
    with pytest.raises(InputError, match="not a model folder"):
        Translator.load(tmp_path, engine=engine)


def test_an_unknown_engine_is_named(make_folder):
    with pytest.raises(ConfigError, match="no engine 'ctranslat'") as error:
        Translator.load(make_folder(), engine="ctranslat")
    assert "ctranslate2" in error.value.hint
