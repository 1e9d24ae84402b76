from __future__ import annotations

import ast
import errno
import os
import re
from string import Formatter
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, Field, ValidationError

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
from attendo.i18n import korean
from attendo.i18n.messages import (
    MAX_LINE_LENGTH,
    choose_language,
    translate_error,
    translate_message,
)

HANGUL = re.compile("[가-힣]")
NEUTRAL = {"{name}: {said}", "{name} = {value}: {said}", "bleu {value}"}
"""What has nothing of its own to translate."""


@pytest.mark.parametrize(
    ("given", "environment", "chosen"),
    [
        (None, {}, "en"),
        (None, {"LANG": "ko_KR.UTF-8"}, "ko"),
        (None, {"LANG": "ko_KR.UTF-8", "LC_MESSAGES": "en_GB.UTF-8"}, "en"),
        (None, {"LANG": "C", "LC_MESSAGES": "ko_KR"}, "ko"),
        (None, {"LC_MESSAGES": "ko_KR", "LC_ALL": "C.UTF-8"}, "en"),
        (None, {"LC_ALL": "", "LANG": "ko"}, "ko"),
        (None, {"LC_ALL": "C.UTF-8", "ATTENDO_LANG": "ko"}, "ko"),
        (None, {"LC_ALL": "ko_KR.UTF-8", "ATTENDO_LANG": "en"}, "en"),
        (None, {"LANG": "fr_FR.UTF-8"}, "en"),
        ("en", {"ATTENDO_LANG": "ko"}, "en"),
        ("ko", {"ATTENDO_LANG": "en"}, "ko"),
    ],
)
def test_the_option_comes_before_the_variable_and_that_before_the_locale(
    monkeypatch, given, environment, chosen
):
    for name in ("ATTENDO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert choose_language(given) == chosen


def test_a_language_that_is_none_is_refused():
    with pytest.raises(ConfigError, match="no language 'kr'") as caught:
        choose_language("kr")
    assert "did you mean 'ko'" in caught.value.hint


# --- the table and the sentences that are really said


def shape(text: str) -> str:
    """Give a sentence with its places unnamed: {} in the table, in f-strings and for %s alike."""
    return "".join(
        literal + ("" if name is None else "{}") for literal, name, _, _ in Formatter().parse(text)
    )


def said_in(tree: ast.AST) -> set[str]:
    """Collect every text in the source: constants, f-strings, and what is logged with %."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            found.add("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(re.sub(r"%(\.\d)?[sdf]", "{}", node.value).replace("%%", "%"))
    return found


def test_every_sentence_of_the_table_is_said_somewhere(repository):
    sources = [
        path
        for path in (repository / "src" / "attendo").rglob("*.py")
        if path.name != "korean.py" and path.parts[-2:] != ("plots", "phrases.py")
    ]
    said = set().union(*(said_in(ast.parse(path.read_text("utf-8"))) for path in sources))
    own = {
        key
        for key in korean.KOREAN
        if key not in korean._SYSTEM and key not in korean._VALIDATION and key not in korean._HTTP
    }

    def is_said(key: str) -> bool:
        form = shape(key)
        is_figure = form.endswith(" {}") and form.removesuffix(" {}") in said
        return form in said or f"{form}{{}}" in said or is_figure  # a listing may follow

    assert len(own) > 150
    assert sorted(key for key in own if not is_said(key)) == []


def test_every_sentence_is_korean_and_keeps_its_places():
    for english, told in korean.KOREAN.items():
        names = [
            sorted(name for _, name, _, _ in Formatter().parse(text) if name is not None)
            for text in (english, told)
        ]
        assert names[0] == names[1], english
        assert english in NEUTRAL or HANGUL.search(told), english
        assert not re.search(r"[A-Za-z]+(?: [a-z]+){3}", told), told


def test_no_sentence_is_so_bare_that_it_takes_others_for_itself():
    for english in korean.KOREAN:
        letters = re.sub(r"\{\w+\}|[^a-zA-Z]", "", english)
        assert english in NEUTRAL or len(letters) >= 3, english


def test_the_words_of_the_operating_system_are_its_own():
    real = {os.strerror(number) for number in errno.errorcode}
    assert set(korean._SYSTEM) <= real


def test_the_words_of_pydantic_are_its_own():
    class Form(BaseModel):
        whole: Annotated[int, Field(ge=1, le=9)]
        part: Annotated[float, Field(gt=0.0, lt=1.0)]
        name: Annotated[str, Field(min_length=2, max_length=3)]
        letter: Annotated[str, Field(min_length=1)]
        kind: Literal["a", "b"]
        is_on: Annotated[bool, Field(strict=True)]
        strict: Annotated[int, Field(strict=True)]
        exact: Annotated[float, Field(strict=True)]
        many: list[str]
        needed: int

    wrong = [
        {"whole": 0, "part": 0, "name": "a", "letter": "", "kind": "c", "is_on": 3, "many": 3},
        {"whole": 10, "part": 1, "name": "abcd", "letter": 5, "strict": "1", "exact": "1"},
        {"whole": "x", "part": "x"},
    ]
    met = set()
    for settings in wrong:
        with pytest.raises(ValidationError) as caught:
            Form(**settings)
        met |= {found["msg"] for found in caught.value.errors()}
    assert [one for one in met if not HANGUL.search(translate_message(one, "ko"))] == []
    forms = {re.sub(r"\d+|'a' or 'b'", "{}", one).replace(".0", "") for one in met}
    known = {shape(key).replace("'{}'", "{}") for key in korean._VALIDATION} - {"{} = {}: {}"}
    assert known == forms


# --- what is said


def test_what_is_not_known_and_what_is_english_stays_as_it_is():
    for text in ("nothing of the sort", "no lesson 99", "", "a\n  - b"):
        assert translate_message(text, "en") == text
    assert translate_message("nothing of the sort", "ko") == "nothing of the sort"
    assert translate_message("", "ko") == ""


def test_the_users_words_are_not_translated():
    assert translate_message("no model 'left'", "ko") == "'left'라는 모델이 없습니다"
    assert translate_message("kept exists", "ko") == "kept: 이미 있습니다"
    assert "{said}" in translate_message("no model '{said}'", "ko")


def test_sentences_within_sentences_and_lists_are_said():
    remedy = suggest("w", ["w_q", "w_k"])
    error = ConfigError.from_reasons(
        "lesson", [f"unknown input 'w': {remedy}", "x: 'a' is no number"]
    )
    assert translate_error(error, "ko").split("\n") == [
        "강의: 값 2개를 쓸 수 없습니다",
        "  - 모르는 입력 'w': 혹시 'w_q'인가요? 쓸 수 있는 것: w_q, w_k",
        "  - x: 'a' 대신 수를 쓰세요",
    ]
    taken = InputError("cannot listen on ::1 port 80: Address already in use", hint="what else")
    assert translate_error(taken, "ko") == (
        "::1의 포트 80: 열 수 없습니다. 이미 다른 프로그램이 쓰고 있습니다\n  해결 방법: what else"
    )


def test_an_error_in_english_is_what_it_was():
    for error in (
        AttendoError("the file is empty"),
        InputError("no lesson 99", hint="there are lessons 1, 2"),
        MissingExtraError("matplotlib", "plots"),
    ):
        assert translate_error(error, "en") == str(error)
    assert translate_error(error, "ko") == (
        "matplotlib 라이브러리가 설치되어 있지 않습니다\n"
        "  해결 방법: pip install 'attendo[plots]' 명령으로 설치하세요"
    )


def test_what_a_client_makes_endless_is_left_alone():
    for text in (
        "a: " * 600 + "b",
        "did you mean '" * 100,
        "{" * 500,
        "no lesson " + "9" * MAX_LINE_LENGTH,
    ):
        assert translate_message(text, "ko").endswith(text[-20:])
