from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from attendo.core.errors import InputError
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.served_model import TextModelHandle
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path


def make_registry(*pairs: tuple[str, str]) -> ModelRegistry:
    registry = ModelRegistry()
    for number, (src, tgt) in enumerate(pairs):
        registry.add(TextModelHandle(f"model{number}", src, tgt, None, {}))
    return registry


def test_models_are_loaded_and_named_after_their_folders(tmp_path, write_model) -> None:
    first = write_model(tmp_path / "ko-en", src_lang="ko", tgt_lang="en")
    run = tmp_path / "run"
    write_model(run / "model")
    registry = ModelRegistry([first, run], src_lang="de")
    registry.load()
    assert [(m.name, m.src, m.tgt) for m in registry.models] == [
        ("ko-en", "ko", "en"),
        ("run", "de", "auto"),
    ]
    assert registry.get() is registry.models[0]
    assert isinstance(registry.get("run").translator.translate(["ka to"])[0], str)


def test_a_folder_without_a_model_is_an_error(tmp_path) -> None:
    with pytest.raises(InputError, match=r"bundle\.json"):
        ModelRegistry([tmp_path]).load()


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [
        ("ko", "en", "model0"),
        ("en", "ko", "model1"),
        ("KO", "EN", "model0"),
        ("en-GB", "ko_KR", "model1"),
        (None, "ko", "model1"),
        ("auto", "en", "model0"),
        ("fr", "de", "model2"),
        (None, None, "model0"),
    ],
)
def test_a_model_is_found_by_its_languages(source, target, name) -> None:
    registry = make_registry(("ko", "en"), ("en", "ko"), ("auto", "de"))
    assert registry.find_for_languages(source, target).name == name


def test_an_exact_language_comes_before_a_near_one_and_a_near_one_before_anything() -> None:
    registry = make_registry(("auto", "ko"), ("pt-BR", "ko"), ("pt", "ko"))
    assert registry.find_for_languages("pt", "ko").name == "model2"
    assert registry.find_for_languages("pt-PT", "ko").name == "model1"
    assert registry.find_for_languages("fi", "ko").name == "model0"


def test_an_unknown_language_pair_is_reported_with_the_known_ones() -> None:
    registry = make_registry(("ko", "en"))
    with pytest.raises(InputError, match="no model translates en to ko") as caught:
        registry.find_for_languages("en", "ko")
    assert "ko to en" in caught.value.hint
    with pytest.raises(InputError, match="no model 'modell0'") as caught:
        registry.get("modell0")
    assert "did you mean 'model0'" in caught.value.hint


def test_targets_lists_each_pair_once() -> None:
    registry = make_registry(("ko", "en"), ("ko", "de"), ("ko", "en"), ("en", "ko"))
    assert registry.target_languages() == {"ko": ["en", "de"], "en": ["ko"]}


class TestRefresh:
    @pytest.fixture
    def folder(self, tmp_path, write_model) -> Path:
        return write_model(tmp_path / "m", src_lang="ko", tgt_lang="en", step=1)

    @pytest.fixture
    def registry(self, folder) -> ModelRegistry:
        registry = ModelRegistry([folder])
        registry.load()
        return registry

    def test_nothing_changes_while_the_folder_rests(self, registry) -> None:
        before = registry.get()
        assert registry.reload_changed() == registry.reload_changed() == []
        assert registry.get() is before

    def test_a_new_model_is_loaded_once_its_files_are_stable(
        self, registry, folder, write_model
    ) -> None:
        before = registry.get()
        write_model(folder, src_lang="ko", tgt_lang="fr", step=2)
        assert registry.reload_changed() == []  # it may still be written
        assert registry.reload_changed() == ["m"]
        after = registry.get()
        assert (after.about["step"], after.tgt) == (2, "fr")
        assert before.about["step"] == 1  # who has it goes on with it
        assert registry.reload_changed() == []

    def test_a_damaged_one_leaves_the_old_where_it_is(self, registry, folder) -> None:
        before = registry.get()
        index = folder / "bundle.json"
        text = index.read_text(encoding="utf-8")
        index.write_text("{", encoding="utf-8")
        for _ in range(4):
            assert registry.reload_changed() == []
        assert registry.get() is before
        index.write_text(json.dumps({**json.loads(text), "about": {"step": 3}}), encoding="utf-8")
        assert [registry.reload_changed(), registry.reload_changed()] == [[], ["m"]]
        assert registry.get().about == {"step": 3}

    def test_a_folder_that_vanishes_changes_nothing_and_is_logged_once(
        self, registry, folder, caplog
    ) -> None:
        elsewhere = folder.with_name("elsewhere")
        folder.rename(elsewhere)
        for _ in range(4):
            assert registry.reload_changed() == []
        assert registry.get().about["step"] == 1
        warnings = [one for one in caplog.records if one.levelname == "WARNING"]
        assert len(warnings) == 1
        assert str(folder) not in warnings[0].getMessage()
        elsewhere.rename(folder)
        for _ in range(2):
            assert registry.reload_changed() == []

    def test_what_changes_while_it_is_read_is_read_again(
        self, registry, folder, write_model, monkeypatch
    ) -> None:
        load, steps = Translator.load, []

        def change_while_loading(path, **options):
            translator = load(path, **options)
            steps.append(translator.about["step"])
            if len(steps) == 1:  # before its PyTorch model is read
                write_model(folder, step=3)
            return translator

        monkeypatch.setattr(Translator, "load", change_while_loading)
        write_model(folder, step=2)
        registry.load()
        assert steps == [2, 3]
        assert registry.get().about["step"] == 3
