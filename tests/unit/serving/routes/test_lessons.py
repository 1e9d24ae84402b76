"""Lessons over HTTP."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.lessons.contents import NUMBERS
from attendo.lessons.diagrams.machine import STAGES
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture(autouse=True)
def _coarse_pixels(monkeypatch) -> None:
    """Draw fewer pixels: nobody looks at them here."""
    monkeypatch.setattr("attendo.plotting.style.DPI", 20)


@pytest.fixture(scope="module")
def client(toy, tmp_path_factory):
    folders = []
    for kind, options in (("transformer", SIZES), ("rnn-seq2seq", {"d_model": 16})):
        folder = tmp_path_factory.mktemp("models") / kind
        tokenizer = toy.prepared.tokenizer
        about = {"src_lang": "ko", "tgt_lang": "en"}
        save_bundle(folder, build_model(kind, options, tokenizer), tokenizer, about=about)
        folders.append(folder)
    with TestClient(
        create_app(ServeConfig(models=folders, watch_seconds=0, threads=1)),
        base_url="http://localhost",
    ) as one:
        yield one


def test_the_list_is_in_the_language_that_is_asked_for(client):
    korean = client.get("/v1/lessons", params={"lang": "ko"}).json()["lessons"]
    english = client.get("/v1/lessons").json()["lessons"]
    assert len(korean) == len(english) == len(NUMBERS)
    by_number = {one["number"]: one["title"] for one in korean}
    assert by_number[4] == "손으로 계산하는 어텐션"


def test_a_lesson_follows_what_is_changed(client):
    reported = client.post("/v1/lessons/4", json={"lang": "en"}).json()
    shares = next(block for block in reported["blocks"] if block.get("title") == "A")
    assert shares["values"][0] == pytest.approx([0.13613, 0.43194, 0.43194], abs=6e-6)
    changed = client.post("/v1/lessons/4", json={"inputs": {"scale": False}}).json()
    other = next(block for block in changed["blocks"] if block.get("title") == "A")
    assert other["values"][1][1] == pytest.approx(0.98201, abs=6e-6)


@pytest.mark.parametrize(
    "inputs", [{"scale": "maybe"}, {"x": [[1]]}, {"nothing": 1}, {"x": [["a"] * 4] * 3}]
)
def test_what_cannot_be_used_is_reported(client, inputs):
    answer = client.post("/v1/lessons/4", json={"inputs": inputs})
    assert answer.status_code == 400
    assert "error" in answer.json()


def test_an_unknown_lesson_question_or_language_is_reported(client):
    for path, body in (
        ("/v1/lessons/99", {}),
        ("/v1/lessons/4/answer", {"question": 9, "answer": "1"}),
        ("/v1/lessons/4", {"lang": "fr"}),
        ("/v1/lessons/four", {}),
    ):
        status = 404 if path.endswith("99") else 400
        assert client.post(path, json=body).status_code == status


def test_answers_are_checked_and_the_reason_comes_with_the_right_one(client):
    body = {"lang": "ko", "question": 1, "answer": "4"}
    assert client.post("/v1/lessons/4/answer", json=body).json()["is_right"] is True
    wrong = client.post("/v1/lessons/4/answer", json={**body, "answer": "5"}).json()
    hints = wrong.pop("hints")
    assert len(hints) == 2
    assert wrong == {"is_right": False, "why": None, "hint": "lower", "answer": None}
    in_words = client.post("/v1/lessons/4/answer", json={**body, "answer": "four"}).json()
    assert in_words["is_right"] is True
    word = client.post("/v1/lessons/4/answer", json={**body, "answer": "many"}).json()
    assert word["hint"] == "notNumber"
    revealed = client.post(
        "/v1/lessons/4/answer", json={**body, "answer": "3", "reveal": True}
    ).json()
    assert (revealed["is_right"], revealed["hint"], revealed["answer"]) == (False, "higher", "4")
    assert revealed["why"]


def test_every_lesson_shows_ones_own_model(client):
    for number in NUMBERS[1:]:
        body = {"lang": "ko", "text": "ka to mi re", "model": "transformer"}
        reported = client.post(f"/v1/lessons/{number}/own", json=body)
        assert reported.status_code == 200, reported.text
        found = reported.json()
        drawings = [block for block in found["blocks"] if block["kind"] == "model_plot"]
        panels = [one for each in drawings for row in each["figure"]["rows"] for one in row]
        assert all(each["figure"]["title"] for each in drawings)
        has_views = any(panel["kind"] == "record" for panel in panels)
        assert (found["record"] is not None) == has_views


def test_a_model_without_activations_is_an_error(client):
    body = {"lang": "en", "text": "ka to mi re", "model": "rnn-seq2seq"}
    for number in NUMBERS[1:]:
        reported = client.post(f"/v1/lessons/{number}/own", json=body)
        assert reported.status_code == 200, (number, reported.text)
    reported = client.post("/v1/lessons/4/own", json=body).json()["blocks"]
    assert any("not a Transformer" in block.get("words", "") for block in reported)


@pytest.fixture(scope="module")
def language_folder(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("language") / "words"
    tokenizer = toy.prepared.tokenizer
    save_bundle(
        folder, build_model("decoder", SIZES, tokenizer), tokenizer, about={"task": "language"}
    )
    return folder


@pytest.mark.parametrize("has_translator", [True, False])
def test_a_language_model_of_the_server_continues_a_text(
    has_translator, language_folder, toy, tmp_path
):
    folders = [language_folder]
    if has_translator:
        tokenizer = toy.prepared.tokenizer
        save_bundle(tmp_path / "first", build_model("transformer", SIZES, tokenizer), tokenizer)
        folders.insert(0, tmp_path / "first")
    app = create_app(ServeConfig(models=folders, watch_seconds=0, threads=1))
    with TestClient(app, base_url="http://localhost") as client:
        found = client.post("/v1/lessons/19/own", json={"text": "ka to"}).json()
        named = client.post("/v1/lessons/19/own", json={"text": "ka to", "model": "words"}).json()
    assert found["model"] == ("first" if has_translator else "words")
    assert len(found["blocks"][-1]["rows"]) == 3
    assert any(block["kind"] == "model_plot" for block in found["blocks"]) is has_translator
    assert named["model"] == "words"
    assert "ka to" in named["blocks"][0]["words"]


@pytest.mark.parametrize("body", [{"example": True}, {"model": "transformer", "text": "ka to mi"}])
def test_the_drawing_of_the_machine_gets_the_numbers_of_every_part(client, body):
    found = client.post("/v1/lessons/machine", json=body).json()
    assert found["model"] == body.get("model")
    drawn = {stage.name for stage in STAGES} - {"linear", "softmax", "search"}
    assert set(found["stages"]) == drawn
    for name, matrices in found["stages"].items():
        is_source = name.startswith(("src", "encoder"))
        rows = len(found["src"] if is_source else found["tgt"])
        assert {one["num_rows"] for one in matrices} == {rows}
    for kind, columns in (("encoder_self", "src"), ("decoder_self", "tgt"), ("cross", "src")):
        assert found["attention"][kind]["num_columns"] == len(found[columns])
    assert [one["top"][one["chosen"]]["word"] for one in found["steps"]] == found["tgt"]


def test_a_model_or_a_layer_that_cannot_be_drawn_is_rejected(client):
    for body in ({"model": "rnn-seq2seq"}, {"model": "transformer", "layer": 2}):
        assert client.post("/v1/lessons/machine", json=body).status_code == 400
    assert client.post("/v1/lessons/machine", json={"layer": 0}).status_code == 400
