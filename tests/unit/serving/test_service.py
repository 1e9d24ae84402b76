from __future__ import annotations

import asyncio
import threading

import pytest

from attendo.core.checkpoints import checkpoint
from attendo.core.errors import InputError
from attendo.serving.config import ServeConfig
from attendo.serving.metrics import Metrics
from attendo.serving.scheduling import clients
from attendo.serving.scheduling.clients import current_client, one_time_limit
from attendo.serving.scheduling.errors import DeadlineExceededError, QueueFullError
from attendo.serving.served_model import TextModelHandle
from attendo.serving.service import MAX_PLANNED_CHARACTERS, Service
from attendo.translator import Translator

PATIENCE = 120.0


def run_scenario(service, scenario):
    async def run():
        await service.start()
        try:
            return await asyncio.wait_for(scenario(service), PATIENCE)
        finally:
            await asyncio.wait_for(service.stop(), PATIENCE)

    return asyncio.run(run())


def test_requests_with_different_prefixes_share_a_batch(make_service, shouter) -> None:
    async def scenario(service):
        return await asyncio.gather(
            service.translate("ko-en", ["a", "b"], {"prefix": "Oh "}),
            service.translate("ko-en", ["c"]),
            service.translate("ko-en", ["d", "e"], {"prefix": ["1", ""]}),
        )

    made = run_scenario(make_service(batch_size=5, batch_wait_ms=1000), scenario)
    assert made == [["Oh A", "Oh B"], ["C"], ["1D", "E"]]
    assert len(shouter.batches) == 1


def test_the_beam_is_the_server_s_unless_specified(make_service, shouter) -> None:
    async def scenario(service):
        await service.translate(service.registry.find_for_languages("ko", "en"), ["a"])
        await service.translate("ko-en", ["a"], {"beam_size": 2, "required": ["x"]})

    run_scenario(make_service(beam_size=3), scenario)
    assert [reported["beam_size"] for reported in shouter.reported] == [3, 2]
    assert shouter.reported[1]["required"] == ["x"]


@pytest.mark.parametrize("options", [{"glossary": "/etc/passwd"}, {"prefix": ["a", "b"]}])
def test_no_file_of_the_server_is_a_glossary_and_prefixes_must_fit(make_service, options) -> None:
    async def scenario(service):
        with pytest.raises(InputError):
            await service.translate("ko-en", ["a"], options)

    run_scenario(make_service(), scenario)


def test_a_request_ends_with_the_model_that_it_began_with(make_service, shouter) -> None:
    class Whisperer(type(shouter)):
        def translate(self, texts, **_options):
            return [text.lower() for text in texts]

    async def scenario(service):
        shouter.may_go.clear()
        old = service.registry.get("ko-en")
        started = asyncio.ensure_future(service.translate(old, ["Text"]))
        await asyncio.to_thread(shouter.has_started.wait, PATIENCE)
        service.registry.add(TextModelHandle("ko-en", "ko", "en", Whisperer(), {}))
        later = asyncio.ensure_future(service.translate("ko-en", ["Text"]))
        shouter.may_go.set()
        return await asyncio.gather(started, later)

    assert run_scenario(make_service(), scenario) == [["TEXT"], ["text"]]


def test_the_metrics_count_texts_batches_and_queued_texts(make_service) -> None:
    service = make_service(batch_size=3, batch_wait_ms=1000)
    service.metrics = Metrics()

    async def scenario(service):
        await service.translate("ko-en", ["ab", "cd", "e"])
        return service.metrics.render(service.count_waiting).decode()

    reported = run_scenario(service, scenario)
    assert 'attendo_texts_total{model="ko-en"} 3.0' in reported
    assert 'attendo_source_characters_total{model="ko-en"} 5.0' in reported
    assert 'attendo_target_tokens_total{model="ko-en"} 5.0' in reported
    assert 'attendo_batch_texts_sum{model="ko-en"} 3.0' in reported
    assert 'attendo_batch_texts_count{model="ko-en"} 1.0' in reported
    assert 'attendo_queue_texts{model="ko-en"} 0.0' in reported


