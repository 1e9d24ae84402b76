"""A real server under requests of bad faith: whatever comes, it answers plainly and goes on."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

import pytest

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import build_model, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.synthetic.everyday import synthesize_pairs
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.text.tokenizer import TokenizerConfig
from benchmarks.serving_fuzz import (
    HOST,
    MARKER,
    SCRIPT,
    RawRequest,
    RawResponse,
    exchange,
    find_faults,
    handwritten_requests,
    make_json,
    make_request,
    parse_response,
    random_requests,
    run_schemathesis,
)
from benchmarks.serving_load import Server

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

TIMEOUT = 20
"""Seconds that the server gives a request, and its body."""
SENTENCE = synthesize_pairs(1, seed=3)[0].ko
NUM_DRAWN = 200
NUM_CLIENTS = 4
NUM_SLOW = 30


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    """A server of a tiny model that has learned nothing, with a folder of runs."""
    folder = tmp_path_factory.mktemp("served")
    paths = [folder / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(*paths, TokenizerConfig(vocab_size=700), num_pairs=300, seed=1)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    about = {"src_lang": "ko", "tgt_lang": "en", "max_src_tokens": 200}
    save_bundle(
        folder / "ko-en", build_model("transformer", sizes, tokenizer), tokenizer, about=about
    )
    about = {"task": "language"}
    save_bundle(folder / "lm", build_model("decoder", sizes, tokenizer), tokenizer, about=about)
    codec = SeriesCodec(
        features=["heat", "wind"], targets=["heat"], kind="numbers", labels=[], mean=[20.0, 3.0],
        deviation=[5.0, 2.0], target_mean=[20.0], target_deviation=[5.0], window=5, horizon=2,
    )  # fmt: skip
    series = SeriesTransformer(num_features=2, vocab_size=codec.vocab_size, num_targets=1, **sizes)
    save_bundle(folder / "heat", series, codec, about={})
    run = folder / "runs" / "first"
    run.mkdir(parents=True)
    save_bundle(
        run / "checkpoints" / "step_1", build_model("transformer", sizes, tokenizer), tokenizer,
        about={"src_lang": "ko", "tgt_lang": "en"},
    )  # fmt: skip
    (run / "config.json").write_text('{"train": {"max_steps": 9}}')
    (run / "log.jsonl").write_text('{"event": "train", "step": 1}\n')
    others = (str(folder / "lm"), str(folder / "heat"))
    options = (*others, "--runs", str(folder / "runs"), "--timeout", str(TIMEOUT))
    with Server(folder / "ko-en", *options, threads=1) as server:
        server.first = server.translate(SENTENCE)
        yield server


class SlowClients:
    """Many who send the first byte of a body, and never the rest."""

    def __init__(self, port: int) -> None:
        self.answers: list[RawResponse] = []
        head = make_request("POST", "/v1/translate", b"x" * 100)[:-99]
        self._talks = [socket.create_connection((HOST, port), timeout=600) for _ in range(NUM_SLOW)]
        for talk in self._talks:
            talk.sendall(head)
        self._waiting = [threading.Thread(target=self._wait, args=(t,)) for t in self._talks]
        for one in self._waiting:
            one.start()

    def _wait(self, talk: socket.socket) -> None:
        got = b""
        with talk:
            while part := talk.recv(4096):
                got += part
        self.answers.append(parse_response(got))

    def join(self) -> None:
        for one in self._waiting:
            one.join()


@pytest.fixture(scope="module", autouse=True)
def slow_clients(server) -> SlowClients:
    """They are there during all other tests."""
    return SlowClients(server.port)


@pytest.fixture(autouse=True)
def _goes_on(server) -> Iterator[None]:
    """After every test: it runs, translates as before, and has said nothing that it must not."""
    yield
    assert server.is_alive
    assert server.translate(SENTENCE) == server.first
    log = server.read_log()
    assert "Traceback" not in log
    assert MARKER not in log


def send_all(server: Server, requests: Iterable[RawRequest]) -> tuple[list[RawResponse], list[str]]:
    with ThreadPoolExecutor(NUM_CLIENTS) as pool:
        pairs = [(one, pool.submit(exchange, server.port, one)) for one in requests]
        found = [(one, answer.result()) for one, answer in pairs]
    return [answer for _, answer in found], [
        fault for pair in found for fault in find_faults(*pair)
    ]


def test_requests_made_from_the_schema(server):
    found = run_schemathesis(server.port, examples=4, skip=["/own"])  # which draws many pictures
    assert found.faults == []
    assert found.num_requests > 80


def test_requests_made_by_hand(server):
    answers, faults = send_all(server, handwritten_requests(every=4))
    assert faults == []
    statuses = {answer.status for answer in answers}
    assert {200, 400, 404, 405, 413} <= statuses
    assert len(answers) > 200


def test_requests_made_at_random(server):
    answers, faults = send_all(server, islice(random_requests(1), NUM_DRAWN))
    assert faults == []
    assert {200, 400} <= {answer.status for answer in answers}


def test_the_check_finds_english_in_english(tmp_path):
    good = {"content-type": "application/json", "x-content-type-options": "nosniff"}
    page = {**good, "content-type": "text/html; charset=utf-8"}
    request = RawRequest("", b"POST /")
    assert find_faults(request, RawResponse(400, good, b'{"error": "no"}')) == []
    assert find_faults(request, RawResponse(200, good, SCRIPT.encode())) == []
    bad = [
        RawResponse(500, good, b'{"error": "internal error"}'),
        RawResponse(503, good, b'{"error": "busy"}'),
        RawResponse(400, good, b'{"detail": "no"}'),
        RawResponse(400, page, b'{"error": "no"}'),
        RawResponse(400, {"content-type": "application/json"}, b'{"error": "no"}'),
        RawResponse(200, page, SCRIPT.encode()),
        RawResponse(400, good, b'{"error": "Traceback (most recent call last)"}'),
        RawResponse(200, good, b"root:x:0:0"),
        RawResponse(400, good, json.dumps({"error": f"{tmp_path}/a cannot be read"}).encode()),
        RawResponse(0, {}, b""),
    ]
    assert all(find_faults(request, answer) for answer in bad)
    assert find_faults(RawRequest("", b"x", is_http=False), RawResponse(0, {}, b"")) == []


def test_what_was_sent_is_returned_as_data_alone(server):
    for route, body in {
        "/translate": {"q": SCRIPT, "source": "ko", "target": SCRIPT[:30]},
        "/v1/translate": {"text": SCRIPT, "model": SCRIPT},
        "/v1/score": {SCRIPT: 1},
    }.items():
        answer = exchange(server.port, RawRequest("", make_json(route, body)))
        assert answer.status == 400
        assert answer.headers["content-type"] == "application/json"
        assert b"<script" not in answer.body
    answer = exchange(server.port, RawRequest("", make_json("/v1/translate", {"text": SCRIPT})))
    assert answer.headers["content-type"] == "application/json"
    assert json.loads(answer.body)["translations"][0]["source_text"] == SCRIPT


def test_no_path_leaves_the_page_or_the_runs(server):
    run = exchange(server.port, RawRequest("", make_request("GET", "/v1/runs/first")))
    assert (run.status, json.loads(run.body)["step"]) == (200, 1)
    for path in ("/v1/runs/..", "/v1/runs/%2e%2e%2fko-en", "/v1/runs/first%2f..", "/app/../app.py"):
        assert exchange(server.port, RawRequest("", make_request("GET", path))).status == 404


def test_bodies_that_never_come_time_out_and_delay_no_other(server, slow_clients):
    assert server.translate(SENTENCE) == server.first
    slow_clients.join()
    assert [answer.status for answer in slow_clients.answers] == [408] * NUM_SLOW


def test_killed_clients_leave_nothing_behind(server):
    request = make_json("/v1/translate", {"text": [SENTENCE] * 20, "beam_size": 8})
    for _ in range(20):
        talk = socket.create_connection((HOST, server.port), timeout=600)
        talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        talk.sendall(request)
        talk.close()  # with a reset, as of a process that was killed
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        figures = exchange(
            server.port, RawRequest("", make_request("GET", "/metrics"))
        ).body.decode()
        if 'attendo_queue_texts{model="ko-en"} 0.0' in figures:
            break
        time.sleep(0.1)
    else:
        pytest.fail(figures)
