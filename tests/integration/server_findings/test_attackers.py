"""Findings about clients that take the server away from others; the names have their numbers.

The first, late answers on kept connections, is tested by their socket options
(`tests/unit/serving/transport/test_uvicorn_server.py`).
"""

from __future__ import annotations

import json
import resource
import shutil
import socket
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.live_server import OTHER_ADDRESS, PATIENCE, LiveServer, make_request, read_answer

SENTENCE = "나는 학생이다. "


def count_answers_while(server: LiveServer, heavy: bytes) -> int:
    """Return how many small requests are answered while a heavy one of another client works."""
    done = threading.Event()

    def send_heavy() -> None:
        with server.connect(OTHER_ADDRESS) as connection:
            connection.sendall(heavy)
            read_answer(connection)
        done.set()

    thread = threading.Thread(target=send_heavy)
    thread.start()
    num_answered = 0
    small = {"text": SENTENCE.strip()}
    while not done.is_set():
        assert server.ask("POST", "/v1/translate", small).status == 200
        num_answered += not done.is_set()
    thread.join()
    return num_answered


@pytest.mark.parametrize(("name", "num_texts"), [("server", 16), ("slot_server", 4)])
def test_s2_a_heavy_request_lets_small_ones_of_others_in_between(request, name, num_texts):
    heavy = {"text": [SENTENCE * 100] * num_texts, "beam_size": 4, "n_best": 2}
    content = make_request("POST", "/v1/translate", heavy, Connection="close")
    assert count_answers_while(request.getfixturevalue(name), content) >= 2


def test_s2_clients_that_disconnect_leave_the_slots(slot_server):
    heavy = make_request("POST", "/v1/translate", {"text": [SENTENCE * 100] * 16})
    for _ in range(8):
        with slot_server.connect(OTHER_ADDRESS) as connection:
            connection.sendall(heavy)
            slot_server.ask("POST", "/v1/translate", {"text": "나는"})
    deadline = time.monotonic() + PATIENCE
    while (used := read_metrics(slot_server, "slots_in_use", "queue_texts")) != [0.0, 0.0]:
        assert time.monotonic() < deadline, used


def read_metrics(server: LiveServer, *names: str) -> list[float]:
    lines = server.ask("GET", "/metrics").body.decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return [float(values[f'attendo_{name}{{model="ko-en"}}']) for name in names]


def test_s3_a_file_without_line_breaks_is_translated_in_pieces(server):
    content = (SENTENCE * 4000).encode()
    fields = {"source": "ko", "target": "en"}
    parts = [
        f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in fields.items()
    ]
    head = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    body = b"".join([*parts, head, content, b"\r\n--B--\r\n"])
    kind = "multipart/form-data; boundary=B"
    request = make_request("POST", "/translate_file", body, Content_Type=kind, Connection="close")
    assert count_answers_while(server, request) >= 2


def test_s4_idle_connections_of_one_address_are_limited(server):
    connections = [server.connect(OTHER_ADDRESS) for _ in range(300)]
    assert server.ask("GET", "/health").status == 200
    num_open = 0
    for connection in connections:
        connection.setblocking(False)
        try:
            num_open += connection.recv(1) != b""
        except BlockingIOError:
            num_open += 1
        except OSError:
            pass
        connection.close()
    assert 0 < num_open <= 256


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit")
def test_s4_more_connections_than_open_files_stop_nobody(model_folder, fork_server):
    """The server wrote 421,532 lines in 12 s, and served nobody."""
    server = LiveServer(fork_server, model_folder, "--set", "max_connections=160")
    try:
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        connections = [server.connect() for _ in range(400)]  # a proxy has no limit of its own
        for _ in range(3):
            assert server.ask("POST", "/v1/translate", {"text": "나는"}).status == 200
        for connection in connections:
            connection.close()
        assert server.end() == 0
        assert all(line.startswith("{") for line in server.log)
        assert len(server.log) < 400
    finally:
        server.close()


def test_s4_a_connection_without_a_request_is_closed(model_folder, fork_server):
    server = LiveServer(fork_server, model_folder, "--set", "head_timeout=0.2")
    try:
        with server.connect() as idle, server.connect() as slow:
            slow.sendall(b"GET /health HTTP/1.1\r\nX-A: b\r\n")
            assert idle.recv(1) == b""
            assert read_answer(slow).status == 408
    finally:
        server.close()


def test_s5_an_endless_body_is_cut_off(server):
    """After 413 the server went on reading for ever."""
    chunk = b"10000\r\n" + b"a" * 0x10000 + b"\r\n"
    head = make_request("POST", "/translate", Transfer_Encoding="chunked")
    num_sent = 0
    with server.connect() as connection, suppress(ConnectionError):
        connection.sendall(head)
        while num_sent < 1000:
            connection.sendall(chunk)
            num_sent += 1
    assert num_sent < 1000