@pytest.mark.parametrize("engine", ["auto", "attendo"])
def test_a_changed_folder_is_served_without_a_restart(tmp_path, write_model, engine) -> None:
    folder = write_model(tmp_path / "m", src_lang="ko", tgt_lang="en", step=1)
    settings = {"watch_seconds": 0.02, "threads": 1, "engine": engine}
    service = Service(ServeConfig(models=[folder], **settings))

    async def scenario(service):
        assert service.registry.get().about["step"] == 1
        write_model(folder, src_lang="ko", tgt_lang="en", step=2)
        while service.registry.get().about["step"] == 1:
            await asyncio.sleep(0.01)
        return await service.translate("m", ["ka to mi"])

    (made,) = run_scenario(service, scenario)
    assert made.source == "ka to mi"


def test_streams_and_calls_go_through_the_model_s_thread(make_service) -> None:
    async def scenario(service):
        things = [thing async for thing in service.stream("ko-en", lambda: iter([1, 2]))]
        return things, await service.call("ko-en", sum, things)

    assert run_scenario(make_service(), scenario) == ([1, 2], 3)


def test_all_steps_of_a_request_share_one_time_limit(make_service, shouter, monkeypatch) -> None:
    """Found in review: splitting, decoding and describing had the whole limit each."""
    now = [0.0]
    monkeypatch.setattr(clients, "monotonic", lambda: now[0])
    split_text = shouter.split_text

    def split_slowly(*args, **options):
        now[0] += 2 * PATIENCE
        return split_text(*args, **options)

    shouter.split_text = split_slowly
    shouter.may_go.clear()

    async def scenario(service):
        with pytest.raises(DeadlineExceededError, match="within 120 seconds"):
            await service.translate("ko-en", ["a"], timeout=PATIENCE)
        for ask in (service.call("ko-en", print), service.call_aside("lessons", print)):
            with one_time_limit():
                now[0] += 2 * PATIENCE
                with pytest.raises(DeadlineExceededError):
                    await ask
        shouter.may_go.set()
        return await service.call("ko-en", lambda: "next", timeout=PATIENCE)

    assert run_scenario(make_service(), scenario) == "next"


def test_work_that_needs_no_model_takes_turns_and_is_never_paused(make_service) -> None:
    """Found in review: one client could fill the queues of lessons and checkpoints."""
    has_started, may_go = threading.Event(), threading.Event()
    begun, done = [], []

    def work(name):
        begun.append(name)
        has_started.set()
        assert may_go.wait(PATIENCE)
        checkpoint()
        done.append(name)

    async def scenario(service):
        async def ask(client, name):
            current_client.set(client)
            await service.call_aside("checkpoints", work, name)

        first = asyncio.ensure_future(ask("a", "first"))
        await asyncio.to_thread(has_started.wait, PATIENCE)
        waiting = [asyncio.ensure_future(ask("a", number)) for number in range(8)]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await ask("a", "one too many")
        other = asyncio.ensure_future(ask("b", "other"))
        await asyncio.sleep(0)
        may_go.set()
        await asyncio.gather(first, *waiting, other)

    run_scenario(make_service(), scenario)
    assert begun == done
    assert set(done) == {"first", "other", *range(8)}
    assert done.index("other") <= 2


TEXTS = ["ka to mi", "ka to. Mi re so! Lu ka", "  ka\n\nto mi. Re so\n", "", " \n "]


@pytest.mark.parametrize(
    "options",
    [{}, {"n_best": 3}, {"required": ["MI"]}, {"confidence": True, "split": "sentences"}],
)
def test_texts_in_segments_give_what_the_translator_gives(tmp_path, write_model, options) -> None:
    folder = write_model(tmp_path / "m", src_lang="ko", tgt_lang="en")
    settings = {
        "watch_seconds": 0,
        "threads": 1,
        "batch_size": 2,
        "engine": "attendo",
        "retry": False,
    }
    service = Service(ServeConfig(models=[folder], **settings))

    async def scenario(service):
        return await service.translate("m", TEXTS, options)

    translator = Translator.load(folder)
    expected = translator.translate(TEXTS, **options)
    found = run_scenario(service, scenario)
    assert found == expected
    for one, other in zip(found, expected, strict=True):
        assert one.notes == other.notes
        assert one.alternatives == other.alternatives
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        if other.confidence:
            assert one.confidence.probability == pytest.approx(other.confidence.probability)


