"""What LibreTranslate's routes take and tell: the bodies, as JSON or as forms, and their schema."""

from __future__ import annotations

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
LanguageCode = Annotated[str, Field(min_length=1, max_length=35)]


def _add_file_field(schema: dict[str, Any]) -> None:
    schema["properties"]["file"] = {"type": "string", "format": "binary"}
    schema["required"] = [*schema.get("required", ()), "file"]


class TranslateRequest(BaseModel):
    """What POST /translate takes, as JSON or as a form."""

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
    """What POST /detect takes."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"q": "나는 학생이다."}]})

    q: str
    api_key: str | None = None


class TranslateFileRequest(BaseModel):
    """What POST /translate_file takes beside the file."""

    model_config = ConfigDict(json_schema_extra=_add_file_field)

    source: LanguageCode = ANY_LANGUAGE
    target: LanguageCode
    api_key: str | None = None


def openapi_schema(
    body: type[BaseModel], example: Any, *, media_types: Sequence[str] = ("application/json",)
) -> dict[str, Any]:
    """Tell OpenAPI of a body that is read by hand, and of what comes back."""
    schema = body.model_json_schema()
    examples = schema.pop("examples", [])
    content = {media_type: {"schema": schema} for media_type in media_types}
    if examples and "application/json" in content:
        named = {f"example {number}": {"value": one} for number, one in enumerate(examples, 1)}
        content["application/json"]["examples"] = named
    error_content = {"application/json": {"example": {"error": "why it did not work; what to do"}}}
    errors = {
        str(status): {"description": description, "content": error_content}
        for status, description in {
            400: "Bad request", 403: "API key", 413: "Too large", 429: "Too often",
            503: "The queue is full", 504: "Past the deadline",
        }.items()
    }  # fmt: skip
    success = {"description": "Done", "content": {"application/json": {"example": example}}}
    return {
        "requestBody": {"required": True, "content": content},
        "responses": {"200": success, **errors},
    }


FORM_MEDIA_TYPES = ("application/json", "application/x-www-form-urlencoded")


async def read_fields(request: Request) -> Any:
    """Read JSON, or a form with what stands in the address, as LibreTranslate does."""
    content_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if content_type == "application/json":
        try:
            return await request.json()
        except (ValueError, RecursionError):
            raise InputError("the body is no JSON", hint="send an object in UTF-8") from None
    if content_type == "multipart/form-data":
        async with request.form(max_files=0, max_fields=MAX_FIELDS) as form:
            pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    else:
        pairs = read_form(await request.body())
    fields: dict[str, Any] = dict([*request.query_params.items(), *pairs])
    texts = [value for name, value in pairs if name == "q"]
    return {**fields, "q": texts} if len(texts) > 1 else fields


def validate_request(schema: type[RequestT], fields: Any) -> RequestT:
    """Check what was sent; every fault is told at once, none with its value."""
    try:
        return schema.model_validate(fields)
    except ValidationError as error:
        raise RequestValidationError(error.errors(include_input=False)) from None
