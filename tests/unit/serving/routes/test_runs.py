from __future__ import annotations

import asyncio
import fcntl
import json
import os
import threading
import time
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import pytest
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from attendo.core import process_lock
from attendo.serving import run_reader
from attendo.serving.errors import ErrorResponse
from attendo.serving.log_index import LogIndex, LogIndexes
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.routes import runs
from attendo.training.run_log import RunLog
from attendo.workflow.runner import STATE_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

OLD = 3600
"""Seconds after which nobody would think that a log still grows."""


def make_app(folder: Path | None, models: Sequence[Path] = ()) -> FastAPI:
    app = FastAPI()
    app.include_router(runs.router)
    app.state.service = SimpleNamespace(
        config=SimpleNamespace(runs=folder),
        closing=asyncio.Event(),
        registry=ModelRegistry(models),
    )

    @app.exception_handler(HTTPException)
    async def refuse(_request, error):
        return ErrorResponse(error.status_code, error.detail)

    return app


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def client(folder) -> Iterator[TestClient]:
    with TestClient(make_app(folder)) as client:
        yield client


def make_run(
    folder: Path, name: str = "ko-en", *, steps: int = 3, report: bool = False, age: float = 0.0
) -> Path:
    """Write what a run writes, with the trainer's own log."""
    run = folder / name
    run.mkdir(parents=True)
    data = {"corpora": [{"src": "/home/somebody/secret/train.ko", "weight": 1.0}]}
    config = {"train": {"max_steps": 100}, "data": data}
    (run / "config.json").write_text(json.dumps(config))
    log = RunLog(run)
    log.write("started", 0, epoch=0)
    for step in range(1, steps + 1):
        log.write("train", step, loss=9.0 / step, rate=0.1, tokens_per_second=100.0)
    log.write("validation", steps, loss=2.0, bleu=30.5)
    log.close()
    samples = {"step": steps, "samples": [{"src": "나는", "output": "I", "ref": "I"}]}
    (run / "samples.jsonl").write_text(json.dumps(samples, ensure_ascii=False) + "\n")
    if report:
        (run / "report.json").write_text(json.dumps({"dev": {"bleu": 33.0}, "steps": steps}))
    for path in run.glob("*.json*"):
        os.utime(path, (time.time() - age, time.time() - age))
    return run


