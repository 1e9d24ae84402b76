"""Requests that no friend would send, and what every answer to them must be.

Some are written by hand, some are put together by chance from their parts, some are made by
schemathesis out of the server's own OpenAPI schema. Whatever comes, an answer is no 5xx, an error
is JSON without a traceback, and nothing that was sent comes back as HTML. Used by
`benchmarks/serving_load.py --fuzz` and by tests/integration/test_serve_fuzz.py.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HOST = "127.0.0.1"
JSON = "application/json"
PATIENCE_SECONDS = 60.0
MARKER = "비밀문장"
"""Stands in texts that are sent, and must not stand in any log."""
SCRIPT = "<script>alert(1)</script><img src=x onerror=alert(1)>"
ROUTES: dict[str, dict[str, Any]] = {
    "/translate": {"q": "나는 학생이다.", "source": "ko", "target": "en"},
    "/detect": {"q": "나는 학생이다."},
    "/v1/translate": {"text": "나는 학생이다."},
    "/v1/stream": {"text": "나는 학생이다."},
    "/v1/alternatives": {"text": "나는 학생이다.", "prefix": "I"},
    "/v1/inspect": {"text": "나는 학생이다.", "target_text": "I am."},
    "/v1/score": {"pairs": [{"source_text": "나는", "target_text": "I"}]},
}
"""Every route that takes JSON, with a body that is good."""

TEXTS = (
    "", " ", "\n\n\n", "\x00", "\x00\x01\x02\x1b[31m\x7f", "\u202e\u2066\u200b\ufeff",
    "\ufffe\uffff", "a\u0301" * 300, "👩‍👩‍👧‍👦" * 50, "a" * 4000, "가" * 4000, "." * 4000,
    "▁" * 200, "<0x41>" * 50, "\U000e0041" * 50, SCRIPT, f"{MARKER} {SCRIPT}",
    "'; DROP TABLE models; --", "{{7*7}}${7*7}", "../../../../etc/passwd", "/etc/passwd",
    "file:///etc/passwd", "C:\\Windows\\win.ini", "%00%2e",
    "\r\nSet-Cookie: a=b", "나는 학생이다. " * 200, "\u2028\u2029\x85", "NaN", "</s><s><pad><unk>",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 0.5, -0.0, 1e308, 5e-324, [], {},
    [[]], [None], [1], {"": ""}, {"a": {"a": {"a": 1}}}, [["나는"]], ["나는"] * 200, "4", "true",
    *TEXTS,
)  # fmt: skip
NAMES = (
    "text", "q", "source", "target", "model", "beam_size", "n_best", "alpha", "confidence",
    "prefix", "alignment", "glossary", "required", "forbidden", "do_sample", "temperature", "top_k",
    "top_p", "seed", "split", "top", "pairs", "target_text", "ablation", "attribution",
    "format", "alternatives", "api_key", "__proto__", "constructor", "", "text\x00", SCRIPT,
)  # fmt: skip
KINDS = (
    JSON, "application/json; charset=utf-16", "text/plain", "text/html", "application/xml",
    "multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=a",
    "application/x-www-form-urlencoded", "application/octet-stream", "", "x" * 500, "a/b/c;;=;",
    "*/*",
)  # fmt: skip
BYTES = (
    b"", b"{", b"}", b"[", b"null", b"true", b"0", b'"', b'"text"', b"[]", b"{}", b"\xff\xfe\x00",
    b'{"text": "\xed\xa0\x80"}', b'{"text": "\xff"}', b'{"text": "\\ud800"}', b'{"text": NaN}',
    b'{"text": "a", "alpha": Infinity}', b'{"text": "a", "alpha": 1e999}', b"[" * 100_000,
    b'{"text":' * 50_000, b'{"text": "a", "text": "b"}', b'{"q": "a", "q": {}, "target": "en"}',
    b'{"text": "a", "seed": ' + b"9" * 5000 + b"}", b'{"text": "a"} trailing', b"\xef\xbb\xbf{}",
    '{"text": "a"}'.encode("utf-16"), b'{"text": "a\x00b"}', b"--a\r\n\r\n--a--",
    b"q=%ff%fe&target=en",
    b"q=a&target=en&" + b"x=1&" * 2000, b"\x1f\x8b\x08\x00\x00\x00\x00\x00", b"a" * 3_000_000,
)  # fmt: skip
PATHS = (
    "/../../etc/passwd", "/app/../../../etc/passwd", "/app/%2e%2e/%2e%2e/etc/passwd",
    "/app/..%5c..",
    "/app//etc/passwd", "/download_file/../../etc/passwd", "/download_file/%2e%2e%2fx",
    "/v1/runs/..",
    "/v1/runs/%2e%2e%2f%2e%2e", "/v1/runs/%00", "/v1/runs/%ff%fe", "/v1/runs/" + "a" * 5000,
    "/v1/runs/a/events?after=-1", "/v1/runs/a/events?after=x&wait=nan", "/%00", "/%ff", "/<script>",
    "/?" + "a=b&" * 500, "//evil.example/", "/v1", "/v1/", "/v1/nothing", "/translate/", "/.env",
    "/.git/config", "/openapi.json/..", "/translate?q=a&target=" + "x" * 3000, "/static/../app.py",
)  # fmt: skip
METHODS = ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "X" * 30)


class Ugly(NamedTuple):
    """A request, byte by byte."""

    name: str
    raw: bytes
    is_http: bool = True
    """False: so broken that the connection may just be closed."""


class Answer(NamedTuple):
    """What came back; status 0 is nothing at all."""

    status: int
    headers: dict[str, str]
    body: bytes


def make_request(
    method: str, path: str, body: bytes = b"", kind: str = JSON, **headers: str
) -> bytes:
    """Write a request."""
    told = {"Host": HOST, "Connection": "close", "Content-Length": str(len(body))}
    if kind:
        told["Content-Type"] = kind
    told |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def make_json(path: str, body: Any) -> bytes:
    """Write a request with JSON."""
    return make_request("POST", path, json.dumps(body, ensure_ascii=False).encode())


def exchange(port: int, request: Ugly) -> Answer:
    """Send a request, and read until the other side closes."""
    got = b""
    with socket.create_connection((HOST, port), timeout=PATIENCE_SECONDS) as talk:
        try:
            talk.sendall(request.raw)
            if not request.is_http:  # else the other side might wait for the rest
                talk.shutdown(socket.SHUT_WR)
        except OSError:  # it was enough for the other side
            pass
        try:
            while part := talk.recv(65_536):
                got += part
        except ConnectionResetError:
            pass
    return read_answer(got)


def read_answer(got: bytes) -> Answer:
    """Cut an answer into its parts."""
    head, _, body = got.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    words = first.split(" ")
    if len(words) < 2 or not words[1].isdecimal():
        return Answer(0, {}, got)
    pairs = (line.split(":", 1) for line in lines if ":" in line)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    if headers.get("transfer-encoding") == "chunked":
        body = b"".join(_read_chunks(body))
    return Answer(int(words[1]), headers, body)


def _read_chunks(body: bytes) -> Iterator[bytes]:
    while body:
        size, _, body = body.partition(b"\r\n")
        count = int(size or b"0", 16)
        yield body[:count]
        body = body[count + 2 :]


def judge(request: Ugly, answer: Answer) -> list[str]:
    """Name what is wrong with an answer."""
    faults = []
    if answer.status >= 500:
        faults.append(f"status {answer.status}")
    if answer.status == 0 and request.is_http:
        faults.append("no answer")
    if any(sign in answer.body for sign in (b"Traceback", b'File \\"', b'File "', b"root:x:")):
        faults.append("a traceback or a file")
    kind = answer.headers.get("content-type", "")
    if kind.startswith("text/html") and b"alert(1)" in answer.body:
        faults.append("a script came back as HTML")
    if answer.status and request.is_http:
        faults += _judge_form(request, answer, kind)
    return [f"{request.name}: {fault}: {answer.body[:200]!r}" for fault in faults]


def _judge_form(request: Ugly, answer: Answer, kind: str) -> list[str]:
    faults = []
    if answer.headers.get("x-content-type-options") != "nosniff":
        faults.append("no security headers")
    if answer.status >= 400 and not request.raw.startswith(b"HEAD"):
        try:
            is_error = isinstance(json.loads(answer.body)["error"], str) and kind == JSON
        except (ValueError, KeyError, TypeError):
            is_error = False
        faults += [] if is_error else ["an error that is no JSON"]
    return faults


def list_ugly(*, every: int = 1) -> Iterator[Ugly]:
    """Give the requests that were written by hand; of those that every route gets, a part."""
    yield from islice(list_bodies(), 0, None, every)
    for name in NAMES:
        yield Ugly(f"name {name[:20]!r}", make_json("/v1/translate", {"text": "a", name: "/etc"}))
    for path in PATHS:
        yield Ugly(f"path {path[:40]!r}", make_request("GET", path))
    for method in METHODS:
        yield Ugly(f"method {method[:20]!r}", make_request(method, "/v1/translate"))
    yield from list_broken()


def list_bodies() -> Iterator[Ugly]:
    """Give what is sent to every route that takes JSON."""
    for path, good in ROUTES.items():
        for place, body in enumerate(BYTES):
            yield Ugly(f"{path} bytes {place}", make_request("POST", path, body))
        for kind in KINDS:
            body = json.dumps(good).encode()
            yield Ugly(f"{path} as {kind[:40]!r}", make_request("POST", path, body, kind))
        field = next(iter(good))
        for place, value in enumerate(VALUES):
            yield Ugly(f"{path} value {place}", make_json(path, {**good, field: value}))


def list_broken() -> Iterator[Ugly]:
    """Give what is hardly HTTP any more."""
    good = b'{"text": "a"}'
    post = b"POST /v1/translate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
    yield Ugly("nothing", b"", is_http=False)
    yield Ugly("no HTTP", b"\x16\x03\x01\x02\x00hello\r\n\r\n", is_http=False)
    yield Ugly("half a head", post, is_http=False)
    yield Ugly("length too large", post + b"Content-Length: 99\r\n\r\n" + good, is_http=False)
    yield Ugly("length too small", post + b"Content-Length: 5\r\n\r\n" + good, is_http=False)
    yield Ugly("length below zero", post + b"Content-Length: -5\r\n\r\n" + good, is_http=False)
    yield Ugly("length no number", post + b"Content-Length: x\r\n\r\n" + good, is_http=False)
    twice = b"Content-Length: 1\r\nContent-Length: 13\r\n\r\n"
    yield Ugly("two lengths", post + twice + good, is_http=False)
    yield Ugly("a huge length", post + b"Content-Length: 99999999999999\r\n\r\n", is_http=False)
    yield Ugly("broken chunks", post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", is_http=False)
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
    yield Ugly("smuggled", post + both, is_http=False)
    yield Ugly("a huge head", post + b"X: " + b"a" * 200_000 + b"\r\n\r\n", is_http=False)
    yield Ugly("many heads", post + b"X: a\r\n" * 5000 + b"\r\n", is_http=False)
    yield Ugly("zeros in the path", b"GET /\x00\x00 HTTP/1.1\r\nHost: a\r\n\r\n", is_http=False)


def draw_ugly(seed: int) -> Iterator[Ugly]:
    """Put requests together by chance, without end."""
    chance = Random(seed)  # noqa: S311 - no secret
    number = 0
    while True:
        number += 1
        path, good = chance.choice(list(ROUTES.items()))
        kind = chance.choice(KINDS) if chance.random() < 0.1 else JSON
        yield Ugly(
            f"drawn {seed}.{number} {path}",
            make_request("POST", path, _draw_body(chance, dict(good)), kind),
        )


def _draw_body(chance: Random, body: dict[str, Any]) -> bytes:
    for _ in range(chance.randint(0, 4)):
        name = chance.choice((*body, *NAMES)) if body else chance.choice(NAMES)
        body[name] = chance.choice(VALUES)
        if chance.random() < 0.2:
            body.pop(chance.choice(list(body)))
    raw = bytearray(json.dumps(body, ensure_ascii=chance.random() < 0.5).encode())
    if chance.random() < 0.2:  # bytes that are turned, lost or doubled
        for _ in range(chance.randint(1, 5)):
            place = chance.randrange(len(raw) + 1)
            raw[place : place + chance.randint(0, 2)] = chance.randbytes(chance.randint(0, 3))
    return bytes(raw)


class Found(NamedTuple):
    """What schemathesis has done."""

    num_requests: int
    faults: list[str]


def run_schemathesis(port: int, *, examples: int, skip: Sequence[str] = ()) -> Found:
    """Send so many requests a route that keep to the schema, and as many that do not.

    Routes whose path ends with one of `skip` are left out.
    """
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from hypothesis.errors import Unsatisfiable
    from schemathesis.core.failures import FailureGroup
    from schemathesis.specs.openapi import checks

    keeps_to_schema = [
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    address = f"http://{HOST}:{port}"
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    faults: list[str] = []
    count = 0
    quiet = settings(
        max_examples=examples, deadline=None, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip

    def check(case: Any) -> None:
        nonlocal count
        count += 1
        response = case.call(base_url=address, timeout=PATIENCE_SECONDS)
        headers = {name.lower(): values[0] for name, values in response.headers.items()}
        answer = Answer(response.status_code, headers, response.content)
        name = f"{case.method} {case.path} {str(case.body)[:200]}"
        faults.extend(judge(Ugly(name, case.method.encode()), answer))
        if case.path.startswith("/v1"):
            try:
                case.validate_response(response, checks=keeps_to_schema)
            except FailureGroup as group:
                faults.extend(f"{name}: {failure.title}" for failure in group.exceptions)

    for found in schema.get_all_operations():
        operation: Any = cast("Any", found).ok()
        if operation.path.endswith(tuple(skip)):
            continue
        for mode in (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE):
            strategy = operation.as_strategy(generation_mode=mode)
            with suppress(Unsatisfiable):  # nothing can be wrong where nothing is sent
                quiet(given(case=strategy)(check))()
    return Found(count, faults)
