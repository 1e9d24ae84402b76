"""The route of a run's checkpoints: a sentence, seen by the model of a step."""

from __future__ import annotations

import shutil

import pytest
import torch
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.core.errors import AttendoError
from attendo.core.run_folder import RunFolder
from attendo.inspection import checkpoint_view
from attendo.inspection.checkpoint_view import usable_steps, view_checkpoint
from attendo.serving import checkpoint_reader
from attendo.serving.config import ServeConfig
from attendo.serving.errors import ErrorResponse
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.routes import runs
from attendo.serving.service import Service

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
TEXT = "ka to mi"


@pytest.fixture(scope="module")
def folder(toy, tmp_path_factory):
    """A folder of runs; one of them has kept two checkpoints, and one without a model."""
    folder = tmp_path_factory.mktemp("runs")
    tokenizer = toy.prepared.tokenizer
    run = folder / "ka-en"
    for step in (20, 100):
        torch.manual_seed(step)
        model = build_model("transformer", SIZES, tokenizer)
        save_bundle(run / "checkpoints" / f"step_{step}", model, tokenizer, about={})
    (run / "checkpoints" / "step_60").mkdir()
    (run / "config.json").write_text("{}")
    save_bundle(
        folder / "secret", build_model("transformer", SIZES, tokenizer), tokenizer, about={}
    )
    return folder


@pytest.fixture
def client(folder):
    app = FastAPI()
    app.include_router(runs.router)
    config = ServeConfig(models=[folder], runs=folder, threads=1)
    app.state.service = Service(config, registry=ModelRegistry())

    @app.exception_handler(HTTPException)
    async def refuse(_request, error):
        return ErrorResponse(error.status_code, error.detail)

    @app.exception_handler(AttendoError)
    async def refuse_input(_request, error):
        return ErrorResponse(400, str(error))

    with TestClient(app) as client:
        yield client


def ask(client, run="ka-en", **body):
    return client.post(f"/v1/runs/{run}/checkpoint", json={"text": TEXT, **body})


def test_a_run_lists_the_checkpoints_that_are_kept(client, folder):
    assert client.get("/v1/runs/ka-en").json()["checkpoints"] == [20, 100]
    assert usable_steps(RunFolder(folder / "ka-en")) == [20, 100]


def test_each_checkpoint_has_its_own_translation_and_attention(client, folder):
    views = [ask(client, step=step).json() for step in (20, 100)]
    assert [view["step"] for view in views] == [20, 100]
    for view in views:
        assert view["text"] == TEXT
        assert len(view["attention"]) == len(view["tgt"])
        assert all(sum(row) == pytest.approx(1.0, abs=1e-2) for row in view["attention"])
        assert {len(row) for row in view["attention"]} == {len(view["src"])}
    assert views[0]["attention"] != views[1]["attention"]
    assert ask(client).json() == views[1]  # the newest one by default
    direct = view_checkpoint(RunFolder(folder / "ka-en"), 20, TEXT)
    assert direct.to_dict() == views[0]


@pytest.mark.parametrize("run", ["..", "%2e%2e", "ka-en%2f..%2fsecret", "secret", "no-such-run"])
def test_only_runs_that_are_listed_can_be_named(client, run):
    assert ask(client, run).status_code in (404, 405)


@pytest.mark.parametrize("step", [0, 60, 21, 2**52])
def test_only_steps_that_are_kept_can_be_named(client, step):
    assert ask(client, step=step).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {"text": ""},
        {"text": "a" * 501},
        {"text": None},
        {"step": -1},
        {"step": "../../secret"},
        {"step": 1.5},
        {"path": "/etc"},
    ],
)
def test_input_is_limited(client, body):
    assert ask(client, **body).status_code == 422


def test_a_view_is_computed_once(client, monkeypatch):
    calls = []

    def view(run, step, text):
        calls.append(step)
        return view_checkpoint(run, step, text)

    monkeypatch.setattr(checkpoint_reader, "view_checkpoint", view)
    monkeypatch.setattr(checkpoint_reader, "MAX_KEPT", 1)
    for step in (20, 20, 100, 20):
        assert ask(client, step=step).status_code == 200
    assert calls == [20, 100, 20]


def test_an_error_names_no_path_of_the_server(client, folder, tmp_path):
    damaged = folder / "damaged"
    shutil.copytree(folder / "ka-en", damaged)
    (damaged / "checkpoints" / "step_20" / "model.safetensors").write_bytes(b"nothing")
    response = ask(client, "damaged", step=20)
    assert response.status_code == 400
    assert "step 20" in response.text
    assert str(folder) not in response.text
    (damaged / "checkpoints" / "step_100" / "model.safetensors").unlink()
    assert ask(client, "damaged", step=100).status_code == 404
    shutil.rmtree(damaged)


def test_large_checkpoints_are_rejected(client, monkeypatch):
    monkeypatch.setattr(checkpoint_reader, "MAX_WEIGHT_BYTES", 10)
    assert ask(client, step=20, text="to ka").status_code == 400


def test_the_key_may_be_a_field_as_on_other_routes(client):
    assert ask(client, step=20, api_key="a-long-random-key").status_code == 200


def test_a_step_that_is_not_kept_is_an_error_in_python(folder):
    with pytest.raises(AttendoError, match="no checkpoint of step 60"):
        view_checkpoint(RunFolder(folder / "ka-en"), 60, TEXT)
    assert checkpoint_view.DIGITS > 2