def append(run: Path, text: str) -> None:
    with (run / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(text)


def event(step: int, **values: Any) -> str:
    return json.dumps({"time": "t", "event": "train", "step": step, **values}) + "\n"


def test_a_run_may_be_one_folder_deeper_but_not_inside_a_build(client, folder):
    make_run(folder, "ko-en", age=60)
    make_run(folder / "quickstart", "ko-en")
    (folder / "quickstart" / "data").mkdir()
    make_run(folder / "small", "student")
    (folder / "small" / STATE_FILE).write_text("{}")
    make_run(folder / "quickstart" / "deeper", "ko-en")
    listed = client.get("/v1/runs").json()["runs"]
    assert [run["name"] for run in listed] == ["quickstart:ko-en", "ko-en"]
    assert client.get("/v1/runs/quickstart:ko-en").json()["name"] == "quickstart:ko-en"
    assert client.get("/v1/runs/quickstart%3Ako-en/events?after=0").json()["events"]
    for missing in ("quickstart", "small:student", "quickstart%2Fko-en", "quickstart:deeper:ko-en"):
        assert client.get(f"/v1/runs/{missing}").status_code == 404


def test_a_run_names_the_model_that_is_served_from_its_folder(folder):
    """The page offered to translate with a model of the same name, which may be another one."""
    deep, plain = make_run(folder / "quickstart", "ko-en"), make_run(folder, "ko-en")
    make_run(folder, "unserved")
    other = folder.parent / "other" / "ko-en"
    models = [deep / "model", other, plain / "checkpoints" / "step_3"]
    for path in models:
        path.mkdir(parents=True)
    (models[2] / "checkpoint.json").write_text("{}")
    with TestClient(make_app(folder, models)) as client:
        served = {
            name: client.get(f"/v1/runs/{name}").json()["model"]
            for name in ("quickstart:ko-en", "ko-en", "unserved")
        }
    assert served == {"quickstart:ko-en": "ko-en", "ko-en": "step_3", "unserved": None}


def test_runs_are_listed_the_newest_first(client, folder):
    make_run(folder, "old", report=True, age=2 * OLD)
    make_run(folder, "new", steps=7)
    (folder / "no run").mkdir()
    (folder / "file").write_text("x")
    first, second = client.get("/v1/runs").json()["runs"]
    assert first.pop("updated") > second.pop("updated")
    assert first == {
        "name": "new", "state": "running", "step": 7, "max_steps": 100,
        "dev": {"loss": 2.0, "bleu": 30.5}, "diverged": False,
    }  # fmt: skip
    assert second == {
        "name": "old", "state": "finished", "step": 3, "max_steps": 100, "dev": {"bleu": 33.0},
        "diverged": False,
    }  # fmt: skip


def test_a_diverged_run_is_marked(client, folder):
    run = make_run(folder, age=OLD)
    append(run, '{"event": "train", "step": 4, "loss": NaN}\n')
    (reported,) = client.get("/v1/runs").json()["runs"]
    assert reported["diverged"] is True
    append(run, '{"event": "train", "step": 5, "loss": 1.5}\n')
    assert client.get("/v1/runs/ko-en").json()["diverged"] is False


def test_the_folder_may_come_later_or_never(client, folder):
    assert client.get("/v1/runs").json() == {"runs": []}
    make_run(folder)
    assert len(client.get("/v1/runs").json()["runs"]) == 1
    alone = TestClient(make_app(None))
    assert alone.get("/v1/runs").json() == {"runs": []}
    assert alone.get("/v1/runs/ko-en").status_code == 404


def test_states_are_read_from_the_files(folder):
    run = make_run(folder, age=OLD)
    assert run_reader.run_state(run) == "stopped"
    append(run, event(4))
    assert run_reader.run_state(run) == "running"  # it grows
    os.utime(run / "log.jsonl", (1, 1))
    assert run_reader.run_state(run) == "stopped"
    (run / "report.json").write_text("{}")
    assert run_reader.run_state(run) == "finished"


@pytest.mark.skipif(
    not process_lock.PROC_LOCKS.exists(), reason="only Linux tells which locks are held"
)
def test_a_run_that_holds_its_lock_is_running_and_not_disturbed(folder):
    run = make_run(folder, age=OLD)
    with (run / ".lock").open("ab") as held:
        assert run_reader.run_state(run) == "stopped"
        fcntl.flock(held, fcntl.LOCK_EX)
        assert run_reader.run_state(run) == "running"
    assert run_reader.run_state(run) == "stopped"
    stop = threading.Event()
    looker = threading.Thread(
        target=lambda: [run_reader.run_state(run) for _ in iter(stop.is_set, True)]
    )
    looker.start()
    try:
        for _ in range(200):  # somebody looks all the time: a training must still be able to begin
            with (run / ".lock").open("ab") as held:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        stop.set()
        looker.join()


def test_a_run_is_reported_whole(client, folder):
    make_run(folder, report=True)
    reported = client.get("/v1/runs/ko-en").json()
    assert [(one["event"], one["step"]) for one in reported["events"]] == [
        ("started", 0), ("train", 1), ("train", 2), ("train", 3), ("validation", 3)
    ]  # fmt: skip
    assert reported["next"] == 5
    assert reported["samples"] == [
        {"step": 3, "samples": [{"src": "나는", "output": "I", "ref": "I"}]}
    ]
    assert reported["report"] == {"dev": {"bleu": 33.0}, "steps": 3}
    assert reported["config"]["train"] == {"max_steps": 100}
    assert reported["config"]["data"]["corpora"][0] == {"src": "train.ko", "weight": 1.0}
    assert "secret" not in json.dumps(reported)


def test_folders_of_the_server_are_hidden(client, folder):
    run = make_run(folder, report=True)
    data = {"src": "private/customer/train.ko", "tgt": "C:\\private\\train.en", "rate": "km/h"}
    (run / "config.json").write_text(json.dumps({"data": {**data, "rate": 1}}))
    (run / "report.json").write_text(json.dumps({"data": data}))
    reported = client.get("/v1/runs/ko-en").json()
    assert reported["config"]["data"] == {"src": "train.ko", "tgt": "train.en", "rate": 1}
    assert reported["report"]["data"] == {"src": "train.ko", "tgt": "train.en", "rate": "km/h"}


def write_events(path: Path, events: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(one) + "\n" for one in events))


def test_long_logs_are_thinned_by_kind(tmp_path):
    events = [{"event": "train", "step": step} for step in range(10_001)]
    events[500:500] = [{"event": "validation", "step": 500}]
    write_events(tmp_path / "log", events)
    count, thinned = LogIndex(tmp_path / "log").thin(2000)
    assert count == len(events)
    steps = [one["step"] for one in thinned if one["event"] == "train"]
    assert len(steps) == 2000
    assert (steps[0], steps[-1]) == (0, 10_000)
    assert {later - sooner for sooner, later in pairwise(steps)} == {5, 6}
    assert [one["step"] for one in thinned] == sorted(one["step"] for one in thinned)
    assert {"event": "validation", "step": 500} in thinned


