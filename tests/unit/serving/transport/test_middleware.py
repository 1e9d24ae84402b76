from __future__ import annotations

import asyncio
import dataclasses
import json
import logging

import pytest

from attendo.core.logs import get_logger
from attendo.serving import openapi
from attendo.serving.config import ServeConfig
from attendo.serving.file_store import FileStore
from attendo.serving.metrics import MAX_RENDER_SHARE, Metrics
from attendo.serving.transport import api_keys, authorization, protocol, uvicorn_server
from attendo.serving.transport.access_log import NETWORK_MODULES, JsonFormatter, RepetitionFilter
from attendo.serving.transport.middleware import GatewayMiddleware
from attendo.serving.transport.rate_limit import RateLimiter

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


def test_a_body_that_is_too_large_is_rejected_with_and_without_length(
    make_client, shouter, monkeypatch
) -> None:
    monkeypatch.setattr("attendo.serving.transport.request_body.DISCARD_SECONDS", 0.0)
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
        ("request_", "reported"),
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
    def test_without_a_right_key_nothing_is_done(self, client, shouter, request_, reported) -> None:
        answer = client.post("/translate", **request_)
        assert (answer.status_code, answer.json()["error"]) == (403, reported)
        assert shouter.batches == []

    def test_what_a_page_must_know_is_open_and_the_figures_are_not(self, client) -> None:
        for path in ("/", "/health", "/languages", "/frontend/settings", "/openapi.json"):
            assert client.get(path).status_code == 200
        assert client.get("/metrics").status_code == 403
        assert client.get("/v1/runs").status_code == 403
        assert client.get("/metrics", headers={"Authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_rate_limited_client_learns_when_to_retry(make_client) -> None:
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


def test_an_unexpected_error_reports_nothing_to_the_client_and_no_text_to_the_log(
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


def test_the_store_evicts_by_time_number_and_bytes() -> None:
    now = 0.0
    store = FileStore(max_files=3, max_bytes=10, seconds=60, clock=lambda: now)
    put = lambda content: store.add(content, media_type="text/plain", name="x")  # noqa: E731
    first = put(b"one")
    assert store.get(first).content == b"one"
    now = 59.0
    second = put(b"two")
    now = 60.0
    assert store.get(first) is None
    assert store.get(second).content == b"two"
    keys = [put(b"x") for _ in range(3)]
    assert store.get(second) is None
    assert all(store.get(key) for key in keys)
    large = put(b"x" * 9)
    assert [store.get(key) is not None for key in (*keys, large)] == [False, False, True, True]
    assert store.get(put(b"x" * 11)) is None
    assert store.get("../../etc/passwd") is None


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


@pytest.mark.parametrize(
    ("host", "status"),
    [("localhost", 200), ("127.0.0.1:8765", 200), ("[::1]:8765", 200), ("LOCALHOST.", 200),
     ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("[2001:db8::1]", 421),
     ("localhost:80@evil.example", 421), ("localhost:evil.example", 421), ("[::1]evil", 421),
     ("[::1", 421), ("localhost,evil.example", 421), ("127.1", 421), ("127.0.0.1 evil", 421)],
)  # fmt: skip
def test_a_local_server_answers_only_to_its_own_names(make_client, host, status) -> None:
    """A page can point its own name at 127.0.0.1 (DNS rebinding)."""
    with make_client() as client:
        assert client.get("/languages", headers={"Host": host}).status_code == status
        assert client.get("/health", headers={"Host": host}).status_code == 200


def test_names_can_be_added_and_other_addresses_have_none(make_client) -> None:
    asked = {"Host": "translate.example.org"}
    for settings in ({"hosts": ["translate.example.org"]}, {"hosts": ["*"]}, {"host": "0.0.0.0"}):  # noqa: S104
        with make_client(**settings) as client:
            assert client.get("/languages", headers=asked).status_code == 200
    with make_client(host="0.0.0.0", hosts=["other.example.org"]) as client:  # noqa: S104
        assert client.get("/languages", headers=asked).status_code == 421


def test_head_has_the_head_of_get_and_no_body(make_client) -> None:
    with make_client() as client:
        for path in ("/", "/health", "/languages", "/v1/runs", "/metrics", "/openapi.json"):
            expected, answer = client.get(path), client.head(path)
            assert (answer.status_code, answer.content) == (200, b"")
            assert answer.headers["content-type"] == expected.headers["content-type"]
            assert "content-length" in answer.headers
        assert client.head("/nothing").status_code == 404
        assert client.head("/translate").status_code == 405


def test_a_response_is_compressed_only_for_clients_that_accept_it(make_client) -> None:
    """Found in review: `gzip;q=0` means that it is not accepted."""
    with make_client() as client:
        for accepted, encoding in (("gzip", "gzip"), ("gzip;q=0", None), ("identity", None)):
            answer = client.get("/openapi.json", headers={"Accept-Encoding": accepted})
            assert answer.headers.get("content-encoding") == encoding
            assert answer.json()["info"]["title"] == "Attendo"


def test_the_schema_is_built_again_only_if_it_changes(make_client, monkeypatch) -> None:
    """Found in review: four clients that read it slowed the others by a factor of five."""
    built: list[int] = []
    build = openapi.build_schema
    monkeypatch.setattr(openapi, "build_schema", lambda app: built.append(1) or build(app))
    with make_client() as client:
        first = client.get("/openapi.json").content
        assert client.get("/openapi.json").content == first
        assert len(built) == 1
        registry = client.app.state.service.registry
        registry.add(dataclasses.replace(registry.models[0], src="de"))
        assert client.get("/openapi.json").content != first


def test_metrics_take_a_share_of_the_time(monkeypatch) -> None:
    now = 0.0

    def tick() -> float:
        nonlocal now
        now += 1.0
        return now

    monkeypatch.setattr("attendo.serving.metrics.perf_counter", tick)
    monkeypatch.setattr("attendo.serving.metrics.MAX_AGE_SECONDS", float("inf"))
    counted: list[int] = []
    metrics = Metrics()
    for _ in range(50):
        metrics.render(lambda: counted.append(1) or {})
    assert 1 < len(counted) <= 1 + 50 * MAX_RENDER_SHARE


def test_a_compressed_body_is_rejected_by_name(make_client) -> None:
    with make_client() as client:
        answer = client.post("/translate", content=b"x", headers={"Content-Encoding": "gzip"})
        assert answer.status_code == 415
        assert client.post("/translate", json=ASK, headers={"Content-Encoding": "identity"})


def test_wrong_keys_are_limited_for_every_method_and_without_a_rate_limit(make_client) -> None:
    with make_client(api_keys=[KEY]) as client:
        right = {"Authorization": f"Bearer {KEY}"}
        codes = [
            client.get("/metrics", headers={"Authorization": f"Bearer wrong-key-{number}"})
            for number in range(30)
        ]
        assert [one.status_code for one in codes] == [403] * 20 + [429] * 10
        assert "retry-after" in codes[-1].headers
        assert client.get("/metrics", headers=right).status_code == 429  # or guesses could go on
        assert client.get("/health").status_code == 200


def test_rejected_requests_are_delayed_and_do_not_read_large_bodies(
    make_client, monkeypatch
) -> None:
    """Found in review: clients that guess keys took the computing time of the others."""
    with make_client(api_keys=[KEY]) as client:
        for number in range(authorization.REJECTIONS_PER_MINUTE):
            headers = {"Authorization": f"Bearer wrong-key-{number}"} if number % 2 else {}
            answer = client.get("/metrics", headers=headers)
            assert answer.status_code in (403, 429)
            assert "connection" not in answer.headers
        monkeypatch.setattr(authorization, "REJECTION_SECONDS", 0.001)
        parsed: list[int] = []
        monkeypatch.setattr(api_keys, "parse_json", lambda body: parsed.append(len(body)) or {})
        answer = client.post("/translate", json={**ASK, "q": "x" * 100_000})
        assert answer.status_code == 403
        assert answer.headers["connection"] == "close"
        assert parsed == [0]  # without the body
        assert client.get("/health").status_code == 200


def test_a_key_that_was_used_before_is_not_blocked_by_a_neighbor(make_client) -> None:
    with make_client(api_keys=[KEY]) as client:
        right = {"Authorization": f"Bearer {KEY}"}
        assert client.get("/metrics", headers=right).status_code == 200
        for number in range(30):
            client.get("/metrics", headers={"Authorization": f"Bearer wrong-key-{number}"})
        assert client.get("/metrics", headers=right).status_code == 200


def test_reading_has_a_limit_of_its_own(make_client) -> None:
    with make_client(requests_per_minute=1) as client:
        codes = [client.get("/languages").status_code for _ in range(12)]
        assert codes == [200] * 10 + [429] * 2
        assert client.post("/translate", json=ASK).status_code == 200
        assert client.get("/").status_code == client.get("/health").status_code == 200


def test_a_message_that_repeats_is_counted_instead() -> None:
    now = 0.0
    keep = RepetitionFilter(2, seconds=60.0, clock=lambda: now)

    def make() -> logging.LogRecord:
        return logging.LogRecord("asyncio", logging.ERROR, "", 0, "out of %s", ("files",), None)

    assert [keep.filter(make()) for _ in range(1000)] == [True, True] + [False] * 998
    now = 61.0
    record = make()
    assert keep.filter(record)
    assert json.loads(JsonFormatter().format(record))["repeated"] == 998


def test_messages_that_clients_cause_are_limited():
    assert {protocol.__name__, uvicorn_server.__name__} == set(NETWORK_MODULES)
