"""Texts out of a language model over HTTP: what it is asked, and what it refuses."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.serving.routes import generate

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
ROUTE = "/v1/generate"


@pytest.fixture
def language_folder(toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    model = build_model("decoder", SIZES, tokenizer)
    save_bundle(tmp_path / "words", model, tokenizer, about={"task": "language"})
    return tmp_path / "words"


@pytest.fixture
def open_client(language_folder):
    """Open a client of real models; other folders may come before the language model's."""

    def open_client(*before, **settings) -> TestClient:
        config = ServeConfig(
            models=[*before, language_folder], watch_seconds=0, threads=1, **settings
        )
        app = create_app(config)
        if ROUTE not in app.openapi()["paths"]:
            app.include_router(generate.router)
        return TestClient(app, base_url="http://localhost")

    return open_client


def test_a_prompt_is_continued(open_client):
    body = {"prompt": "ka to", "count": 4, "max_tokens": 5, "seed": 3}
    with open_client() as client:
        first = client.post(ROUTE, json=body)
        again = client.post(ROUTE, json=body)
        other = client.post(ROUTE, json={**body, "seed": 4})
    assert first.status_code == 200
    reported = first.json()
    assert reported["model"] == "words"
    assert len(reported["texts"]) == 4
    assert all(text.startswith("ka to") and len(text.split()) <= 7 for text in reported["texts"])
    assert again.json()["texts"] == reported["texts"] != other.json()["texts"]


def test_nothing_given_begins_a_text_and_greedy_gives_one(open_client):
    with open_client() as client:
        assert len(client.post(ROUTE, json={}).json()["texts"]) == 1
        assert len(client.post(ROUTE, json={"greedy": True, "count": 3}).json()["texts"]) == 1


def test_a_translator_next_to_it_is_a_different_model(open_client, write_model, tmp_path):
    folder = write_model(tmp_path / "ko-en", src_lang="ko", tgt_lang="en")
    with open_client(folder) as client:
        assert client.post(ROUTE, json={"max_tokens": 2}).json()["model"] == "words"
        wrong = client.post(ROUTE, json={"model": folder.name})
        other = client.post("/v1/translate", json={"text": "ka", "model": "words"})
    assert wrong.status_code == other.status_code == 400
    assert "/v1/translate" in wrong.json()["error"]
    assert "/v1/generate" in other.json()["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"count": 0}, "count"),
        ({"count": 12}, "count: 12, at most 11 allowed"),
        ({"max_tokens": 513}, "max_tokens"),
        ({"temperature": 0}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"seed": -1}, "seed"),
        ({"prompt": "x" * 10_001}, "prompt"),
        ({"prompt": "ka " * 2000}, "characters: 6000, at most 5000 allowed"),
        ({"prompt": "unheard"}, "its vocabulary lacks unheard"),
        ({"prompt": 7}, "prompt"),
        ({"promt": "ka"}, "did you mean 'prompt'"),
        ({"model": "nobody"}, "no model 'nobody'"),
    ],
)
def test_what_cannot_be_done_is_rejected_by_name(open_client, body, words):
    with open_client() as client:
        answer = client.post(ROUTE, json=body)
    assert answer.status_code == (413 if words.startswith("characters") else 400)
    assert words in answer.json()["error"]


def test_halves_of_characters_do_no_harm(open_client):
    with open_client() as client:
        answer = client.post(
            ROUTE, content=b'{"prompt": "\\ud800"}', headers={"Content-Type": "application/json"}
        )
    assert answer.status_code == 400
    assert "'\ufffd'" in answer.json()["error"]  # the vocabulary of this model lacks it
