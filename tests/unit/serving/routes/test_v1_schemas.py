from __future__ import annotations

import json

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.testclient import TestClient

from attendo.core.errors import InputError
from attendo.serving.errors import to_error_response, to_input_error
from attendo.serving.limits import check_limits
from attendo.serving.routes import v1_schemas
from attendo.serving.strict_json import MAX_VALUES, StrictRoute

BODIES = [body for body in vars(v1_schemas).values()
          if isinstance(body, type) and issubclass(body, v1_schemas.RequestModel)]  # fmt: skip


@pytest.fixture(scope="module")
def client() -> TestClient:
    """An application that gives back what it has understood."""
    router = APIRouter(route_class=StrictRoute)

    @router.post("/")
    async def take(body: v1_schemas.TranslateRequest) -> dict[str, object]:
        return body.model_dump(exclude_unset=True)

    app = FastAPI()
    app.include_router(router)

    @app.exception_handler(RequestValidationError)
    async def refuse(_request, error):
        return to_error_response(to_input_error(error.errors()))

    return TestClient(app)


def send(client: TestClient, content: bytes, kind: str = "application/json") -> tuple[int, str]:
    answer = client.post("/", content=content, headers={"Content-Type": kind})
    return answer.status_code, answer.json().get("error", "")


def test_a_good_body_is_taken(client):
    body = {"text": ["나는", "간다"], "beam_size": 2, "alpha": 1, "glossary": {"사자": "lion"}}
    answer = client.post("/", json=body)
    assert (answer.status_code, answer.json()) == (200, body)
    assert client.post("/", json={"text": "a", "beam_size": 4.0}).json()["beam_size"] == 4


def test_brackets_in_a_text_are_no_lists(client):
    assert send(client, b'{"text": "' + b"[{" * (MAX_VALUES // 2) + b'"}') == (200, "")
    status, reported = send(client, b"[" + b"[]," * MAX_VALUES + b"[]]")
    assert status == 400
    assert "too many fields" in reported


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "the body is missing"),
        (b"{", "not valid JSON"),
        (b'{"text": "a"', "not valid JSON"),
        (b"\xff\xfe{}", "not valid UTF-8"),
        (b'{"text": "\xed\xa0\x80"}', "not valid UTF-8"),
        (b'{"text": "a", "alpha": NaN}', "NaN and Infinity are not JSON"),
        (b'{"text": "a", "alpha": -Infinity}', "NaN and Infinity are not JSON"),
        (b'{"text": "a", "alpha": 1e999}', "alpha: "),
        (b'{"text": "a", "text": "b"}', "duplicate field"),
        (b'{"text": "a", "\\ud800": 1}', "lone surrogate"),
        (b'{"text": "a", "glossary": {"x": "y", "x": "z"}}', "duplicate field"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"text":' * 50_000, "nested too deeply"),
        (b'{"text": "a", "seed": ' + b"9" * 5000 + b"}", "number is too long"),
        (b"[]", "not a JSON object"),
        (b"null", "not a JSON object"),
        (b'"text"', "not a JSON object"),
        (b"{}", "text: Field required"),
        (b'{"text": null}', "text: "),
        (b'{"text": []}', "at least 1 item"),
        (b'{"text": ["a", 2]}', "text: must be a string or a list of strings"),
        (b'{"text": "a", "beam_size": "4"}', "beam_size: Input should be a valid integer"),
        (b'{"text": "a", "beam_size": true}', "beam_size: Input should be a valid integer"),
        (b'{"text": "a", "beam_size": 0}', "beam_size: "),
        (b'{"text": "a", "beam_size": 4.5}', "beam_size: Input should be a valid integer"),
        (b'{"text": "a", "confidence": "yes"}', "confidence: Input should be a valid boolean"),
        (b'{"text": "a", "split": "often"}', "split: Input should be 'auto'"),
        (b'{"text": "a", "glossary": []}', "glossary: "),
        (b'{"text": "a", "glossary": {"": "x"}}', "glossary: "),
        (b'{"text": "a", "seed": -1}', "seed: "),
        (b'{"txt": "a"}', "unknown field 'txt': did you mean 'text'?"),
        (b'{"text": "a", "beamsize": 4}', "did you mean 'beam_size'?"),
    ],
)
def test_what_cannot_be_used_is_named(client, content, reason):
    status, reported = send(client, content)
    assert status == 400
    assert reason in reported
    assert len(reported) < 1000


def test_only_json_is_json(client):
    for kind in (
        "text/plain",
        "application/xml",
        "multipart/form-data",
        "x" * 1000,
        "a/b/c;;;=",
        "",
    ):
        status, reported = send(client, b'{"text": "a"}', kind)
        assert status == 400
        assert "Content-Type: application/json" in reported
    assert send(client, b'{"text": "a"}', "application/json; charset=utf-8")[0] == 200


def test_long_names_are_not_repeated_and_all_reasons_are_reported(client):
    status, reported = send(client, json.dumps({"x" * 100_000: 1, "beam_size": "a"}).encode())
    assert status == 400
    assert len(reported) < 1000
    status, reported = send(client, b'{"beam_size": "a", "n_best": "b"}')
    assert all(f"{name}: " in reported for name in ("text", "beam_size", "n_best"))


def find_unbounded(schema: dict, name: str) -> list[str]:
    """Name every text, list, table and number of a JSON schema that has no limit."""
    kinds = {"string": "maxLength", "array": "maxItems", "object": "maxProperties"}
    found = []
    for key, part in schema.get("properties", {}).items():
        found += find_unbounded(part, f"{name}.{key}")
    inner = [schema[key] for key in ("items", "additionalProperties") if schema.get(key)]
    for part in (*schema.get("anyOf", ()), *inner):
        found += find_unbounded(part, name)
    is_settled = any(key in schema for key in ("enum", "const", "properties"))
    kind = schema.get("type")
    if kind in kinds and not is_settled and kinds[kind] not in schema:
        found.append(name)
    if kind in ("integer", "number") and not is_settled:
        has_ends = {"minimum", "exclusiveMinimum"} & schema.keys() and {
            "maximum", "exclusiveMaximum"
        } & schema.keys()  # fmt: skip
        found += [] if has_ends else [name]
    return found


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_everything_that_is_sent_has_a_limit(body: type[BaseModel]):
    schema = body.model_json_schema()
    assert schema["additionalProperties"] is False
    assert find_unbounded(schema, body.__name__) == []


def test_the_check_for_limits_can_fail():
    class Loose(BaseModel):
        text: str
        counts: list[int]

    assert find_unbounded(Loose.model_json_schema(), "Loose") == [
        "Loose.text", "Loose.counts", "Loose.counts"
    ]  # fmt: skip


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_the_examples_are_bodies(body: type[BaseModel]):
    for example in body.model_json_schema().get("examples", []):
        assert body.model_validate(example)


def test_a_stream_takes_one_text_and_one_translation():
    for wrong in ({"text": ["a"]}, {"text": "a", "n_best": 2}):
        with pytest.raises(ValidationError):
            v1_schemas.StreamRequest.model_validate(wrong)


def test_numbers_that_json_cannot_hold_are_null():
    assert v1_schemas.round_finite(-0.123456789) == -0.123457
    assert v1_schemas.round_finite(float("-inf")) is None
    assert v1_schemas.round_finite(float("nan")) is None


def test_limits_of_the_server():
    check_limits({"texts": (2, 2)})
    reason = "texts: 3, at most 2 allowed; characters: 9, at most 8 allowed"
    with pytest.raises(InputError, match=reason):
        check_limits({"texts": (3, 2), "characters": (9, 8)})