def test_only_what_was_appended_is_read_again(tmp_path):
    """Found in review: each look at a log of 200,000 lines read all of it."""
    path = tmp_path / "log"
    write_events(path, [{"event": "train", "step": step} for step in range(5000)])
    size = path.stat().st_size
    index = LogIndex(path)
    assert index.read(4999, 10) == (5000, [{"event": "train", "step": 4999}])
    before = index.num_bytes_read
    assert size <= before < 1.1 * size
    with path.open("a") as file:
        file.write('{"event": "train", "step": 5000}\n{"event": "tra')
    assert index.read(5000, 10) == (5001, [{"event": "train", "step": 5000}])
    assert index.read(5001, 10) == (5001, [])
    assert index.thin(2)[1] == [{"event": "train", "step": 0}, {"event": "train", "step": 5000}]
    assert index.num_bytes_read - before < 1000


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_log_that_was_cut_and_grew_again_is_read_again(tmp_path, is_replaced):
    path = tmp_path / "log"
    write_events(path, [{"event": "train", "step": step} for step in range(9)])
    index = LogIndex(path)
    assert index.read(0, 100)[0] == 9
    if is_replaced:
        path.rename(tmp_path / "old")
    write_events(path, [{"event": "train", "step": 10 * step} for step in range(30)])
    assert index.read(29, 100) == (30, [{"event": "train", "step": 290}])
    path.unlink()
    assert index.read(0, 100) == (0, [])


def test_indexes_are_limited(tmp_path, monkeypatch):
    monkeypatch.setattr("attendo.serving.log_index.MAX_LOGS", 2)
    logs = LogIndexes()
    first = logs.get(tmp_path / "a")
    assert logs.get(tmp_path / "a") is first
    logs.get(tmp_path / "b")
    logs.get(tmp_path / "c")
    assert logs.get(tmp_path / "a") is not first


def test_a_line_that_is_half_written_waits_until_it_is_whole(client, folder):
    run = make_run(folder)
    line = event(4, note="나는")
    half = line.encode()[:-8]
    with (run / "log.jsonl").open("ab") as file:
        file.write(half)
    news = client.get("/v1/runs/ko-en/events", params={"after": 5}).json()
    assert (news["events"], news["next"]) == ([], 5)
    assert client.get("/v1/runs/ko-en").json()["next"] == 5
    assert client.get("/v1/runs").json()["runs"][0]["step"] == 3
    with (run / "log.jsonl").open("ab") as file:
        file.write(line.encode()[len(half) :])
    news = client.get("/v1/runs/ko-en/events", params={"after": 5}).json()
    assert [one["step"] for one in news["events"]] == [4]
    assert news["next"] == 6


def test_news_are_those_after_a_line(client, folder):
    run = make_run(folder)
    everything = client.get("/v1/runs/ko-en/events").json()
    assert len(everything["events"]) == everything["next"] == 5
    append(run, event(4) + event(5))
    news = client.get("/v1/runs/ko-en/events?after=5").json()
    assert ([one["step"] for one in news["events"]], news["next"]) == ([4, 5], 7)
    assert news["state"] == "running"


def test_a_run_that_resumed_is_reported_from_its_start(client, folder):
    run = make_run(folder)
    RunLog(run, step=1).close()  # drops what came after
    news = client.get("/v1/runs/ko-en/events?after=5").json()
    assert ([one["step"] for one in news["events"]], news["next"]) == ([0, 1], 2)


def test_waiting_requests_are_answered_as_soon_as_there_are_events(client, folder):
    run = make_run(folder)
    timer = threading.Timer(0.3, append, (run, event(4)))
    timer.start()
    news = client.get("/v1/runs/ko-en/events", params={"after": 5, "wait": 30}).json()
    timer.join()
    assert [one["step"] for one in news["events"]] == [4]
    nothing = client.get("/v1/runs/ko-en/events", params={"after": 6, "wait": 0.1}).json()
    assert nothing["events"] == []


def test_numbers_and_lines_that_json_cannot_hold_do_no_harm(client, folder):
    run = make_run(folder, steps=1)
    append(run, '{"event": "train", "step": 2, "loss": NaN, "rate": 1e999}\nnot json\n[1, 2]\n')
    append(run, '{"event": "train", "step": 3, "text": "\\ud800 \\\\ud800"}\n')
    (run / "samples.jsonl").write_bytes(b"\xff\xfe\n{\n")
    (run / "report.json").write_text("{half")
    reported = client.get("/v1/runs/ko-en").json()
    assert reported["events"][-2:] == [
        {"event": "train", "step": 2, "loss": None, "rate": None},
        {"event": "train", "step": 3, "text": "? \\ud800"},
    ]
    assert (reported["next"], reported["samples"], reported["report"]) == (7, [], None)
    (run / "config.json").write_text('{"train": {"max_steps": "many"}}')
    assert client.get("/v1/runs").json()["runs"][0]["max_steps"] is None


