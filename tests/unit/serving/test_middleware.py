from __future__ import annotations

import asyncio
import json
import logging

import pytest

from attendo.core.logs import get_logger
from attendo.serving.access_log import JsonFormatter
from attendo.serving.config import ServeConfig
from attendo.serving.file_store import FileStore
from attendo.serving.metrics import Metrics
from attendo.serving.middleware import GatewayMiddleware
from attendo.serving.rate_limit import RateLimiter

KEY, OTHER = "a-long-secret-key", "another-secret-key"
ASK = {"q": "hallo", "source": "ko", "target": "en"}


@pytest.fixture
def log():
    """The lines that the server would write, as it would write them."""
    lines: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(JsonFormatter().format(record))

    handler, logger = Keep(), get_logger("attendo.serving")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_every_answer_has_the_headers_that_keep_a_browser_safe(make_client) -> None:
    with make_client() as client:
        answers = [
            client.get("/"), client.get("/health"), client.get("/no/such/place"),
            client.post("/translate", json=ASK), client.post("/translate", json={}),
        ]  # fmt: skip
        for answer in answers:
            assert "script-src 'self'" in answer.headers["content-security-policy"]
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert "server" not in answer.headers
        assert len({answer.headers["x-request-id"] for answer in answers}) == len(answers)


def test_a_body_that_is_too_large_is_refused_told_or_not(make_client, shouter) -> None:
    with make_client(max_body_bytes=2000, max_file_bytes=1000) as client:
        answer = client.post("/translate", content=b"x" * 2001)
        assert (answer.status_code, answer.json()) == (
            413,
            {"error": "the request is larger than 2000 bytes"},
        )
        answer = client.post("/translate", content=(b"x" * 500 for _ in range(5)))
        assert answer.status_code == 413
        assert client.post("/translate", json={**ASK, "q": "x" * 1000}).status_code == 200
    assert len(shouter.batches) == 1


