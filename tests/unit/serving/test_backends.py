"""CTranslate2 decodes for a server; what it cannot do our own decoder does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from fastapi.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.core.errors import ConfigError
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.service import Service
from attendo.translator import Translator
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TEXT = "ka to mi re"
ENGINES = {"attendo": PyTorchBackend, "ctranslate2": CTranslate2Backend}
SETTINGS = {
    "watch_seconds": 0,
    "threads": 1,
    "precision": "float32",
    "log_requests": False,
    "retry": False,
}


@pytest.fixture
def folder(write_model, tmp_path) -> Path:
    return write_model(tmp_path / "toy", src_lang="ko", tgt_lang="en", max_src_tokens=20)


@pytest.fixture
def own(folder) -> Translator:
    return Translator.load(folder, device="cpu")


@pytest.fixture
def client(folder) -> Iterator[TestClient]:
    config = ServeConfig(models=[folder], device="cpu", **SETTINGS)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        yield client


def get_served(client):
    return client.app.state.service.registry.get()


def test_on_a_cpu_it_is_the_default(client, own):
    assert get_served(client).engine == "ctranslate2"
    reported = client.post("/v1/translate", json={"text": TEXT, "n_best": 2}).json()[
        "translations"
    ][0]
    made = own.translate([TEXT], n_best=2)[0]
    assert reported["text"] == made
    assert reported["alternatives"][0]["text"] == made.alternatives[0]
    assert client.post("/translate", json={"q": TEXT, "source": "ko", "target": "en"}).json() == {
        "translatedText": made
    }


def test_the_list_of_models_has_the_memory_of_both_decoders(client, own):
    (reported,) = client.get("/v1/models").json()["models"]
    assert reported["kind"] == "transformer"
    assert reported["has_attention"] is True
    assert reported["num_parameters"] == own.model.num_parameters()
    assert reported["memory_bytes"] > own.backend.num_bytes >= 4 * reported["num_parameters"]


@pytest.mark.parametrize(
    "more",
    [
        {"required": ["KA"]},
        {"forbidden": ["TO"]},
        {"glossary": {"ka": "TO"}},
        {"do_sample": True, "seed": 3},
        {"do_sample": True},
        {"alpha": 1.5},
    ],
    ids=str,
)
def test_what_it_cannot_do_the_native_decoder_does(client, own, more):
    answer = client.post("/v1/translate", json={"text": TEXT, **more})
    assert answer.status_code == 200, answer.text
    assert answer.json()["translations"][0]["text"] == own.translate([TEXT], **more)[0]


def test_a_prefix_over_several_lines(client, own):
    for more in ({}, {"required": ["LU"]}):
        body = {"text": "ka to\nmi re", "prefix": "KA\nMI", **more}
        answer = client.post("/v1/translate", json=body)
        assert answer.status_code == 200, answer.text
        first, second = answer.json()["translations"][0]["text"].split("\n")
        assert (first[:2], second[:2]) == ("KA", "MI")


def test_everything_else_equals_the_native_engine(client, folder):
    body = {"text": TEXT, "prefix": "KA TO", "beam_size": 1, "confidence": True,
            "alignment": True}  # fmt: skip
    config = ServeConfig(models=[folder], device="cpu", **SETTINGS, engine="attendo")
    with TestClient(create_app(config), base_url="http://localhost") as other:
        reported, ours = (
            one.post("/v1/translate", json=body).json()["translations"][0]
            for one in (client, other)
        )
    assert len(reported["alignment"]["weights"]) == len(reported["words"]) >= 2
    for key in ("score", "log_prob"):  # what is never said is shared out
        assert 0.5 < reported.pop(key) / ours.pop(key) <= 1.0
    assert reported == ours


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/stream", {"text": TEXT}),
        ("/v1/alternatives", {"text": TEXT}),
        ("/v1/inspect", {"text": TEXT, "ablation": False, "attribution": False}),
        ("/v1/score", {"pairs": [{"source_text": TEXT, "target_text": "KA"}]}),
    ],
)
def test_routes_of_the_inspection_use_the_native_model(client, path, body):
    answer = client.post(path, json=body)
    assert answer.status_code == 200, answer.text


def test_another_engine_is_chosen_by_name(folder):
    config = ServeConfig(models=[folder], engine="attendo", **SETTINGS)
    service = Service(config)
    service.load()
    assert service.registry.get().engine == "attendo"
    served = service.registry.get()
    assert served.native is served.translator is served.translator_for({"required": ["KA"]})
    with pytest.raises(ConfigError, match="engine"):
        ServeConfig(models=[folder], engine="torch")


def test_a_model_that_it_cannot_run_is_served_as_before(folder, toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    blind = build_model("rnn-seq2seq", {"d_model": 16}, tokenizer)
    save_bundle(tmp_path / "rnn", blind, tokenizer)
    registry = ModelRegistry([folder, tmp_path / "rnn"], device="cpu", engine="auto")
    registry.load()
    engines = {served.name: served.engine for served in registry.models}
    assert engines == {"toy": "ctranslate2", "rnn": "attendo"}
    with pytest.raises(ConfigError, match="rnn-seq2seq"):
        ModelRegistry([tmp_path / "rnn"], device="cpu", engine="ctranslate2").load()


def test_texts_requested_together_return_together(folder, own):
    """Batches by CTranslate2 give everybody their own."""

    async def ask() -> list[str]:
        service = Service(ServeConfig(models=[folder], device="cpu", batch_wait_ms=50, **SETTINGS))
        await service.start()
        try:
            texts = ["ka to", "mi", "re so lu"]
            made = await asyncio.gather(*(service.translate("toy", [one]) for one in texts))
            return [str(one) for (one,) in made]
        finally:
            await service.stop()

    assert asyncio.run(ask()) == [str(one) for one in own.translate(["ka to", "mi", "re so lu"])]


@pytest.mark.parametrize("engine", ["attendo", "ctranslate2"])
def test_it_is_warm_before_anybody_asks(folder, monkeypatch, engine):
    warmed = []
    monkeypatch.setattr(ENGINES[engine], "warm_up", lambda own: warmed.append(own.name))
    registry = ModelRegistry([folder], device="cpu", engine=engine)
    registry.load()
    assert warmed == [engine]