@pytest.mark.parametrize(
    "name",
    ["..", ".", "%2e%2e", "%2e%2e%2fko-en", "..%2f..%2fetc%2fpasswd", "ko-en%00", "other",
     "%2fetc", "ko-en%2f.", "~", "a" * 5000, "%ff%fe", "<script>"],
)  # fmt: skip
def test_names_are_looked_up_in_the_listing(client, folder, name):
    make_run(folder)
    make_run(folder.parent, "outside")
    for path in (f"/v1/runs/{name}", f"/v1/runs/{name}/events"):
        answer = client.get(path)
        assert answer.status_code in (404, 200)
        if answer.status_code == 200:  # the client itself has walked up to the listing
            assert str(answer.url).endswith("/v1/runs")
        assert "passwd" not in answer.text
        assert "<" not in answer.text


@pytest.mark.parametrize(
    "query",
    ["after=-1", "after=x", "after=1e9", "wait=31", "wait=nan", "wait=-1", f"after={10**30}"],
)
def test_strange_questions_are_rejected(client, folder, query):
    make_run(folder)
    app = make_app(folder)
    asked = TestClient(app, raise_server_exceptions=False).get(f"/v1/runs/ko-en/events?{query}")
    assert asked.status_code >= 400  # the whole application answers 400: see test_serve_fuzz.py


class Listener:
    """Speaks ASGI, and reads server-sent events as they come."""

    def __init__(self, app: FastAPI, path: str, **headers: str) -> None:
        self.app, self.path = app, path
        self.headers = [(b"accept", b"text/event-stream")]
        self.headers += [(k.replace("_", "-").encode(), v.encode()) for k, v in headers.items()]
        self.events: asyncio.Queue[tuple[int, dict[str, Any]]] = asyncio.Queue()
        self.gone = asyncio.Event()

    async def __aenter__(self) -> Self:
        path, _, query = self.path.partition("?")
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "method": "GET",
            "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "root_path": "", "scheme": "http", "http_version": "1.1", "server": ("x", 80),
            "client": ("127.0.0.1", 1), "headers": self.headers,
        }  # fmt: skip
        self.task = asyncio.ensure_future(self.app(scope, self.receive, self.send))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.gone.set()
        await asyncio.wait_for(self.task, 10)

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message) -> None:
        for block in message.get("body", b"").decode().split("\n\n"):
            fields = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line)
            if "data" in fields:
                self.events.put_nowait((int(fields["id"]), json.loads(fields["data"])))

    async def next_event(self) -> tuple[int, dict[str, Any]]:
        return await asyncio.wait_for(self.events.get(), 20)


def test_a_watcher_gets_events_and_the_end(folder):
    run = make_run(folder)

    async def watch() -> None:
        app = make_app(folder)
        async with Listener(app, "/v1/runs/ko-en/events?after=4") as listener:
            number, news = await listener.next_event()
            assert (number, news["next"], news["state"]) == (5, 5, "running")
            assert [one["event"] for one in news["events"]] == ["validation"]
            append(run, event(4))
            number, news = await listener.next_event()
            assert (number, [one["step"] for one in news["events"]]) == (6, [4])
            (run / "report.json").write_text("{}")
            number, news = await listener.next_event()
            assert (number, news["events"], news["state"]) == (6, [], "finished")
            assert app.state.run_subscribers.count == 1
        assert app.state.run_subscribers.count == 0
        async with Listener(app, "/v1/runs/ko-en/events", last_event_id="5") as listener:
            _, news = await listener.next_event()
            assert [one["step"] for one in news["events"]] == [4]

    asyncio.run(watch())


def test_watchers_are_disconnected_when_the_server_ends(folder):
    make_run(folder)

    async def watch() -> None:
        app = make_app(folder)
        async with Listener(app, "/v1/runs/ko-en/events") as listener:
            await listener.next_event()
            app.state.service.closing.set()
            await asyncio.wait_for(asyncio.shield(listener.task), 10)

    asyncio.run(watch())


def test_not_everybody_may_watch_at_once(folder, monkeypatch):
    make_run(folder)
    monkeypatch.setattr(runs, "MAX_SUBSCRIBERS", 1)

    async def watch() -> None:
        app = make_app(folder)
        async with Listener(app, "/v1/runs/ko-en/events") as listener:
            await listener.next_event()
            second = Listener(app, "/v1/runs/ko-en/events")
            with pytest.raises(runs.QueueFullError):
                async with second:
                    await asyncio.wait_for(asyncio.shield(second.task), 10)

    asyncio.run(watch())
