"""Models that nobody uses are unloaded, and loaded again by the next request."""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import weakref

import pytest

from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.serving.idle_models import IdleModels
from attendo.serving.metrics import Metrics
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.service import Service
from attendo.serving.unloaded_model import UnloadedTextModel

TEXT = "ka to mi"


class Clock:
    """Seconds that pass when the test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def folder(tmp_path, write_model):
    return write_model(tmp_path / "models/m", src_lang="ko", tgt_lang="en")


@pytest.fixture(params=["attendo", "ctranslate2"])
def service(request, folder) -> Service:
    settings = {"watch_seconds": 0, "threads": 1, "engine": request.param, "retry": False}
    service = Service(ServeConfig(models=[folder], **settings), metrics=Metrics())
    service.idle_models = IdleModels(service.registry, 60.0, clock=Clock())
    service.registry.loaded_at = lambda _name: 0.0
    return service


def run_scenario(service, scenario):
    async def run():
        await service.start()
        try:
            return await scenario()
        finally:
            await service.stop()

    return asyncio.run(run())


def pass_seconds(service, seconds: float):
    service.idle_models._clock.now += seconds
    return service.idle_models.unload_idle()


def test_an_idle_model_is_unloaded_and_loaded_by_the_next_request(service, caplog) -> None:
    caplog.set_level(logging.INFO, "attendo")

    async def scenario():
        (first,) = await service.translate("m", [TEXT])
        weights = weakref.ref(service.registry.get("m").translator.backend)
        assert await pass_seconds(service, 59.0) == []
        assert await pass_seconds(service, 2.0) == ["m"]
        gc.collect()
        assert weights() is None
        assert service.list_loaded() == {"m": False}
        (again,) = await service.translate("m", [TEXT])
        assert service.list_loaded() == {"m": True}
        assert again == first
        return service.metrics.render(
            service.count_waiting, service.describe_slots, service.list_loaded
        ).decode()

    reported = run_scenario(service, scenario)
    assert 'attendo_model_loaded{model="m"} 1.0' in reported
    assert 'attendo_model_unloads_total{model="m"} 1.0' in reported
    assert 'attendo_model_load_seconds_count{model="m"} 1.0' in reported
    assert "m: unloaded, nobody used it" in caplog.text
    assert "m: loaded again in" in caplog.text


def test_requests_at_the_same_time_load_it_once(service) -> None:
    async def scenario():
        await pass_seconds(service, 61.0)
        made = await asyncio.gather(*(service.translate("m", [TEXT]) for _ in range(5)))
        assert len({str(one) for (one,) in made}) == 1
        return service.metrics.render(service.count_waiting).decode()

    reported = run_scenario(service, scenario)
    assert 'attendo_model_load_seconds_count{model="m"} 1.0' in reported


def test_a_handle_from_before_loads_the_model_where_it_is_used(service) -> None:
    """Routes find a handle first, and pass its methods to the thread of the model."""

    async def scenario():
        (first,) = await service.translate("m", [TEXT], {"retry": False})
        await pass_seconds(service, 61.0)
        handle = service.registry.get("m")
        assert isinstance(handle, UnloadedTextModel)
        called = await service.call(handle, handle.call_native, lambda one: one.translate([TEXT]))
        await pass_seconds(service, 61.0)
        handle = service.registry.get("m")
        make = handle.call_richest
        streamed = [
            one async for one in service.stream(handle, lambda: make(lambda it: iter([it.about])))
        ]
        return first, called, streamed

    first, called, streamed = run_scenario(service, scenario)
    assert called == [first]
    assert streamed[0]["src_lang"] == "ko"


def test_a_model_in_use_stays(service) -> None:
    async def scenario():
        with service.idle_models.in_use("m"):
            assert await pass_seconds(service, 1000.0) == []
        assert await pass_seconds(service, 59.0) == []
        assert await pass_seconds(service, 2.0) == ["m"]

    run_scenario(service, scenario)


def test_a_model_without_its_folder_stays(service, folder) -> None:
    async def scenario():
        shutil.rmtree(folder)
        assert await pass_seconds(service, 61.0) == []
        return await service.translate("m", [TEXT])

    assert run_scenario(service, scenario)


def test_a_folder_that_goes_while_unloaded_is_an_error_that_names_no_path(
    folder, write_model
) -> None:
    from fastapi.testclient import TestClient

    service = Service(ServeConfig(models=[folder], watch_seconds=0, threads=1))
    with TestClient(create_app(service.config, service), base_url="http://localhost") as client:
        listed = client.get("/v1/models").json()["models"][0]
        assert (listed["loaded"], listed["memory_bytes"] > 0) == (True, True)
        assert service.registry.unload("m")
        unloaded = client.get("/v1/models").json()["models"][0]
        assert (unloaded["loaded"], unloaded["memory_bytes"]) == (False, 0)
        same = ("name", "source", "target", "num_parameters", "has_attention", "vocab_sizes")
        assert {name: unloaded[name] for name in same} == {name: listed[name] for name in same}
        shutil.rmtree(folder)
        answer = client.post("/v1/translate", json={"text": TEXT})
        assert answer.status_code == 503
        assert str(folder.parent) not in answer.text
        write_model(folder, src_lang="ko", tgt_lang="en")
        assert client.post("/v1/translate", json={"text": TEXT}).status_code == 200


def test_the_server_unloads_by_itself(folder) -> None:
    config = ServeConfig(models=[folder], watch_seconds=0, threads=1, idle_seconds=0.05)
    service = Service(config)

    async def scenario():
        while service.list_loaded()["m"]:
            await asyncio.sleep(0.01)
        return await service.translate("m", [TEXT])

    assert run_scenario(service, scenario)


def test_a_registry_without_folders_unloads_nothing(shouter) -> None:
    registry = ModelRegistry()
    from attendo.serving.served_model import TextModelHandle

    registry.add(TextModelHandle("ko-en", "ko", "en", shouter, shouter.about))
    assert not registry.unload("ko-en")
