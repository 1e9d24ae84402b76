"""Error responses in the language of the client."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.testclient import TestClient

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.serving.errors import ErrorResponse, preferred_language, to_error_response
from attendo.serving.scheduling.errors import DeadlineExceededError, QueueFullError

KOREAN = {"Accept-Language": "ko-KR,ko;q=0.9,en-US;q=0.8,en;q=0.7"}
HANGUL = re.compile("[가-힣]")


@pytest.mark.parametrize(
    ("header", "lang"),
    [
        ("", "en"),
        ("ko", "ko"),
        ("KO-kr", "ko"),
        ("ko-KR, ko; q=0.9, en; q=0.8", "ko"),
        ("en-US,en;q=0.9,ko;q=0.8", "en"),
        ("en;q=0.3,ko;q=0.7", "ko"),
        ("ko,en", "ko"),
        ("en,ko", "en"),
        ("fr,ko;q=0.2", "ko"),
        ("fr", "en"),
        ("ko;q=0", "en"),
        ("*", "en"),
        ("kok", "en"),
        ("ko;q=very", "en"),
        (";;,,q=1;ko", "en"),
    ],
)
def test_the_language_is_the_one_that_is_liked_best(header, lang):
    assert preferred_language({"accept-language": header}) == lang


def test_english_is_word_for_word_what_it_was():
    gathered = ConfigError.from_reasons(
        "lesson", ["x: 'a' is no number", "y: 3 is no whole number"]
    )
    for error, status, reported in (
        (InputError("no lesson 99"), 400, "no lesson 99"),
        (InputError("a", hint="b"), 400, "a; b"),
        (QueueFullError(), 503, "too many requests in the queue; try again in a moment"),
        (DeadlineExceededError(2.5), 504, "not finished within 2.5 seconds; send a smaller "
         "request"),
        (gathered, 400, "lesson: 2 settings cannot be used   - x: 'a' is no number   - y: 3 is no "
         "whole number"),
    ):  # fmt: skip
        answer = to_error_response(error)
        assert (answer.status_code, json.loads(answer.body)["error"]) == (status, reported)
    assert ErrorResponse(400, "<가>&").body == b'{"error": "\\u003c\\uac00\\u003e\\u0026"}'


@pytest.fixture
def client(make_client):
    settings = {"max_characters": 40, "max_texts": 2, "max_alternatives": 3, "runs": None}
    with make_client(**settings) as one:
        yield one


@pytest.mark.parametrize(
    ("method", "path", "body", "reported"),
    [
        ("POST", "/v1/lessons/99", {}, "99번 강의는 없습니다. 있는 강의: 0, 1, 2, "),
        ("POST", "/v1/lessons/4/answer", {"question": 9, "answer": "1"}, "4번 강의에 9번 문제는"),
        ("POST", "/v1/lessons/4", {"inputs": {"scale": 3}}, "강의: 값 1개를 쓸 수 없습니다"),
        (
            "POST",
            "/v1/lessons/4",
            {"lang": "fr"},
            "lang: 다음 가운데 하나여야 합니다: 'en' or 'ko'",
        ),
        ("POST", "/v1/translate", {"text": "가" * 41}, "글자 수 41, 최대 40"),
        ("POST", "/v1/translate", {"text": ["가"] * 3}, "텍스트 수 3, 최대 2"),
        ("POST", "/v1/translate", {"text": "가", "model": "x"}, "'x'라는 모델이 없습니다"),
        ("POST", "/v1/translate", {"text": "가", "source": "fr"}, "fr → auto 번역을 하는 모델이"),
        ("POST", "/v1/translate", {"text": "가", "txet": "나"}, "모르는 필드 'txet': 혹시 'text'"),
        (
            "POST",
            "/v1/translate",
            {"text": 5},
            "text: 문자열 하나이거나 문자열의 목록이어야 합니다",
        ),
        ("POST", "/v1/translate", {}, "text: 꼭 있어야 합니다"),
        (
            "POST",
            "/v1/lessons/4",
            {"inputs": dict.fromkeys("abcdefghijklmnopq", 1)},
            "inputs: 최대 16개입니다",
        ),
        ("POST", "/suggest", {}, "번역 제안은 받지 않습니다"),
        (
            "POST",
            "/translate",
            {"q": "가", "target": "en", "alternatives": 9},
            "다른 번역의 수 9, 최대 3",
        ),
        ("POST", "/translate", {"q": "가"}, "target: 꼭 있어야 합니다"),
        ("GET", "/v1/runs/none", None, "그런 학습이 없습니다. /v1/runs에 목록이 있습니다"),
        ("GET", "/nowhere", None, "그런 주소가 없습니다"),
        ("GET", "/download_file/none", None, "그런 파일이 없거나 보관 기간이 지났습니다"),
        ("GET", "/v1/translate", None, "이 주소에서는 쓸 수 없는 방식입니다"),
    ],
)
def test_a_rejection_is_in_korean_for_korean_readers(client, method, path, body, reported):
    answer = client.request(method, path, json=body, headers=KOREAN)
    assert answer.status_code >= 400
    assert answer.json()["error"].startswith(reported)
    assert reported in answer.text  # as letters, for people with curl
    assert answer.headers["content-language"] == "ko"
    assert int(answer.headers["content-length"]) == len(answer.content)
    english = client.request(method, path, json=body)
    assert english.status_code == answer.status_code
    assert not HANGUL.search(english.text)
    assert "content-language" not in english.headers


def test_the_page_finds_the_reason_of_each_input(client):
    body = {"inputs": {"scale": "maybe", "x": [[1]]}}
    reported = client.post("/v1/lessons/4", json=body, headers=KOREAN).json()["error"]
    head, *reasons = re.split(r"\s{2,}- ", reported)  # as the page does
    assert head == "강의: 값 2개를 쓸 수 없습니다"
    assert reasons == [
        "x: 수 4개짜리 행 3개가 필요합니다. 예: --set x='1 0 1 0; 0 2 0 2; 1 1 1 1'",
        "scale: 'maybe' 대신 true나 false를 쓰세요",
    ]


def test_texts_of_a_client_are_not_returned_as_html_in_korean_either(client):
    answer = client.post("/v1/translate", json={"text": "a", "model": "<b>&"}, headers=KOREAN)
    assert answer.json()["error"].startswith("'<b>&'라는 모델이 없습니다")
    assert b"<" not in answer.content


def test_half_a_character_is_returned_as_json_has_it():
    client = TestClient(ErrorResponse(400, message("no model '{name}'", name="\ud800")))
    assert client.get("/").content == b'{"error": "no model \'\\ud800\'"}'
    answer = client.get("/", headers=KOREAN)
    assert answer.content.decode("utf-8") == '{"error": "\'\\ud800\'라는 모델이 없습니다"}'


def test_the_guard_rejects_in_korean(make_client):
    with make_client(api_keys=("secret-key",), max_body_bytes=1024, max_file_bytes=9) as client:
        assert client.get("/metrics", headers=KOREAN).json() == {"error": "API 키가 필요합니다"}
        wrong = {**KOREAN, "Authorization": "Bearer wrong-key"}
        assert client.get("/metrics", headers=wrong).json() == {"error": "API 키가 맞지 않습니다"}
        large = client.post("/v1/translate", content=b"x" * 1025, headers=KOREAN)
        assert (large.status_code, large.json()["error"]) == (413, "요청이 1024바이트보다 큽니다")
    with make_client(requests_per_minute=1) as client:
        client.post("/v1/translate", json={"text": "a"})
        often = client.post("/v1/translate", json={"text": "a"}, headers=KOREAN)
        assert (often.status_code, often.json()["error"]) == (429, "요청이 너무 잦습니다")
        assert "Retry-After" in often.headers
