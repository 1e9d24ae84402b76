"""Error responses: a status and `{"error": ...}`, the shape of LibreTranslate.

They are in English, or in Korean if `Accept-Language` prefers it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import Response

from attendo.core.config import validation_message
from attendo.core.errors import AttendoError, InputError, MissingTorchError
from attendo.core.logs import get_logger
from attendo.core.message import join_messages, message
from attendo.i18n.messages import translate_message
from attendo.lessons.contents import UnknownLessonError
from attendo.serving.limits import TooLargeError
from attendo.serving.model_registry import UnknownModelError
from attendo.serving.scheduling.errors import DeadlineExceededError, QueueFullError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from attendo.i18n.messages import Lang
    from attendo.serving.model_registry import ModelRegistry

RETRY_SECONDS = 1
HTML_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}
_log = get_logger(__name__)
MAX_REASONS = 8
BRANCH_TYPES = ("string_type", "list_type")
"""Errors of a union of texts and lists, where one of them was meant."""
MAX_SHOWN_CHARACTERS = 60
"""Characters of a field name that an error repeats."""


class ErrorResponse(Response):
    """`{"error": ...}`, escaped so that no browser reads the text of a client as HTML."""

    media_type = "application/json"

    def __init__(
        self,
        status: int,
        reason: str,
        hint: str | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.reason, self.hint = reason, hint
        text = json.dumps({"error": format_error(reason, hint, "en")}).translate(HTML_ESCAPES)
        super().__init__(text, status_code=status, headers=dict(headers or {}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response in the language that the request prefers."""
        lang = preferred_language(Headers(scope=scope))
        if lang != "en":
            payload = {"error": format_error(self.reason, self.hint, lang)}
            text = json.dumps(payload, ensure_ascii=False).translate(HTML_ESCAPES)
            self.body = text.encode("utf-8", "backslashreplace")  # lone surrogates
            self.headers["Content-Length"] = str(len(self.body))
            self.headers["Content-Language"] = lang
        await super().__call__(scope, receive, send)


def preferred_language(headers: Mapping[str, str]) -> Lang:
    """Return "ko" if Accept-Language prefers Korean, else "en".

    >>> preferred_language({"accept-language": "ko-KR,ko;q=0.9,en;q=0.8"})
    'ko'
    >>> preferred_language({"accept-language": "en-GB,ko;q=0.5"}), preferred_language({})
    ('en', 'en')
    """
    best, chosen = 0.0, "en"
    for entry in headers.get("accept-language", "").lower().replace(" ", "").split(","):
        code, _, quality = entry.partition(";q=")
        try:
            weight = float(quality or 1)
        except ValueError:
            continue
        name = code.split("-")[0]
        if name in ("en", "ko") and weight > best:
            best, chosen = weight, name
    return "ko" if chosen == "ko" else "en"


def format_error(reason: str, hint: str | None, lang: Lang) -> str:
    """Return a reason and its hint in one line.

    >>> format_error("too many requests in the queue", "try again in a moment", "ko")
    '대기 중인 요청이 너무 많습니다. 잠시 뒤에 다시 시도하세요'
    """
    texts = [translate_message(text, lang) for text in (reason, hint) if text]
    return {"en": "; ", "ko": ". "}[lang].join(texts).replace("\n", " ")


class ModelUnavailableError(AttendoError):
    """The server cannot use a model; the cause is in the log only."""

    def __init__(self, request_id: str) -> None:
        super().__init__(
            "the model cannot be used at the moment",
            hint=message("the log of the server names the cause; request {id}", id=request_id),
        )


def conceal(error: AttendoError, registry: ModelRegistry, *, request_id: str) -> AttendoError:
    """Return the error that a client may see: none about the files of the server.

    What a client has named itself is repeated as it is, or guesses of a path could be confirmed.
    """
    if isinstance(error, UnknownModelError | MissingTorchError):
        return error
    is_internal = type(error) is AttendoError or isinstance(error, OSError | ImportError)
    if not is_internal and not registry.mentions_folder(f"{error.reason} {error.hint}"):
        return error
    _log.error("a model cannot be used: %s", error, extra={"fields": {"request": request_id}})
    return ModelUnavailableError(request_id)


def to_error_response(error: AttendoError) -> ErrorResponse:
    """Return the response for an error of Attendo."""
    retry = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, QueueFullError):
        return ErrorResponse(503, error.reason, error.hint, headers=retry)
    if isinstance(error, ModelUnavailableError):
        return ErrorResponse(503, error.reason, error.hint, headers=retry)
    if isinstance(error, DeadlineExceededError):
        return ErrorResponse(504, error.reason, error.hint, headers=retry)
    return ErrorResponse(error_status(error), error.reason, error.hint)


def error_status(error: AttendoError) -> int:
    """Return the status for an error in a request."""
    if isinstance(error, TooLargeError):
        return 413
    if isinstance(error, MissingTorchError):
        return 501
    return 404 if isinstance(error, UnknownLessonError) else 400


def to_input_error(errors: Sequence[Any]) -> InputError:
    """Return one error with all reasons that pydantic found in a request, without the values.

    >>> to_input_error([{"loc": ("body", "q"), "type": "missing", "msg": "Field required"}]).reason
    'q: Field required'
    """
    causes = _drop_other_branches(errors)
    reasons = list(dict.fromkeys(_format_validation_error(details) for details in causes))
    return InputError(
        join_messages("; ", reasons[:MAX_REASONS]), hint="/openapi.json lists the request fields"
    )


def _drop_other_branches(errors: Sequence[Any]) -> list[Any]:
    """Drop "should be a string" where a list was sent whose entries cannot be used, and so on."""
    named = [(_location(details), details) for details in errors]
    meant = {name for name, details in named if details["type"] not in BRANCH_TYPES}
    return [
        details
        for name, details in named
        if details["type"] not in BRANCH_TYPES or not any(one.startswith(name) for one in meant)
    ]


def _location(details: Any) -> str:
    """Return the name of a field, with the fields that it is in."""
    return ".".join(
        str(part)[:MAX_SHOWN_CHARACTERS]
        for part in details["loc"][1:]
        if not _is_union_branch(part)
    )


def _format_validation_error(details: Any) -> str:
    location = _location(details)
    if details["type"] == "json_invalid":
        cause = details.get("ctx", {}).get("error", "")
        return message("the body is not valid JSON: {detail}", detail=cause)
    if details["type"] == "missing" and not location:
        return message("the body is missing: send JSON with Content-Type: application/json")
    if details["type"] in ("model_attributes_type", "model_type", "dict_type") and not location:
        return message(
            "the body is not a JSON object: send one with Content-Type: application/json"
        )
    detail = validation_message(details)
    return message("{name}: {detail}", name=location, detail=detail) if location else detail


def _is_union_branch(part: str | int) -> bool:
    """Return whether a part of a location is pydantic's name of a union branch, not a field."""
    return isinstance(part, str) and (not part or "[" in part or part.startswith("constrained-"))
