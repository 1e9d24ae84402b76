"""`attendo generate` and `attendo fill` read pipes; the wrong verb is named."""

from __future__ import annotations

import io
import json

import pytest

from attendo.cli import inputs
from attendo.cli.main import run
from attendo.core.errors import InputError
from attendo.tasks.language_model.generator import TextGenerator
from attendo.tasks.masked_lm.fill_mask import FilledText, MaskFiller, TokenGuess
from attendo.translator import Translator


class Pipe:
    """A standard input of bytes."""

    def __init__(self, content: bytes, *, is_terminal: bool = False) -> None:
        self.buffer, self.is_terminal = io.BytesIO(content), is_terminal

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    def isatty(self) -> bool:
        return self.is_terminal


class Echo:
    """A language model that repeats its prompt, and a filler that knows one word."""

    def generate(self, prompt: str = "", **_options) -> list[str]:
        return [f"<{prompt}>"]

    def fill(self, text: str, *, top: int) -> FilledText:
        if "___" not in text:
            raise InputError("no gap", hint="write ___")
        return FilledText(text.replace("___", "WORD"), [[TokenGuess("WORD", 0.5)] * top])


@pytest.fixture
def attendo(monkeypatch, capsys):
    monkeypatch.setattr(inputs, "check_models", lambda *_: None)
    for kind in (TextGenerator, MaskFiller):
        monkeypatch.setattr(kind, "load", lambda *_, **__: Echo())

    def call(*words: object, piped: bytes = b"", is_terminal: bool = False):
        monkeypatch.setattr("sys.stdin", Pipe(piped, is_terminal=is_terminal))
        with pytest.raises(SystemExit) as ended:
            run([*map(str, words)])
        shown = capsys.readouterr()
        return shown.out.splitlines(), shown.err, int(ended.value.code or 0)

    return call


def test_prompts_of_a_pipe(attendo):
    assert attendo("generate", "lm", piped=b"I\nYou\n") == (["<I>", "<You>"], "", 0)
    assert attendo("generate", "lm", "He", piped=b"I\n")[0] == ["<He>"]
    assert attendo("generate", "lm", is_terminal=True)[0] == ["<>"]
    assert attendo("generate", "lm", piped=b"")[0] == ["<>"]


def test_gaps_of_a_pipe(attendo):
    lines, _, code = attendo("fill", "lm", "--top", 1, piped="나는 ___\n___\n".encode())
    assert (lines[0], lines[2], code) == ("나는 WORD", "WORD", 0)


def test_a_text_without_a_gap_does_not_stop_the_others(attendo):
    lines, errors, code = attendo("fill", "lm", "a ___", "nothing", "___ b", "--json")
    reported = [json.loads(line) for line in lines]
    assert [one["text"] for one in reported] == ["a WORD", "nothing", "WORD b"]
    assert [len(one["gaps"]) for one in reported] == [1, 0, 1]
    assert "text 2: no gap" in errors
    assert "write ___" in errors
    assert code == 1


def test_translating_with_a_masked_language_model_names_the_verb(attendo, uppercaser, monkeypatch):
    monkeypatch.setattr(Translator, "load", lambda *_, **__: uppercaser)
    monkeypatch.setattr(uppercaser, "about", {"task": "mask"})
    lines, errors, code = attendo("translate", "masked", "I ___ it")
    assert (lines, code) == ([], 2)
    assert "attendo fill" in errors
