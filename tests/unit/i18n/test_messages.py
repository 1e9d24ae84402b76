from __future__ import annotations

import ast
import errno
import http
import logging
import os
import re
from string import Formatter
from typing import Annotated, Literal

import polib
import pytest
from pydantic import BaseModel, Field, ValidationError
from pydantic_core import PydanticKnownError

from attendo.cli.localization import localized_warnings
from attendo.core.config import validation_message
from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError, suggest
from attendo.core.logs import get_logger
from attendo.core.message import join_messages, message
from attendo.i18n.messages import (
    LOCALE_DIR,
    choose_language,
    translate_error,
    translate_message,
)
from attendo.inspection.plots.registry import PLOTS

HANGUL = re.compile("[가-힣]")
CATALOGUE = polib.pofile(str(LOCALE_DIR / "ko.po"))
NEUTRAL = {
    "{name}: {detail}",
    "{name} = {value}: {detail}",
    "{path}: {size:.1f} MB; {detail}",
    "bleu",
}
"""Templates without words of their own."""
TYPER_TEXTS = {
    "Show this message and exit.",
    "Install completion for the current shell.",
    "Show completion for the current shell, to copy it or customize the installation.",
}
OPTIONAL_FIELDS = {"expected_plural", "field_type", "actual_length"}
"""Values of pydantic's templates that a translation may omit."""


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
def test_option_precedes_variable_precedes_locale(monkeypatch, given, environment, chosen):
    for name in ("ATTENDO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert choose_language(given) == chosen


def test_unknown_language_is_rejected():
    with pytest.raises(ConfigError, match="no language 'kr'") as caught:
        choose_language("kr")
    assert "did you mean 'ko'" in caught.value.hint


# --- the catalogue


def field_names(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name is not None}


def source_literals(repository) -> set[str]:
    """Return every string literal of the package."""
    literals: set[str] = set()
    for path in (repository / "src" / "attendo").rglob("*.py"):
        tree = ast.parse(path.read_text("utf-8"))
        literals |= {
            node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
    return literals


def is_pydantic_template(text: str) -> bool:
    from pydantic_core._pydantic_core import list_all_errors

    return any(text == error["message_template_python"] for error in list_all_errors())


def test_every_msgid_is_a_literal_of_the_source_or_of_a_library(repository):
    literals = source_literals(repository)
    system = {os.strerror(number) for number in errno.errorcode}
    statuses = {status.phrase for status in http.HTTPStatus}
    plots = {plot.about for plot in PLOTS.values()}  # the first lines of docstrings
    unused = [
        entry.msgid
        for entry in CATALOGUE
        if entry.msgid not in literals | system | statuses | plots | TYPER_TEXTS
        and not is_pydantic_template(entry.msgid)
    ]
    assert len(CATALOGUE) > 300
    assert unused == []


def test_no_msgid_occurs_twice():
    msgids = [entry.msgid for entry in CATALOGUE]
    assert len(msgids) == len(set(msgids))


def test_translations_have_the_fields_of_their_templates():
    for entry in CATALOGUE:
        english, korean = field_names(entry.msgid), field_names(entry.msgstr)
        assert korean <= english, entry.msgid
        assert english - korean <= OPTIONAL_FIELDS, entry.msgid


def test_translations_are_korean():
    for entry in CATALOGUE:
        assert entry.msgid in NEUTRAL or HANGUL.search(entry.msgstr), entry.msgid
        unquoted = re.sub(r"'[^']*'", "", entry.msgstr)
        assert not re.search(r"[A-Za-z]+(?: [a-z]+){3}", unquoted), entry.msgstr


def test_every_help_text_has_a_translation(repository):
    helps: set[str] = set()
    for path in (repository / "src" / "attendo" / "cli").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.keyword) and node.arg == "help":
                helps |= {node.value.value} if isinstance(node.value, ast.Constant) else set()
    translated = {entry.msgid for entry in CATALOGUE}
    assert len(helps) > 100
    assert sorted(helps - translated) == []


# --- messages


def test_english_and_unknown_texts_stay():
    for text in ("unknown text", message("no lesson {number}", number=99), "", "a\n  - b"):
        assert translate_message(text, "en") == text
    assert translate_message("unknown text", "ko") == "unknown text"
    assert translate_message(message("unknown {what}", what=1), "ko") == "unknown 1"


def test_words_of_the_user_are_not_translated():
    assert translate_message(message("no model '{name}'", name="left"), "ko") == (
        "'left'라는 모델이 없습니다"
    )
    assert translate_message(message("{path} exists", path="kept"), "ko") == "kept: 이미 있습니다"
    assert "{detail}" in translate_message(message("no model '{name}'", name="{detail}"), "ko")


def test_nested_messages_and_lists():
    hint = suggest("w", ["w_q", "w_k"])
    reasons = [
        message("unknown input '{name}': {detail}", name="w", detail=hint),
        message("{name} is empty", name=message("text")),
    ]
    error = ConfigError.from_reasons("lesson", reasons)
    assert translate_error(error, "ko").split("\n") == [
        "강의: 값 2개를 쓸 수 없습니다",
        "  - 모르는 입력 'w': 혹시 'w_q'인가요? 쓸 수 있는 것: w_q, w_k",
        "  - 문장: 비어 있습니다",
    ]
    joined = join_messages("; ", reasons)
    assert translate_message(joined, "ko").startswith("모르는 입력 'w': 혹시 'w_q'인가요? ")


def test_reasons_of_the_operating_system_are_translated():
    reason = message(
        "cannot listen on {host} port {port}: {detail}",
        host="::1",
        port=80,
        detail=os.strerror(errno.EADDRINUSE),
    )
    assert translate_error(InputError(reason, hint="other"), "ko") == (
        "::1의 포트 80: 열 수 없습니다. 이미 다른 프로그램이 쓰고 있습니다\n  해결 방법: other"
    )


def test_padding_counts_terminal_cells():
    row = message("{reason:<12}|{count:>3}", reason=message("kept"), count=7)
    assert str(row) == "kept        |  7"
    assert translate_message(row, "ko") == "남김        |  7"


def test_errors_in_english_are_unchanged():
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


def test_warnings_are_translated_by_template(capsys):
    logger = get_logger("attendo.test")
    warning = message("source: {count} sentences at once; translate takes them one by one", count=2)
    handlers = list(logging.getLogger("attendo").handlers)  # earlier tests may have left some
    with localized_warnings("ko"):
        logger.warning(warning)
        logger.warning("%d of %d", 1, 2)
    assert capsys.readouterr().err == (
        "원문: 2문장을 한꺼번에 봅니다. attendo translate는 한 문장씩 번역합니다\n1 of 2\n"
    )
    assert logging.getLogger("attendo").handlers == handlers


# --- pydantic


class Form(BaseModel):
    whole: Annotated[int, Field(ge=1, le=9)]
    part: Annotated[float, Field(gt=0.0, lt=1.0)]
    name: Annotated[str, Field(min_length=2, max_length=3)]
    letter: Annotated[str, Field(min_length=1)]
    kind: Literal["a", "b"]
    is_on: Annotated[bool, Field(strict=True)]
    strict: Annotated[int, Field(strict=True)]
    exact: Annotated[float, Field(strict=True)]
    many: Annotated[list[str], Field(min_length=1, max_length=2)]
    needed: int


@pytest.mark.parametrize(
    "settings",
    [
        {"whole": 0, "part": 0, "name": "a", "letter": "", "kind": "c", "is_on": 3, "many": 3},
        {"whole": 10, "part": 1, "name": "abcd", "letter": 5, "strict": "1", "exact": "1"},
        {"whole": "x", "part": "x", "many": []},
        {"many": ["a", "b", "c"]},
    ],
)
def test_validation_messages_keep_the_template(settings):
    with pytest.raises(ValidationError) as caught:
        Form(**settings)
    for details in caught.value.errors():
        text = validation_message(details)
        assert text == details["msg"]
        assert HANGUL.search(translate_message(text, "ko")), text


def test_validation_message_of_an_unknown_type_is_its_text():
    details = {"type": "custom", "loc": (), "msg": "braces {x} stay", "input": 1, "ctx": {"x": "{"}}
    assert validation_message(details) == "braces {x} stay"
    known = PydanticKnownError("greater_than", {"gt": 5})
    details = {"type": "greater_than", "loc": (), "msg": "other", "input": 1, "ctx": {"gt": 5}}
    assert known.message() != validation_message(details) == "other"
