"""A model whose folder is deleted or damaged goes on, on every route, as before."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from attendo.core.errors import AttendoError, InputError
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TEXT = "ka to mi re"
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("/translate", {"q": TEXT, "source": "ko", "target": "en"}),
    ("/v1/translate", {"text": TEXT}),
    ("/v1/translate", {"text": TEXT, "beam_size": 1}),
    ("/v1/translate", {"text": TEXT, "alignment": True, "confidence": True}),
    ("/v1/translate", {"text": TEXT, "glossary": {"ka": "TO"}}),
    ("/v1/translate", {"text": TEXT, "do_sample": True, "seed": 1}),
    ("/v1/alternatives", {"text": TEXT, "prefix": "KA"}),
    ("/v1/stream", {"text": TEXT}),
    ("/v1/inspect", {"text": TEXT, "ablation": True, "attribution": True}),
    ("/v1/score", {"pairs": [{"source_text": TEXT, "target_text": "KA TO"}]}),
    ("/v1/lessons/4/own", {"text": TEXT}),
]


def delete(folder: Path) -> None:
    shutil.rmtree(folder)


def damage_index(folder: Path) -> None:
    (folder / "bundle.json").write_text("{", encoding="utf-8")


def damage_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 100)


@pytest.fixture(params=[delete, damage_index, damage_weights])
def harm(request) -> Callable[[Path], None]:
    chosen: Callable[[Path], None] = request.param
    return chosen


@pytest.fixture
def folder(write_model, tmp_path) -> Path:
    return write_model(tmp_path / "toy", src_lang="ko", tgt_lang="en", max_src_tokens=20)


@pytest.fixture(params=["ctranslate2", "attendo"])
def client(folder, request) -> Iterator[TestClient]:
    settings = {"watch_seconds": 0, "threads": 1, "log_requests": False, "precision": "auto"}
    config = ServeConfig(models=[folder], device="cpu", engine=request.param, **settings)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        yield client


def answer(client: TestClient, path: str, body: dict[str, Any]) -> tuple[int, str]:
    response = client.post(path, json=body)
    text = response.text
    if path == "/v1/translate":
        text = json.dumps({**json.loads(text), "seconds": 0})
    return response.status_code, text


def test_every_route_answers_as_before(client, folder, harm) -> None:
    registry = client.app.state.service.registry
    before = [answer(client, *request) for request in REQUESTS]
    assert {status for status, _ in before} == {200}
    harm(folder)
    for _ in range(3):
        assert registry.reload_changed() == []
    for request, expected in zip(REQUESTS, before, strict=True):
        assert answer(client, *request) == expected, request
    assert client.get("/v1/models").status_code == 200


@pytest.mark.parametrize(
    "make_error",
    [
        lambda _folder: AttendoError("CTranslate2 cannot open it"),
        lambda folder: InputError(f"{folder} is not a model folder"),
    ],
)
@pytest.mark.parametrize("path", ["/v1/translate", "/v1/stream"])
def test_errors_of_files_blame_nobody_and_show_no_path(
    client, folder, make_error, path, monkeypatch, caplog
) -> None:
    def fail(*_args: Any, **_options: Any) -> None:
        raise make_error(folder)

    served = client.app.state.service.registry.get()
    monkeypatch.setattr(served.translator, "translate", fail)
    monkeypatch.setattr(served.native, "split_text", fail)
    response = client.post(path, json={"text": TEXT})
    assert response.status_code == 503
    assert str(folder) not in response.text
    assert "model folder" not in response.text
    assert response.headers["x-request-id"] in response.json()["error"]
    assert any(record.levelname == "ERROR" for record in caplog.records)


def test_a_path_in_a_request_is_an_unknown_model(client, folder) -> None:
    """Found in review: the path of the server's model was a 503, which confirmed a guess."""
    for path in (folder, folder.with_name("none")):
        response = client.post("/v1/translate", json={"text": TEXT, "model": str(path)})
        assert response.status_code == 400
        assert f"no model '{path}'"[:80] in response.json()["error"]


def test_the_name_of_a_folder_is_the_name_of_its_model(folder, monkeypatch) -> None:
    """Found in review: after `attendo serve toy` each error with this name was a 503."""
    monkeypatch.chdir(folder.parent)
    config = ServeConfig(models=["toy"], watch_seconds=0, threads=1, engine="attendo")
    with TestClient(create_app(config), base_url="http://localhost") as client:
        body = {"text": TEXT, "model": "toy", "source": "de"}
        response = client.post("/v1/translate", json=body)
    assert response.status_code == 400
    assert "the model 'toy' translates ko to en" in response.json()["error"]
