"""Models of text that are no translators behind the server: a classifier and a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from starlette.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
SETTINGS: dict[str, Any] = {
    "watch_seconds": 0, "log_requests": False, "threads": 1, "engine": "attendo",
}  # fmt: skip


@pytest.fixture
def write(toy, tmp_path) -> Callable[..., Path]:
    """Write a model folder with random weights; named after its kind."""
    tokenizer = toy.prepared.tokenizer

    def write(kind: str, **about: Any) -> Path:
        torch.manual_seed(2)
        save_bundle(tmp_path / kind, build_model(kind, SIZES, tokenizer), tokenizer, about=about)
        return tmp_path / kind

    return write


@pytest.fixture
def serve():
    """Serve folders; to be entered."""
    return lambda *folders: TestClient(
        create_app(ServeConfig(models=folders, **SETTINGS)), base_url="http://localhost"
    )


def test_a_classifier_returns_labels_and_alternatives(write, serve):
    with serve(write("encoder")) as client:
        (reported,) = client.get("/v1/models").json()["models"]
        assert (reported["task"], reported["kind"], reported["has_attention"]) == (
            "classification", "encoder", True,
        )  # fmt: skip
        option = {"text": "ka to", "n_best": 3, "confidence": True, "alignment": True}
        made = client.post("/v1/translate", json=option).json()["translations"][0]
        assert len(made["alternatives"]) == 2
        ranked = [made["score"], *(other["score"] for other in made["alternatives"])]
        assert ranked == sorted(ranked, reverse=True)
        assert made["alignment"] is None
        # it has attention, though none from the label to the source: nothing to complain of
        assert not [note for note in made["notes"] if "attention" in note]
        record = client.post("/v1/inspect", json={"text": "ka to"}).json()
        assert record["attention"]["encoder_self"] is not None
        assert record["attention"]["cross"] is None
        assert client.get("/languages").json() == []
        refused = client.post("/translate", json={"q": "ka", "source": "auto", "target": "en"})
        assert (refused.status_code, "no model for translation is loaded" in refused.text) == (
            400,
            True,
        )


def test_a_language_model_does_not_translate(write, serve):
    with serve(write("decoder", task="language")) as client:
        (reported,) = client.get("/v1/models").json()["models"]
        assert (reported["task"], reported["kind"]) == ("language", "decoder")
        for body in ({"text": "ka"}, {"text": "ka", "model": "decoder"}):
            assert client.post("/v1/translate", json=body).status_code == 400
        named = client.post("/v1/translate", json={"text": "ka", "model": "decoder"})
        printed = "the model 'decoder' is for text generation; use /v1/generate"
        assert named.json()["error"] == printed
        assert client.get("/languages").json() == []


def test_a_decoder_that_learned_pairs_translates(write, serve):
    with serve(write("decoder", src_lang="ko", tgt_lang="en")) as client:
        assert client.get("/v1/models").json()["models"][0]["task"] == "translation"
        body = {"q": "ka", "source": "ko", "target": "en"}
        assert client.post("/translate", json=body).status_code == 200


def test_a_translator_is_asked_before_a_classifier(write, serve):
    with serve(write("encoder"), write("transformer")) as client:
        assert client.post("/v1/translate", json={"text": "ka"}).json()["model"] == "transformer"
        named = {"text": "ka", "model": "encoder"}
        assert client.post("/v1/translate", json=named).json()["model"] == "encoder"
        reported = client.get("/v1/models").json()["models"]
        assert [one["default"] for one in reported] == [True, True]  # each of its own task


def test_a_classifier_does_not_answer_for_languages_that_no_translator_has(write, serve):
    """Found in review: a translation from German to French was a label."""
    body = {"text": "ka", "source": "de", "target": "fr"}
    with serve(write("encoder"), write("transformer", src_lang="ko", tgt_lang="en")) as client:
        answer = client.post("/v1/translate", json=body)
        assert answer.status_code == 400
        assert "no model translates de to fr" in answer.json()["error"]
    with serve(write("encoder")) as client:  # there is nothing else that could be meant
        assert client.post("/v1/translate", json=body).status_code == 200