@pytest.mark.parametrize("prefix", ["", "KA"])
def test_texts_for_the_native_decoder_join_a_search(tmp_path, write_model, prefix) -> None:
    """Those with a prefix go by batches; both get what the translator gives."""
    folder = write_model(tmp_path / "m", src_lang="ko", tgt_lang="en")
    settings = {"watch_seconds": 0, "threads": 1, "engine": "attendo", "slots": 2, "retry": False}
    service = Service(ServeConfig(models=[folder], **settings), metrics=Metrics())
    options = {"prefix": prefix} if prefix else {}

    async def scenario(service):
        made = await asyncio.gather(*(service.translate("m", [text], options) for text in TEXTS))
        rendered = service.metrics.render(service.count_waiting, service.describe_slots)
        return [one for (one,) in made], rendered.decode()

    found, metrics = run_scenario(service, scenario)
    translator = Translator.load(folder, engine="attendo")
    assert found == [translator.translate([text], **options)[0] for text in TEXTS]
    assert 'attendo_slots{model="m"} 2.0' in metrics
    assert 'attendo_slots_in_use{model="m"} 0.0' in metrics
    assert 'attendo_graph_captures_after_warm_up{model="m"} 0.0' in metrics
    assert ('attendo_batch_texts_count{model="m"}' in metrics) == bool(prefix)


def test_slots_can_be_switched_off(tmp_path, write_model) -> None:
    folder = write_model(tmp_path / "m", src_lang="ko", tgt_lang="en")
    settings = {"watch_seconds": 0, "threads": 1, "engine": "attendo", "slots": 0, "retry": False}
    service = Service(ServeConfig(models=[folder], **settings))

    async def scenario(service):
        assert service.describe_slots() == {}
        return await service.translate("m", ["ka to mi"])

    assert run_scenario(service, scenario) == Translator.load(folder).translate(["ka to mi"])


def test_a_long_line_is_cut_and_joined_again(tmp_path, write_model) -> None:
    folder = write_model(tmp_path / "m", max_src_tokens=8)
    line = "ka to mi re so lu " * 50
    service = Service(ServeConfig(models=[folder], watch_seconds=0, threads=1, max_characters=12))
    counts = []

    async def scenario(service):
        served = service.registry.get("m")
        document = served.split(f"{line}\n{line}", "", "auto", max_characters=12)
        counts.append([len(one) for one in document.document.segments])
        return await service.translate(served, [f"{line}\n{line}"])

    (made,) = run_scenario(service, scenario)
    assert max(counts[0]) <= 12
    assert len(counts[0]) == 2 * 75
    assert made.count("\n") == 1


def test_large_texts_are_split_and_joined_in_turns_of_their_client(make_service) -> None:
    """Found in review: hundreds of them were split in several threads, and others waited."""
    service = make_service()
    threads: list[str] = []
    served = service.registry.get()
    split = served.translator.split_text

    def record(text, *args, **limits):
        threads.append(threading.current_thread().name)
        return split(text, *args, **limits)

    served.translator.split_text = record

    async def scenario(service):
        await service.translate(served, ["a"])
        await service.translate(served, ["a" * (MAX_PLANNED_CHARACTERS + 1)])

    run_scenario(service, scenario)
    on_loop, in_turn = threads
    assert on_loop == threading.current_thread().name
    assert served.name in in_turn


def test_a_client_that_goes_away_frees_its_work(make_service, shouter) -> None:
    async def scenario(service):
        shouter.may_go.clear()
        gone = asyncio.ensure_future(service.translate("ko-en", ["gone"] * 100))
        await asyncio.to_thread(shouter.has_started.wait, PATIENCE)
        gone.cancel()
        await asyncio.sleep(0)
        assert service.count_waiting() == {"ko-en": 0}
        shouter.may_go.set()
        return await service.translate("ko-en", ["stays"])

    assert run_scenario(make_service(batch_size=10), scenario) == ["STAYS"]
    assert len(shouter.batches) == 2
