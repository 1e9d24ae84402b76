"""A server as people run it: a process of its own, asked over real sockets."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from libretranslatepy import LibreTranslateAPI
from support.document_samples import SAMPLES

from attendo.bundle import build_model, load_bundle, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.serving.metrics import MAX_AGE_SECONDS
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.fork_server import ForkServer

PATIENCE = 600.0
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
SECRET = "a-secret-sentence"  # noqa: S105 - is looked for in the log
FULL = 3
"""Texts that fill a batch: they are decoded at once, fewer wait for company."""


class NewInterpreter:
    """Starts commands without a fork: uvicorn's workers are started by the interpreter's own."""

    def start(self, words: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "attendo", *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            start_new_session=True,
        )


class Server:
    """`attendo serve` in a process, and what it wrote."""

    def __init__(self, launcher: ForkServer | NewInterpreter, *words: str | Path) -> None:
        self.process = launcher.start(["serve", *words, "--port", "0"])
        self.log: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        line = self.process.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:(\d+)) ", line)
        assert found, (line, self.log)
        self.url, self.port = found[1], int(found[2])

    def _read(self) -> None:
        self.log.extend(self.process.stderr)

    def ask(self, path: str, body: Any = None) -> Any:
        """Send JSON, or nothing, and read JSON."""
        request = urllib.request.Request(  # noqa: S310
            f"{self.url}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310
            return json.loads(answer.read())

    def count(self, name: str) -> float:
        """Read one figure, which is not older than this call; 0 before it is there."""
        time.sleep(MAX_AGE_SECONDS)
        with urllib.request.urlopen(f"{self.url}/metrics", timeout=PATIENCE) as answer:  # noqa: S310
            lines = answer.read().decode().splitlines()
        return next((float(line.split()[-1]) for line in lines if line.startswith(name)), 0.0)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end, and give its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        return code

    def close(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A small model without training: what it says is of no matter here."""
    directory = tmp_path_factory.mktemp("served")
    paths = [directory / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(*paths, TokenizerConfig(vocab_size=700), num_pairs=300, seed=1)
    model = build_model("transformer", SIZES, tokenizer)
    about = {"src_lang": "ko", "tgt_lang": "en", "max_src_tokens": 30}
    save_bundle(directory / "ko-en", model, tokenizer, about=about)
    return directory / "ko-en"


@pytest.fixture(scope="module")
def server(folder, fork_server) -> Iterator[Server]:
    waiting = ["--batch-size", str(FULL), "--batch-wait-ms", "2000"]
    server = Server(fork_server, folder, *waiting, "--set", "watch_seconds=0.2")
    yield server
    server.close()


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_libretranslatepy_works_unchanged(server) -> None:
    client = LibreTranslateAPI(server.url)
    assert isinstance(client.translate("나는 학생이다.", "ko", "en"), str)
    assert client.detect("나는 학생이다.")[0]["language"] == "ko"
    assert [one["code"] for one in client.languages()] == ["ko", "en"]
    with pytest.raises(urllib.error.HTTPError) as caught:
        client.translate("나는 학생이다.", "ko", "xx")
    assert caught.value.code == 400
    assert "no model translates ko to xx" in json.loads(caught.value.read())["error"]


def test_curl_works_as_in_libretranslate_s_documentation(server) -> None:
    curl = shutil.which("curl")
    if curl is None and not os.environ.get("CI"):
        pytest.skip("curl is not installed")

    def run(*words: str) -> Any:
        command = [curl, "-sS", "-X", "POST", f"{server.url}/translate", *words]
        done = subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
        return json.loads(done.stdout)

    texts = ["나는 학생이다.", "그는 간다.", "좋다."]
    body = json.dumps({"q": texts, "source": "ko", "target": "en"})
    as_json = run("-d", body, "-H", "Content-Type: application/json")["translatedText"]
    forms = [word for text in texts for word in ("-d", f"q={text}")]
    assert len(as_json) == FULL
    assert run(*forms, "-d", "source=ko", "-d", "target=en")["translatedText"] == as_json


def test_curl_sends_a_document_and_gets_it_back_whole(server, tmp_path) -> None:
    curl = shutil.which("curl")
    if curl is None and not os.environ.get("CI"):
        pytest.skip("curl is not installed")
    for name in ("a.docx", "a.html"):
        path = tmp_path / name
        path.write_bytes(SAMPLES[name])
        command = [curl, "-sS", f"{server.url}/translate_file", "-F", f"file=@{path}"]
        done = subprocess.run(
            [*command, "-F", "source=ko", "-F", "target=en"],
            check=True, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
        url = json.loads(done.stdout)["translatedFileUrl"]
        found = subprocess.run(
            [curl, "-sS", url], check=True, capture_output=True, timeout=PATIENCE
        ).stdout
        if name == "a.html":
            assert found.count(b"<a href='x'>") == found.count(b"</a>") == 1
            assert b'<html lang="en">' in found
            assert b"<code>ls</code>" in found
            continue
        with zipfile.ZipFile(io.BytesIO(found)) as archive:
            assert archive.read("word/media/image1.png") == b"\x89PNG"
            body = archive.read("word/document.xml")
        assert body.count(b"<w:hyperlink ") == body.count(b"</w:hyperlink>") == 1
        assert body.count(b"<w:p>") == 5


def test_a_client_that_is_killed_leaves_nothing_behind(server) -> None:
    body = json.dumps({"q": SECRET, "source": "ko", "target": "en"}).encode()
    head = (
        f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode()
    gone = 'attendo_requests_total{method="POST",route="/translate",status="499"}'
    translated, before = server.count("attendo_texts_total"), server.count(gone)
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
        client.sendall(head + body)
        wait_until(lambda: server.count("attendo_queue_texts") == 1)
    wait_until(lambda: server.count(gone) == before + 1)
    assert server.count("attendo_queue_texts") == 0
    server.ask("/translate", {"q": ["가"] * FULL, "source": "ko", "target": "en"})
    assert server.count("attendo_texts_total") == translated + FULL  # and not one more


def test_a_body_that_never_comes_does_not_stop_the_others(server) -> None:
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nabc"
    clients = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(20)]
    for client in clients:
        client.sendall(head)
    reported = server.ask("/translate", {"q": ["가"] * FULL, "source": "ko", "target": "en"})
    assert len(reported["translatedText"]) == FULL
    for client in clients:
        client.close()


def test_a_length_that_is_too_large_is_rejected_before_it_is_sent(server) -> None:
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
        client.sendall(head)
        assert client.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_changed_folder_is_served_without_a_restart(server, folder) -> None:
    bundle = load_bundle(folder)
    about = {**bundle.about, "tgt_lang": "de"}
    save_bundle(folder, bundle.model, bundle.tokenizer, about=about)
    wait_until(lambda: server.ask("/languages")[0]["targets"] == ["de", "ko"])
    reported = server.ask("/translate", {"q": ["가"] * FULL, "source": "ko", "target": "de"})
    assert len(reported["translatedText"]) == FULL
    save_bundle(folder, bundle.model, bundle.tokenizer, about=bundle.about)
    wait_until(lambda: server.ask("/languages")[0]["targets"] == ["en", "ko"])


def test_sigterm_finishes_what_was_started(server) -> None:
    """The last one with this server."""
    with ThreadPoolExecutor(1) as pool:
        body = {"q": SECRET, "source": "ko", "target": "en"}
        started = pool.submit(server.ask, "/translate", body)
        wait_until(lambda: server.count("attendo_queue_texts") == 1)
        assert server.end() == 0
        assert "translatedText" in started.result(PATIENCE)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    lines = [json.loads(line) for line in server.log]  # every line is JSON
    assert {line["event"] for line in lines} >= {"request"}
    assert SECRET not in "".join(server.log)


def test_several_processes_share_a_port(folder) -> None:
    # With "auto" each process would choose its engine by a measurement.
    server = Server(NewInterpreter(), folder, "--workers", "2", "--engine", "attendo")
    try:
        asked = {"q": ["나는 학생이다."], "source": "ko", "target": "en"}
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: server.ask("/translate", asked), range(16)))
        assert answers == answers[:1] * len(answers)
        assert server.end() == 0
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)  # the workers too: they hold the pipes
        server.close()


def test_what_cannot_be_loaded_is_reported_in_plain_words(folder, tmp_path, fork_server) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    (broken / "model.safetensors").write_bytes(b"no weights")
    done = fork_server.run(["serve", broken, "--port", "0"], timeout=PATIENCE)
    assert done.returncode == 2
    assert "model.safetensors cannot be read" in done.stderr
    assert "Traceback" not in done.stderr
