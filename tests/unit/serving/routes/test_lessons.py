"""Lessons over HTTP."""

from __future__ import annotations

import asyncio
import base64

import pytest
from fastapi.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.serving.app import create_app
from attendo.serving.batcher import QueueFullError
from attendo.serving.config import ServeConfig
from attendo.serving.routes.lessons import MAX_WAITING, LessonExecutor

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture(scope="module")
def client(toy, tmp_path_factory):
    folders = []
    for kind, options in (("transformer", SIZES), ("rnn-seq2seq", {"d_model": 16})):
        folder = tmp_path_factory.mktemp("models") / kind
        tokenizer = toy.prepared.tokenizer
        about = {"src_lang": "ko", "tgt_lang": "en"}
        save_bundle(folder, build_model(kind, options, tokenizer), tokenizer, about=about)
        folders.append(folder)
    with TestClient(create_app(ServeConfig(models=folders, watch_seconds=0, threads=1))) as one:
        yield one


def test_the_list_is_in_the_language_that_is_asked_for(client):
    korean = client.get("/v1/lessons", params={"lang": "ko"}).json()["lessons"]
    english = client.get("/v1/lessons").json()["lessons"]
    assert len(korean) == len(english) == 15
    by_number = {one["number"]: one["title"] for one in korean}
    assert by_number[4] == "손으로 계산하는 어텐션"


def test_a_lesson_follows_what_is_changed(client):
    told = client.post("/v1/lessons/4", json={"lang": "en"}).json()
    shares = next(block for block in told["blocks"] if block.get("title") == "A")
    assert shares["values"][0] == pytest.approx([0.13613, 0.43194, 0.43194], abs=6e-6)
    changed = client.post("/v1/lessons/4", json={"inputs": {"scale": False}}).json()
    other = next(block for block in changed["blocks"] if block.get("title") == "A")
    assert other["values"][1][1] == pytest.approx(0.98201, abs=6e-6)


@pytest.mark.parametrize(
    "inputs", [{"scale": "maybe"}, {"x": [[1]]}, {"nothing": 1}, {"x": [["a"] * 4] * 3}]
)
def test_what_cannot_be_used_is_told(client, inputs):
    answer = client.post("/v1/lessons/4", json={"inputs": inputs})
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_an_unknown_lesson_question_or_language_is_told(client):
    for path, body in (
        ("/v1/lessons/99", {}),
        ("/v1/lessons/4/answer", {"question": 9, "answer": "1"}),
        ("/v1/lessons/4", {"lang": "fr"}),
        ("/v1/lessons/four", {}),
    ):
        assert client.post(path, json=body).status_code == 400


def test_answers_are_checked_and_the_reason_comes_with_the_right_one(client):
    body = {"lang": "ko", "question": 1, "answer": "4"}
    assert client.post("/v1/lessons/4/answer", json=body).json()["is_right"] is True
    wrong = client.post("/v1/lessons/4/answer", json={**body, "answer": "5"}).json()
    assert wrong == {"is_right": False, "why": None}


def test_every_lesson_shows_ones_own_model(client):
    for number in range(1, 16):
        body = {"lang": "ko", "text": "ka to mi re", "model": "transformer"}
        told = client.post(f"/v1/lessons/{number}/own", json=body)
        assert told.status_code == 200, told.text
        for block in told.json()["blocks"]:
            if block["kind"] == "drawing":
                picture = base64.b64decode(block["image"].removeprefix("data:image/png;base64,"))
                assert picture.startswith(b"\x89PNG")


def test_a_model_without_the_inside_says_so(client):
    body = {"lang": "en", "text": "ka to mi re", "model": "rnn-seq2seq"}
    for number in range(1, 16):
        told = client.post(f"/v1/lessons/{number}/own", json=body)
        assert told.status_code == 200, (number, told.text)
    told = client.post("/v1/lessons/4/own", json=body).json()["blocks"]
    assert any("does not have" in block.get("words", "") for block in told)


def test_too_many_learners_are_asked_to_come_back():
    desk = LessonExecutor()
    desk.num_waiting = MAX_WAITING
    with pytest.raises(QueueFullError):
        asyncio.run(desk.run(lambda: 1))
    desk.num_waiting = 0
    assert asyncio.run(desk.run(lambda: 1)) == 1
    assert desk.num_waiting == 0