def test_s5_a_body_in_tiny_chunks_is_rejected(server):
    head = make_request("POST", "/translate", Transfer_Encoding="chunked")
    with server.connect() as connection:
        connection.sendall(head + b"1\r\na\r\n" * 20_000)
        assert read_answer(connection).status == 400


def test_s6_a_deleted_folder_changes_nothing(doomed_folder, fork_server):
    server = LiveServer(fork_server, doomed_folder, "--set", "watch_seconds=0.1")
    try:
        body = {"text": SENTENCE.strip(), "alignment": True}
        assert server.ask("POST", "/v1/translate", {"text": "나는"}).status == 200
        shutil.rmtree(doomed_folder)
        for path in ("/v1/translate", "/v1/inspect", "/v1/alternatives"):
            sent = body if path == "/v1/translate" else {"text": body["text"]}
            answer = server.ask("POST", path, sent)
            assert answer.status == 200
            assert str(doomed_folder.parent).encode() not in answer.body
        server.wait_for_log("the folder of ko-en has been deleted")
    finally:
        server.close()


@pytest.mark.parametrize("folder", ["served", "unknown"])
def test_s6_a_guessed_path_is_not_confirmed(server, model_folder, folder):
    """The path of the served folder was answered by 503, any other one by 400."""
    path = str(model_folder if folder == "served" else model_folder.parent / "xx-yy")
    answer = server.ask("POST", "/v1/translate", {"text": "나는", "model": path})
    assert (answer.status, answer.json["error"].split("'")[0]) == (400, "no model ")


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="no prlimit")
def test_s7_an_upload_is_never_written_to_a_file(model_folder, fork_server):
    """Uploads above 1 MiB went to a temporary file."""
    server = LiveServer(fork_server, model_folder, "--set", "max_file_bytes=1900000")
    try:
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        page = f"<p>나는 학생이다.</p><!-- {'a' * 1_200_000} -->".encode()
        fields = b"".join(
            f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
            for name, value in {"source": "ko", "target": "en"}.items()
        )
        head = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n'
        body = fields + head + page + b"\r\n--B--\r\n"
        kind = "multipart/form-data; boundary=B"
        answer = server.ask("POST", "/translate_file", body, Content_Type=kind)
        assert answer.status == 200, answer.body
    finally:
        server.close()


def test_s16_reading_has_a_limit(model_folder, fork_server, tmp_path):
    words = ("--runs", tmp_path, "--requests-per-minute", "1")
    server = LiveServer(fork_server, model_folder, *words)
    try:
        codes = [server.ask("GET", "/v1/runs", source=OTHER_ADDRESS).status for _ in range(12)]
        assert codes == [200] * 10 + [429] * 2
    finally:
        server.close()


def test_s16_a_long_log_is_read_once(model_folder, fork_server, tmp_path):
    """Each look at a run read and parsed its whole log."""
    run = tmp_path / "runs" / "long"
    run.mkdir(parents=True)
    (run / "config.json").write_text("{}")
    line = json.dumps({"event": "train", "step": 1, "loss": 1.0}) + "\n"
    (run / "log.jsonl").write_text(line * 200_000)
    server = LiveServer(fork_server, model_folder, "--runs", run.parent)
    try:
        assert server.ask("GET", "/v1/runs/long/events?after=199999").json["next"] == 200_000
        before = read_bytes_of(server.process.pid)
        for _ in range(20):
            assert server.ask("GET", "/v1/runs/long/events?after=199999").status == 200
        assert read_bytes_of(server.process.pid) - before < 2 * len(line) * 200_000
    finally:
        server.close()


def read_bytes_of(pid: int) -> int:
    """Return how many bytes a process has read so far."""
    path = Path(f"/proc/{pid}/io")
    if not path.exists():
        pytest.skip("no /proc")
    facts = dict(line.split(": ") for line in path.read_text().splitlines())
    return int(facts["rchar"])


def test_s16_keys_cannot_be_guessed_by_get(keyed_server):
    codes = [
        keyed_server.ask("GET", "/metrics", Authorization=f"Bearer wrong-key-{number}").status
        for number in range(30)
    ]
    assert set(codes) == {403, 429}


def test_s17_bodies_that_stall_do_not_fill_the_memory(server):
    """The sum of all bodies had no limit; now the first ones of those are refused."""
    head = make_request("POST", "/translate", Content_Length="2000000")
    stalled = [server.connect(OTHER_ADDRESS) for _ in range(40)]
    for connection in stalled:
        with suppress(ConnectionError):
            connection.sendall(head + b"a" * 1_990_000)
    assert server.ask("POST", "/v1/translate", {"text": "나는"}).status == 200
    answer = read_answer(stalled[0])
    assert answer.status == 503
    assert "retry-after" in answer.headers
    for connection in stalled:
        connection.close()


def test_s17_a_client_that_only_stops_sending_gets_its_answer(server):
    with server.connect() as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(make_request("GET", "/health"))
        connection.shutdown(socket.SHUT_WR)
        assert json.loads(read_answer(connection).body) == {"status": "ok"}
