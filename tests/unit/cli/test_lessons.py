from __future__ import annotations

import sys

import pytest

from attendo.cli.localization import choose_language
from attendo.cli.main import run
from attendo.core.errors import ConfigError
from attendo.lessons.contents import load_lesson


def attendo(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return left.value.code or 0, printed.out, printed.err


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work where no quickstart has been."""
    monkeypatch.chdir(tmp_path)


def test_the_list_is_printed_in_both_languages(capsys):
    code, korean, _ = attendo(capsys, "lessons", "--lang", "ko")
    assert code == 0
    assert "손으로 계산하는 어텐션" in korean
    assert "Attention by hand" in attendo(capsys, "lessons", "--lang", "en")[1]


def test_a_lesson_shows_its_numbers_and_what_can_be_changed(capsys):
    code, shown, _ = attendo(capsys, "lessons", 4, "--lang", "ko")
    assert code == 0
    for number in ("0.13613", "0.90884", "0.23785", "1.8639", "7.8141"):
        assert number in shown
    assert "w_q" in shown
    assert "attendo quickstart" in shown


def test_an_input_is_changed_and_a_wrong_one_is_rejected(capsys):
    _, shown, _ = attendo(capsys, "lessons", 4, "--lang", "en", "--set", "scale=false")
    assert "0.98201" in shown
    code, _, errors = attendo(capsys, "lessons", 4, "--set", "scale=maybe", "--set", "w=1")
    assert code
    assert "neither true nor false" in errors
    assert "unknown input 'w'" in errors


def test_a_matrix_is_typed_row_by_row_and_its_form_is_named(capsys):
    code, shown, _ = attendo(
        capsys, "lessons", 4, "--lang", "en", "--set", "x=1 0 1 0; 0 2 0 2; 3 3 3 3"
    )
    assert code == 0
    assert "36" in shown
    code, _, errors = attendo(capsys, "lessons", 4, "--lang", "en", "--set", "x=1 2")
    assert code
    assert "--set x='1 0 1 0; 0 2 0 2; 1 1 1 1'" in errors


def test_pictures_without_a_model_or_matplotlib_are_an_error(capsys, tmp_path, monkeypatch):
    pictures = ("lessons", 4, "--lang", "en", "--pictures", tmp_path / "pictures")
    code, _, errors = attendo(capsys, *pictures)
    assert code
    assert "attendo quickstart" in errors
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    code, shown, errors = attendo(capsys, *pictures)
    assert code
    assert "matplotlib is not installed" in errors
    assert "attendo[plots]" in errors
    assert not shown
    assert not (tmp_path / "pictures").exists()


def test_the_terms_of_one_lesson_or_of_all_are_shown(capsys):
    _, of_one, _ = attendo(capsys, "lessons", 4, "--lang", "en", "--glossary")
    _, of_all, _ = attendo(capsys, "lessons", "--lang", "en", "--glossary")
    assert "self-attention" in of_one
    assert "dropout" not in of_one
    assert "dropout" in of_all
    code, _, errors = attendo(capsys, "lessons", 99, "--glossary")
    assert code
    assert "no lesson 99" in errors


def test_answers_are_checked_and_shown_when_asked_for(capsys):
    _, shown, _ = attendo(capsys, "lessons", 4, "--lang", "en", "--answer", "1=4")
    assert "1) right." in shown
    _, shown, _ = attendo(capsys, "lessons", 4, "--lang", "ko", "--answer", "1=5")
    assert "아직 아닙니다" in shown
    assert "Multiply row" not in attendo(capsys, "lessons", 4, "--lang", "en")[1]
    assert "Multiply row" in attendo(capsys, "lessons", 4, "--lang", "en", "--answers")[1]
    code, _, errors = attendo(capsys, "lessons", 4, "--answer", "one=4")
    assert code
    assert "does not name a question" in errors


def test_hints_get_clearer_with_every_wrong_answer(capsys):
    vague, clear = (hint.en for hint in load_lesson(4).questions[0].hints)
    wrong = ("--answer", "1=5")
    _, shown, _ = attendo(capsys, "lessons", 4, "--lang", "en", *wrong)
    assert vague in shown
    assert clear not in shown
    assert clear in attendo(capsys, "lessons", 4, "--lang", "en", *wrong, *wrong)[1]
    _, shown, _ = attendo(capsys, "lessons", 4, "--lang", "en", "--hints")
    assert vague in shown
    assert clear in shown


def test_unknown_lessons_and_languages_are_reported(capsys):
    code, _, errors = attendo(capsys, "lessons", 99)
    assert code
    assert "no lesson 99" in errors
    with pytest.raises(ConfigError, match="no language 'fr'"):
        choose_language("fr")


def test_the_language_is_the_systems(monkeypatch):
    for name in ("ATTENDO_LANG", "LC_ALL", "LC_MESSAGES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "ko_KR.UTF-8")
    assert choose_language(None) == "ko"
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    assert choose_language(None) == "en"


def test_the_track_is_begun_and_helps(capsys, tmp_path):
    code, shown, _ = attendo(capsys, "lessons", "build", tmp_path / "mine", "--lang", "en")
    assert code == 0
    assert "step 1" in shown
    assert (tmp_path / "mine" / "my_transformer.py").exists()
    assert (tmp_path / "mine" / "README.md").exists()
    _, shown, _ = attendo(capsys, "lessons", "build", tmp_path / "mine", "--hint", "--lang", "ko")
    assert "1단계의 힌트" in shown
    _, shown, _ = attendo(capsys, "lessons", "build", tmp_path / "mine", "--solution")
    assert "weights @ value, weights" in shown


def test_the_track_needs_a_folder_and_a_lesson_takes_none(capsys, tmp_path):
    for arguments, reason in (
        (("build",), "no folder"),
        (("4", tmp_path), "belong to"),
        (("4", "--hint"), "belong to"),
        (("four",), "neither a lesson number"),
    ):
        code, _, errors = attendo(capsys, "lessons", *arguments, "--lang", "en")
        assert code
        assert reason in errors
