from __future__ import annotations

import asyncio

import pytest

from attendo.core.errors import InputError
from attendo.serving.config import ServeConfig
from attendo.serving.metrics import Metrics
from attendo.serving.served_model import TextModelHandle
from attendo.serving.service import Service

PATIENCE = 30.0


def play(service, scene):
    async def run():
        await service.start()
        try:
            return await asyncio.wait_for(scene(service), PATIENCE)
        finally:
            await asyncio.wait_for(service.stop(), PATIENCE)

    return asyncio.run(run())


def test_requests_share_a_batch_whatever_their_prefixes(make_service, shouter) -> None:
    async def scene(service):
        return await asyncio.gather(
            service.translate("ko-en", ["a", "b"], {"prefix": "Oh "}),
            service.translate("ko-en", ["c"]),
            service.translate("ko-en", ["d", "e"], {"prefix": ["1", ""]}),
        )

    made = play(make_service(batch_size=5, batch_wait_ms=1000), scene)
    assert made == [["Oh A", "Oh B"], ["C"], ["1D", "E"]]
    assert len(shouter.batches) == 1


def test_the_beam_is_the_server_s_unless_told(make_service, shouter) -> None:
    async def scene(service):
        await service.translate(service.registry.find_for_languages("ko", "en"), ["a"])
        await service.translate("ko-en", ["a"], {"beam_size": 2, "required": ["x"]})

    play(make_service(beam_size=3), scene)
    assert [told["beam_size"] for told in shouter.told] == [3, 2]
    assert shouter.told[1]["required"] == ["x"]


@pytest.mark.parametrize("options", [{"glossary": "/etc/passwd"}, {"prefix": ["a", "b"]}])
def test_no_file_of_the_server_is_a_glossary_and_prefixes_must_fit(make_service, options) -> None:
    async def scene(service):
        with pytest.raises(InputError):
            await service.translate("ko-en", ["a"], options)

    play(make_service(), scene)


def test_who_began_with_the_old_model_ends_with_it(make_service, shouter) -> None:
    class Whisperer:
        def translate(self, texts, **_options):
            return [text.lower() for text in texts]

    async def scene(service):
        shouter.may_go.clear()
        old = service.registry.get("ko-en")
        begun = asyncio.ensure_future(service.translate(old, ["Text"]))
        await asyncio.to_thread(shouter.has_begun.wait, PATIENCE)
        service.registry.add(TextModelHandle("ko-en", "ko", "en", Whisperer(), {}))
        later = asyncio.ensure_future(service.translate("ko-en", ["Text"]))
        shouter.may_go.set()
        return await asyncio.gather(begun, later)

    assert play(make_service(), scene) == [["TEXT"], ["text"]]


def test_the_figures_tell_texts_batches_and_what_waits(make_service) -> None:
    service = make_service(batch_size=3, batch_wait_ms=1000)
    service.metrics = Metrics()

    async def scene(service):
        await service.translate("ko-en", ["ab", "cd", "e"])
        return service.metrics.render(service.count_waiting).decode()

    told = play(service, scene)
    assert 'attendo_texts_total{model="ko-en"} 3.0' in told
    assert 'attendo_source_characters_total{model="ko-en"} 5.0' in told
    assert 'attendo_target_tokens_total{model="ko-en"} 5.0' in told
    assert 'attendo_batch_texts_sum{model="ko-en"} 3.0' in told
    assert 'attendo_batch_texts_count{model="ko-en"} 1.0' in told
    assert 'attendo_queue_texts{model="ko-en"} 0.0' in told


def test_a_changed_folder_is_served_without_a_restart(tmp_path, write_model) -> None:
    folder = write_model(tmp_path / "m", src_lang="ko", tgt_lang="en", step=1)
    service = Service(ServeConfig(models=[folder], watch_seconds=0.02, threads=1))

    async def scene(service):
        assert service.registry.get().about["step"] == 1
        write_model(folder, src_lang="ko", tgt_lang="en", step=2)
        while service.registry.get().about["step"] == 1:
            await asyncio.sleep(0.01)
        return await service.translate("m", ["ka to mi"])

    (made,) = play(service, scene)
    assert made.source == "ka to mi"


def test_streams_and_calls_go_through_the_model_s_thread(make_service) -> None:
    async def scene(service):
        things = [thing async for thing in service.stream("ko-en", lambda: iter([1, 2]))]
        return things, await service.call("ko-en", sum, things)

    assert play(make_service(), scene) == ([1, 2], 3)