class TestKeys:
    @pytest.fixture
    def client(self, make_client):
        with make_client(api_keys=[KEY, OTHER]) as client:
            yield client

    @pytest.mark.parametrize(
        "request_",
        [
            {"json": {**ASK, "api_key": KEY}},
            {"data": {**ASK, "api_key": OTHER}},
            {"json": ASK, "headers": {"Authorization": f"Bearer {KEY}"}},
            {"json": ASK, "params": {"api_key": KEY}},
            {"data": {**ASK, "api_key": KEY}, "files": {"x": b""}},
        ],
        ids=["json", "form", "bearer", "query", "multipart"],
    )
    def test_a_key_is_taken_where_clients_put_it(self, client, request_) -> None:
        answer = client.post("/translate", **request_)
        assert answer.status_code in (200, 400)  # a file more is not /translate's to take
        assert (answer.status_code == 400) == ("files" in request_)

    @pytest.mark.parametrize(
        ("request_", "told"),
        [
            ({"json": ASK}, "an API key is required"),
            ({"json": {**ASK, "api_key": "wrong-secret-key"}}, "Invalid API key"),
            ({"json": {**ASK, "api_key": 7}}, "an API key is required"),
            ({"json": [KEY]}, "an API key is required"),
            ({"content": b"\xff\xfe"}, "an API key is required"),
            ({"json": ASK, "headers": {"Authorization": f"Basic {KEY}"}}, "an API key is required"),
            ({"json": ASK, "headers": {"Authorization": f"Bearer {KEY}x"}}, "Invalid API key"),
        ],
    )
    def test_without_a_right_key_nothing_is_done(self, client, shouter, request_, told) -> None:
        answer = client.post("/translate", **request_)
        assert (answer.status_code, answer.json()["error"]) == (403, told)
        assert shouter.batches == []

    def test_what_a_page_must_know_is_open_and_the_figures_are_not(self, client) -> None:
        for path in ("/", "/health", "/languages", "/frontend/settings", "/openapi.json"):
            assert client.get(path).status_code == 200
        assert client.get("/metrics").status_code == 403
        assert client.get("/v1/runs").status_code == 403
        assert client.get("/metrics", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_who_asks_too_often_is_told_when_to_come_again(make_client) -> None:
    with make_client(requests_per_minute=2) as client:
        assert [client.post("/translate", json=ASK).status_code for _ in range(3)] == [
            200,
            200,
            429,
        ]
        answer = client.post("/detect", json={"q": "x"})
        assert answer.status_code == 429
        assert 1 <= int(answer.headers["retry-after"]) <= 30
        assert client.get("/languages").status_code == 200  # reading is free


def test_keys_have_a_limit_each(make_client) -> None:
    with make_client(requests_per_minute=1, api_keys=[KEY, OTHER]) as client:
        ask = [client.post("/translate", json={**ASK, "api_key": key}) for key in (KEY, OTHER, KEY)]
        assert [answer.status_code for answer in ask] == [200, 200, 429]
        wrong = [client.post("/translate", json={**ASK, "api_key": "x" * 9}) for _ in range(2)]
        assert [answer.status_code for answer in wrong] == [403, 429]  # nobody guesses for long


def test_a_bucket_fills_with_time_and_memory_is_bounded() -> None:
    now = 0.0
    limit = RateLimiter(60, max_clients=3, clock=lambda: now)
    assert [limit.acquire("a") for _ in range(60)] == [0.0] * 60
    assert limit.acquire("a") == pytest.approx(1.0)
    now = 2.5
    assert [limit.acquire("a"), limit.acquire("a")] == [0.0, 0.0]
    assert limit.acquire("a") == pytest.approx(0.5)
    for name in "bcdef":
        assert limit.acquire(name) == 0.0
    assert len(limit) == 3


def test_an_unexpected_error_tells_nothing_to_the_client_and_no_text_to_the_log(
    make_client, log
) -> None:
    with make_client() as client:
        answer = client.post("/translate", json={**ASK, "q": "boom, my private letter"})
        assert (answer.status_code, answer.json()) == (500, {"error": "internal error"})
        assert client.post("/translate", json=ASK).json() == {"translatedText": "HALLO"}
    errors = [json.loads(line) for line in log if "internal error" in line]
    assert [error["request"] for error in errors] == [answer.headers["x-request-id"]]
    assert errors[0]["traceback"][0] == "RuntimeError"
    assert "private" not in "".join(log)
    assert "secret" not in "".join(log)


def test_the_log_has_a_line_a_request_and_never_what_was_written(make_client, log) -> None:
    with make_client() as client:
        client.post("/translate", json={**ASK, "q": "my private letter"})
        client.post("/translate?q=private", data={"target": "private"})
        client.get("/my/private/path")
        client.get("/app/private")
        client.request("PRIVATE", "/")
    lines = [json.loads(line) for line in log]
    assert [(one["route"], one["status"]) for one in lines] == [
        ("/translate", 200), ("/translate", 400), ("other", 404), ("/app/{path:path}", 404),
        ("/", 405),
    ]  # fmt: skip
    assert all(one["milliseconds"] >= 0 for one in lines)
    assert "private" not in "".join(log).lower()


def test_another_site_is_let_in_only_by_name(make_client) -> None:
    asked = {"Origin": "https://example.org"}
    with make_client() as client:
        assert "access-control-allow-origin" not in client.get("/health", headers=asked).headers
    with make_client(origins=["https://example.org"]) as client:
        answer = client.post("/translate", json=ASK, headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://example.org"
        other = client.get("/health", headers={"Origin": "https://example.com"})
        assert "access-control-allow-origin" not in other.headers


def test_the_shelf_forgets_by_time_number_and_bytes() -> None:
    now = 0.0
    shelf = FileStore(max_files=3, max_bytes=10, seconds=60, clock=lambda: now)
    put = lambda content: shelf.add(content, media_type="text/plain", name="x")  # noqa: E731
    first = put(b"one")
    assert shelf.get(first).content == b"one"
    now = 59.0
    second = put(b"two")
    now = 60.0
    assert shelf.get(first) is None
    assert shelf.get(second).content == b"two"
    keys = [put(b"x") for _ in range(3)]
    assert shelf.get(second) is None
    assert all(shelf.get(key) for key in keys)
    large = put(b"x" * 9)
    assert [shelf.get(key) is not None for key in (*keys, large)] == [False, False, True, True]
    assert shelf.get(put(b"x" * 11)) is None
    assert shelf.get("../../etc/passwd") is None


def test_a_korean_key_works_as_bearer(make_client):
    key = "열쇠열쇠열쇠열쇠"  # its last byte is a white space of Latin-1
    with make_client(api_keys=[key]) as client:
        headers = {"Authorization": f"Bearer {key}".encode()}
        assert client.post("/detect", data={"q": "나는"}, headers=headers).status_code == 200


def test_what_is_cut_off_at_the_end_is_asked_to_come_back():
    """A server that may not wait any longer cancels what is still at work."""
    sent = []

    async def work_for_ever(_scope, _receive, _send):
        await asyncio.sleep(30.0)

    messages = [{"type": "http.request", "body": b"", "more_body": False}]

    async def wait():
        return messages.pop() if messages else await asyncio.sleep(30.0)

    async def keep(message):
        sent.append(message)

    async def run():
        config = ServeConfig(models=["somewhere"], log_requests=False)
        guard = GatewayMiddleware(work_for_ever, config=config, metrics=Metrics())
        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        task = asyncio.ensure_future(guard(scope, wait, keep))
        await asyncio.sleep(0.05)
        task.cancel()
        await task

    asyncio.run(run())
    assert sent[0]["status"] == 503
    assert (b"retry-after", b"1") in sent[0]["headers"]
    assert b"shutting down" in sent[1]["body"]
