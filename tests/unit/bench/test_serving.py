"""Clients against a server with scripted responses."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager

import pytest

from attendo.bench.serving import (
    Load,
    ServingBenchConfig,
    Tally,
    benchmark_serving,
    format_case,
    table_rows,
)
from attendo.core.errors import AttendoError, ConfigError

METRICS = (
    'attendo_graph_captures{model="m"} 7.0\nattendo_graph_captures_after_warm_up{model="m"} 2\n'
)


@contextmanager
def serve(answer):
    """Serve on a free port: `answer(path, body)` returns status and body, or None to hang up."""
    started, stop = threading.Event(), asyncio.Event()
    found: dict = {}

    async def handle(reader, writer) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                size = int(head.lower().split("content-length: ")[1].split("\r\n")[0])
                printed = answer(head.split(" ")[1], await reader.readexactly(size))
                if printed is None:
                    break
                status, body = printed
                data = body.encode()
                writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}\r\n\r\n".encode())
                writer.write(data)
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    async def run() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        found["loop"], found["port"] = (
            asyncio.get_running_loop(),
            server.sockets[0].getsockname()[1],
        )
        started.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    started.wait(30)
    try:
        yield f"http://127.0.0.1:{found['port']}"
    finally:
        found["loop"].call_soon_threadsafe(stop.set)
        thread.join(30)


@pytest.fixture(autouse=True)
def _no_delays(monkeypatch):
    monkeypatch.setattr("attendo.bench.serving.WARM_SECONDS", 0.0)
    monkeypatch.setattr("attendo.bench.serving.RETRY_SECONDS", 0.0)


def test_counts_what_each_client_gets():
    sizes, turn = set(), iter(range(10**9))

    def answer(path, body):
        if path == "/v1/models":
            return 200, json.dumps({"models": [{"source": "en"}]})
        if path == "/metrics":
            return 200, METRICS
        text = json.loads(body)["text"]
        sizes.add(1 if isinstance(text, str) else len(text))
        number = next(turn) % 5
        return None if number == 1 else (503 if number == 2 else 200, "{}")

    lines: list[str] = []
    with serve(answer) as url:
        config = ServingBenchConfig(url=url, loads=("2", "2x3"), seconds=0.2)
        report = benchmark_serving(config, log=lines.append)
    assert sizes == {1, 3}
    for case, (load, num_texts) in zip(report["cases"], (("2", 1), ("2 x 3", 3)), strict=True):
        assert case["clients"] == load
        assert case["requests_per_second"] > 0
        assert case["sentences_per_second"] == num_texts * case["requests_per_second"]
        assert case["p50_ms"] <= case["p95_ms"] <= case["p99_ms"]
        assert list(case["errors"]) == ["503"]
        assert case["resets"] > 0
    assert (report["graph_captures"], report["graph_captures_after_warm_up"]) == (7, 2)
    assert lines == [format_case(case) for case in report["cases"]]
    assert [row[0] for row in table_rows(report)] == ["2", "2 x 3"]


def test_what_began_before_the_measurement_does_not_count():
    tally = Tally(begin=5.0)
    tally.add(200, 4.0)
    tally.add(0, 4.0)
    tally.add(503, 6.0)
    assert (tally.seconds, tally.num_resets, dict(tally.statuses)) == ([], 0, {503: 1})


@pytest.mark.parametrize("text", ["", "0", "x3", "3x", "3x0", "-1", "many"])
def test_wrong_loads(text):
    with pytest.raises(ConfigError):
        Load.parse(text)


def test_either_a_model_or_a_server(tmp_path):
    for given in ({}, {"model": tmp_path, "url": "http://127.0.0.1:1"}):
        with pytest.raises(ConfigError):
            benchmark_serving(ServingBenchConfig(**given), log=print)


def test_no_server_there():
    with serve(lambda *_: None) as url:
        pass
    with pytest.raises(AttendoError):
        benchmark_serving(ServingBenchConfig(url=url), log=print)
