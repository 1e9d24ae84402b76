"""Requests of the LibreTranslate-compatible routes, as JSON or as forms, and their schemas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from attendo.core.errors import InputError
from attendo.serving.forms import MAX_FIELDS, read_form
from attendo.serving.model_registry import ANY_LANGUAGE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

RequestT = TypeVar("RequestT", bound=BaseModel)
SURROGATE = re.compile("[\ud800-\udfff]")
LanguageCode = Annotated[str, Field(min_length=1, max_length=35)]


def _add_file_field(schema: dict[str, Any]) -> None:
    schema["properties"]["file"] = {"type": "string", "format": "binary"}
    schema["required"] = [*schema.get("required", ()), "file"]


class TranslateRequest(BaseModel):
    """Request of POST /translate, as JSON or as a form."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"q": "나는 학생이다.", "source": "ko", "target": "en"},
                {"q": ["안녕", "고마워"], "source": "auto", "target": "en", "alternatives": 2},
                {"q": "<p>나는 <b>학생</b>이다.</p>", "source": "ko", "target": "en",
                 "format": "html"},
            ]
        }
    )  # fmt: skip

    q: str | list[str]
    source: LanguageCode = ANY_LANGUAGE
    target: LanguageCode
    format: Literal["text", "html"] = "text"
    alternatives: Annotated[int, Field(ge=0)] = 0
    api_key: str | None = None


class DetectRequest(BaseModel):
    """Request of POST /detect."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "나는 학생이다."}]})

    q: str
    api_key: str | None = None


class TranslateFileRequest(BaseModel):
    """Request of POST /translate_file, in addition to the file."""

    model_config = ConfigDict(json_schema_extra=_add_file_field)

    source: LanguageCode = ANY_LANGUAGE
    target: LanguageCode
    api_key: str | None = None


def openapi_schema(
    body: type[BaseModel], example: Any, *, media_types: Sequence[str] = ("application/json",)
) -> dict[str, Any]:
    """Return the OpenAPI description of a body that is parsed by hand, and of the response."""
    schema = body.model_json_schema()
    examples = schema.pop("examples", [])
    content = {media_type: {"schema": schema} for media_type in media_types}
    if examples and "application/json" in content:
        named = {f"example {number}": {"value": one} for number, one in enumerate(examples, 1)}
        content["application/json"]["examples"] = named
    error_content = {"application/json": {"example": {"error": "reason; hint"}}}
    errors = {
        str(status): {"description": description, "content": error_content}
        for status, description in {
            400: "Bad request", 403: "API key missing or invalid", 413: "Request too large",
            429: "Too many requests", 503: "Queue full", 504: "Timeout",
        }.items()
    }  # fmt: skip
    success = {"description": "Success", "content": {"application/json": {"example": example}}}
    return {
        "requestBody": {"required": True, "content": content},
        "responses": {"200": success, **errors},
    }


FORM_MEDIA_TYPES = ("application/json", "application/x-www-form-urlencoded")


async def read_fields(request: Request) -> Any:
    """Return the fields of the JSON body, or of the form and the query, as LibreTranslate does."""
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type == "application/json":
        try:
            return replace_surrogates(await request.json())
        except (ValueError, RecursionError):
            raise InputError("the body is not valid JSON", hint="send an object in UTF-8") from None
    if content_type == "multipart/form-data":
        async with request.form(max_files=0, max_fields=MAX_FIELDS) as form:
            pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    else:
        pairs = read_form(await request.body())
    fields: dict[str, Any] = dict([*request.query_params.items(), *pairs])
    texts = [value for name, value in pairs if name == "q"]
    return {**fields, "q": texts} if len(texts) > 1 else fields


def validate_request(schema: type[RequestT], fields: Any) -> RequestT:
    """Validate the fields; the error lists every reason, but no values."""
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        details = [
            {**one, "loc": ("body", *one["loc"])} for one in error.errors(include_input=False)
        ]
        raise RequestValidationError(details) from None


def replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which JSON can express but UTF-8 cannot, in a JSON value."""
    if isinstance(value, str):
        if not SURROGATE.search(value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    return value
