"""Requests of the LibreTranslate-compatible routes, as JSON or as forms, and their schemas."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from attendo.core.errors import InputError
from attendo.serving.forms import MULTIPART, read_form, read_multipart
from attendo.serving.model_registry import ANY_LANGUAGE
from attendo.serving.routes.v1_schemas import check_text_or_texts
from attendo.serving.strict_json import parse_json, parse_off_loop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

RequestT = TypeVar("RequestT", bound=BaseModel)
Texts = Annotated[str | list[str], BeforeValidator(check_text_or_texts)]
LanguageCode = Annotated[str, Field(min_length=1, max_length=35)]


def _complete_upload(schema: dict[str, Any]) -> None:
    schema["examples"] = [{"source": "ko", "target": "en"}]
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

    q: Texts
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

    model_config = ConfigDict(json_schema_extra=_complete_upload)

    source: LanguageCode = ANY_LANGUAGE
    target: LanguageCode
    api_key: str | None = None


def openapi_schema(
    body: type[BaseModel], *, media_types: Sequence[str] = ("application/json",)
) -> dict[str, Any]:
    """Return the OpenAPI description of a body that is parsed by hand, and of the response."""
    schema = body.model_json_schema()
    examples = schema.pop("examples", [])
    content = {media_type: {"schema": schema} for media_type in media_types}
    named = {f"example {number}": {"value": one} for number, one in enumerate(examples, 1)}
    if named:
        content = {media_type: {**one, "examples": named} for media_type, one in content.items()}
    return {"requestBody": {"required": True, "content": content}}


FORM_MEDIA_TYPES = ("application/json", "application/x-www-form-urlencoded")


async def read_fields(request: Request) -> Any:
    """Return the fields of the JSON body, or of the form and the query, as LibreTranslate does."""
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type == "application/json":
        try:
            return await parse_off_loop(parse_json, await request.body())
        except json.JSONDecodeError as error:
            details = {"type": "json_invalid", "loc": ("body",), "ctx": {"error": error.msg}}
            raise RequestValidationError([details]) from None
    if content_type == MULTIPART:
        form = await read_multipart(request.scope, await request.body())
        if any(not isinstance(value, str) for value in form.values()):
            raise InputError("a file is not expected here", hint="send files to /translate_file")
        pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    else:
        pairs = await parse_off_loop(read_form, await request.body())
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
