"""Help and errors about options in Korean."""

from __future__ import annotations

import re

import pytest

from attendo.cli import main
from attendo.cli.usage_errors import USAGE_ERRORS, VALUE_ERRORS, parse_usage_error
from attendo.core.message import Message
from attendo.i18n.messages import load_catalogue

HANGUL = re.compile("[가-힣]")


def show(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints, without frames and line breaks."""
    with pytest.raises(SystemExit):
        main.run(arguments)
    printed = capsys.readouterr()
    return " ".join(re.sub("[─╭╮╰╯│]", " ", printed.out + printed.err).split())


@pytest.fixture
def korean(monkeypatch):
    monkeypatch.setenv("ATTENDO_LANG", "ko")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.mark.usefixtures("korean")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["finish", "--thread", "1"], "--thread: 그런 옵션이 없습니다(비슷한 옵션: --threads)"),
        (["finish"], "인자 'run'이(가) 빠졌습니다."),
        (["finish", "r", "--threads", "x"], "'--threads'의 값이 잘못되었습니다: 정수여야 합니다"),
        (["finish", "r", "--threads", "0"], "'--threads'의 값이 잘못되었습니다: 1 이상이어야"),
        (["finish", "r", "--threads"], "옵션 '--threads' 뒤에 값을 써야 합니다."),
        (["finsh"], "'finsh': 그런 명령이 없습니다. 혹시 'finish'인가요?"),
    ],
)
def test_wrong_options_are_explained_in_korean(arguments, expected, capsys):
    assert expected in show(arguments, capsys)


def test_in_english_the_words_are_those_of_typer(monkeypatch, capsys):
    monkeypatch.setenv("ATTENDO_LANG", "en")
    assert "Missing argument 'run'." in show(["finish"], capsys)


@pytest.mark.usefixtures("korean")
@pytest.mark.parametrize("width", ["80", "83", "90"])
def test_bug_no_word_of_korean_help_may_be_lost_where_a_line_is_wrapped(width, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", width)
    shown = show(["train", "--help"], capsys)
    assert HANGUL.search(shown)
    assert "…" not in shown


def test_every_template_is_translated_and_found_again():
    catalogue = load_catalogue("ko")
    for template in USAGE_ERRORS:
        assert HANGUL.search(catalogue[template])
        text = template.format(name="'--x'", names="'--y'", detail="wrong")
        assert parse_usage_error(text).template == template
    for template in VALUE_ERRORS:
        parsed = parse_usage_error(f"Invalid value for '--x': {template.format(ge=1, le=1)}")
        assert parsed.values["detail"].template == template


def test_an_unknown_text_stays():
    parsed = parse_usage_error("something else")
    assert parsed == "something else"
    assert not isinstance(parsed, Message)
