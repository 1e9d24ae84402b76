from __future__ import annotations

import pytest

from attendo.cli.localization import choose_language
from attendo.cli.main import run
from attendo.core.errors import ConfigError


def attendo(capsys, *arguments):
    with pytest.raises(SystemExit) as left:
        run([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return left.value.code or 0, printed.out, printed.err


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Work where no quickstart has been."""
    monkeypatch.chdir(tmp_path)


def test_the_list_speaks_both_languages(capsys):
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


def test_an_input_is_changed_and_a_wrong_one_is_refused(capsys):
    _, shown, _ = attendo(capsys, "lessons", 4, "--lang", "en", "--set", "scale=false")
    assert "0.98201" in shown
    code, _, errors = attendo(capsys, "lessons", 4, "--set", "scale=maybe", "--set", "w=1")
    assert code
    assert "neither true nor false" in errors
    assert "unknown input 'w'" in errors


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


def test_unknown_lessons_and_languages_are_told(capsys):
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
