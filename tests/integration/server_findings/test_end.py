"""Findings about the end of the server and its signals (S8)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from support.live_server import PATIENCE, LiveServer, make_request, read_answer

from attendo.bundle import load_bundle, save_bundle

NUM_CLIENTS = 8


class NewInterpreter:
    """Starts commands without a fork: worker processes are started by the interpreter's own."""

    def start(self, words: list[str], *, env: dict[str, str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "attendo", *words]
        own = {**os.environ, "OMP_NUM_THREADS": "1", **env}
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=own)


def ask_until_refused(server: LiveServer, lost: list[str], answered: threading.Semaphore) -> None:
    """Send requests over a kept connection, and over a new one where the answer says so."""
    request = make_request("POST", "/v1/translate", {"text": "나는 학생이다."})
    connection: Any = None
    while True:
        try:
            connection = connection or server.connect()
        except OSError:
            return
        try:
            connection.sendall(request)
            answer = read_answer(connection)
        except OSError as error:
            lost.append(type(error).__name__)
            return
        answered.release()
        if answer.headers.get("connection") == "close":
            connection.close()
            connection = None


@pytest.mark.parametrize("options", [(), ("--workers", "2"), ("--engine", "attendo")])
def test_s8_the_end_loses_no_request_and_rejects_new_ones(model_folder, fork_server, options):
    launcher = NewInterpreter() if "--workers" in options else fork_server
    server = LiveServer(launcher, model_folder, *options)
    lost: list[str] = []
    answered = threading.Semaphore(0)
    clients = [
        threading.Thread(target=ask_until_refused, args=(server, lost, answered))
        for _ in range(NUM_CLIENTS)
    ]
    try:
        for client in clients:
            client.start()
        for _ in range(5 * NUM_CLIENTS):
            assert answered.acquire(timeout=PATIENCE)
        assert server.end() == 0
        for client in clients:
            client.join(PATIENCE)
        assert lost == []
        with pytest.raises(ConnectionRefusedError):
            server.connect()
    finally:
        server.close()


@pytest.mark.parametrize("engine", ["auto", "attendo"])
def test_s8_the_end_keeps_to_the_grace_period(model_folder, fork_server, engine):
    """A computation that went on kept the process alive until it was done."""
    server = LiveServer(fork_server, model_folder, "--engine", engine, "--set", "grace=0.1")
    heavy = {"text": ["나는 학생이다. " * 100] * 128, "beam_size": 4, "n_best": 2}
    try:
        with server.connect() as connection:
            connection.sendall(make_request("POST", "/v1/translate", heavy))
            assert server.ask("POST", "/v1/translate", {"text": "나는"}).status == 200
            server.process.send_signal(signal.SIGTERM)
            answer = read_answer(connection)
        assert (answer.status, answer.headers["connection"]) == (503, "close")
        assert server.process.wait(PATIENCE) == 0
    finally:
        server.close()


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
def test_s8_a_hangup_does_not_end_the_server(keyed_server):
    keyed_server.process.send_signal(signal.SIGHUP)
    for _ in range(5):
        assert keyed_server.ask("GET", "/health").status == 200
    assert keyed_server.end() == 0
    assert "checking the model folders" in "".join(keyed_server.log)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
@pytest.mark.parametrize("options", [(), ("--workers", "2", "--engine", "attendo")])
def test_s8_a_hangup_loads_a_changed_model(doomed_folder, fork_server, options):
    launcher = NewInterpreter() if options else fork_server
    server = LiveServer(launcher, doomed_folder, *options, "--set", "watch_seconds=0")
    try:
        bundle = load_bundle(doomed_folder)
        about = {**bundle.about, "tgt_lang": "de"}
        save_bundle(doomed_folder, bundle.model, bundle.tokenizer, about=about)
        assert server.ask("GET", "/languages").json[0]["targets"] == ["en", "ko"]
        server.process.send_signal(signal.SIGHUP)
        server.wait_for_log("ko-en has changed and was reloaded", count=2 if options else 1)
        assert server.ask("GET", "/languages").json[0]["targets"] == ["de", "ko"]
        assert server.end() == 0
    finally:
        server.close()
