"""Findings about what the server answers; the names have their numbers."""

from __future__ import annotations

import json
from time import perf_counter

import pytest
from support.live_server import LiveServer, make_request, read_answer


def measure_requests(server: LiveServer, *, is_kept: bool) -> float:
    """Return the seconds of the fastest of several requests."""
    request = make_request("GET", "/health")
    connection = server.connect()
    seconds = []
    for _ in range(20):
        start = perf_counter()
        if not is_kept:
            connection.close()
            connection = server.connect()
        connection.sendall(request)
        assert read_answer(connection).status == 200
        seconds.append(perf_counter() - start)
    connection.close()
    return min(seconds)


def test_s1_kept_connections_are_as_fast_as_new_ones(server):
    """Each answer on a kept connection was 40 ms late, the delay of an acknowledgement."""
    new = measure_requests(server, is_kept=False)
    assert measure_requests(server, is_kept=True) < max(8 * new, 0.03)


def count_reads(server: LiveServer) -> int:
    """Return in how many parts the events of a stream arrive."""
    with server.connect() as connection:
        connection.sendall(make_request("POST", "/v1/stream", {"text": "나는 학생이다."}))
        received, num_reads = b"", 0
        while b"event: done" not in received:
            received += connection.recv(65_536)
            num_reads += 1
    assert received.count(b"event: token") > 8
    return num_reads


def test_s1_a_stream_arrives_event_by_event(server):
    """All events arrived in two parts."""
    assert max(count_reads(server) for _ in range(5)) > 4


def test_s9_another_host_is_rejected(server):
    assert server.ask("GET", "/v1/runs", Host="evil.example").status == 421


@pytest.mark.parametrize("path", ["/", "/health"])
def test_s10_head_is_answered(server, path):
    answer = server.ask("HEAD", path)
    assert (answer.status, answer.body) == (200, b"")


def test_s11_the_api_has_a_page_and_a_whole_description(server, keyed_server):
    assert server.ask("GET", "/docs").status == 200
    schema = keyed_server.ask("GET", "/openapi.json").json
    assert schema["components"]["securitySchemes"]
    assert (
        "application/json" not in schema["paths"]["/metrics"]["get"]["responses"]["200"]["content"]
    )
    for path in ("/translate", "/languages"):
        (operation,) = (schema["paths"][path][name] for name in ("get", "post")
                        if name in schema["paths"][path])  # fmt: skip
        assert operation["responses"]["200"]["content"]["application/json"]["example"]
    assert "/download_file/{key}" in schema["paths"]


def test_s12_a_server_without_a_cache_warns_only_of_a_slower_engine(
    model_folder, fork_server, tmp_path
):
    """The cache cannot be written: the conversion goes to a temporary folder instead."""
    unusable = tmp_path / "file"
    unusable.write_text("")
    env = {"HOME": str(unusable), "TMPDIR": str(tmp_path)}
    env |= dict.fromkeys(("XDG_CACHE_HOME", "ATTENDO_CACHE"), f"{unusable}/x")
    server = LiveServer(fork_server, model_folder, **env)
    try:
        assert server.ask("POST", "/v1/translate", {"text": "나는"}).status == 200
        server.end()
        assert "engine 'ctranslate2'" in "".join(server.log)
    finally:
        server.close()


def test_s13_auto_detects_on_all_routes(server):
    body = {"text": "나는 학생이다.", "source": "auto"}
    assert server.ask("POST", "/v1/translate", body).json["detected"]["language"] == "ko"


def test_s14_the_detector_can_return_none_of_these(server):
    guesses = server.ask("POST", "/detect", {"q": "これは日本語です。"}).json
    assert max(guess["confidence"] for guess in guesses) < 50
    french = {"q": "Bonjour, je suis étudiant.", "source": "auto", "target": "en"}
    assert server.ask("POST", "/translate", french).status == 400


def test_s15_addresses_and_emoji_are_copied_and_reported(server):
    source = "https://a.kr/1 😀"
    (found,) = server.ask("POST", "/v1/translate", {"text": source}).json["translations"]
    assert found["text"] == source
    assert [note["code"] for note in found["note_details"]] == ["copied_words"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/translate", b'{"q": NaN, "q": "a", "source": "ko", "target": "en"}', 400),
        ("/v1/translate", b'\xef\xbb\xbf{"text": "a"}', 200),
        ("/v1/translate", json.dumps({"text": "a" * 6000}).encode(), 413),
        ("/v1/lessons/99", b'{"lang": "en"}', 404),
    ],
    ids=["nan", "byte order mark", "too long", "no lesson"],
)
def test_s17_statuses_and_json_are_those_of_the_guide(server, path, body, status):
    assert server.ask("POST", path, body).status == status


def test_s17_a_compressed_body_is_named(server):
    assert server.ask("POST", "/translate", b"x", Content_Encoding="gzip").status == 415


def test_s17_pages_are_compressed_and_a_weak_etag_is_known(server):
    answer = server.ask("GET", "/", Accept_Encoding="gzip")
    assert answer.headers["content-encoding"] == "gzip"
    tag = "W/" + answer.headers["etag"].removeprefix("W/")
    assert server.ask("GET", "/", If_None_Match=tag).status == 304


def test_s17_a_wrong_type_is_reported_without_the_names_of_the_parser(server):
    error = server.ask("POST", "/translate", {"q": 5, "target": "en"}).json["error"]
    assert "q.str" not in error


def test_s17_a_short_key_is_not_repeated(model_folder, fork_server):
    words = ["serve", model_folder, "--port", "0"]
    process = fork_server.start(words, env={"ATTENDO_API_KEYS": "tooshrt"})
    output, errors = process.communicate()
    assert process.returncode != 0
    assert "tooshrt" not in output + errors


def test_s17_euc_kr_files_are_read_and_pages_named_again(server):
    page = '<html lang="ko"><meta charset="euc-kr"><p>나는 학생이다.</p></html>'.encode("euc-kr")
    fields = b"".join(
        f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
        for name, value in {"source": "ko", "target": "en"}.items()
    )
    head = b'--B\r\nContent-Disposition: form-data; name="file"; filename="a.html"\r\n\r\n'
    body = fields + head + page + b"\r\n--B--\r\n"
    kind = "multipart/form-data; boundary=B"
    url = server.ask("POST", "/translate_file", body, Content_Type=kind).json["translatedFileUrl"]
    made = server.ask("GET", "/" + url.partition("//")[2].partition("/")[2]).body.decode()
    assert 'lang="en"' in made
    assert "utf-8" in made.lower()
