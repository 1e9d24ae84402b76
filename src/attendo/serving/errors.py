"""Errors as clients get them: a status, and `{"error": ...}` as LibreTranslate words it.

They come in English, or in Korean to who asks for it by `Accept-Language`, as browsers do.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import Response

from attendo.i18n.messages import translate_message
from attendo.serving.batcher import DeadlineExceededError, QueueFullError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from attendo.core.errors import AttendoError
    from attendo.i18n.messages import Lang

RETRY_SECONDS = 1
HTML_ESCAPES = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


class ErrorResponse(Response):
    """`{"error": ...}`; what a client wrote comes back in letters that no browser reads as HTML."""

    media_type = "application/json"

    def __init__(
        self, status: int, *messages: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.messages = messages
        text = json.dumps({"error": join_messages(messages, "en")}).translate(HTML_ESCAPES)
        super().__init__(text, status_code=status, headers=dict(headers or {}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it in the language that the request asks for."""
        lang = preferred_language(Headers(scope=scope))
        if lang != "en":
            payload = {"error": join_messages(self.messages, lang)}
            text = json.dumps(payload, ensure_ascii=False).translate(HTML_ESCAPES)
            self.body = text.encode("utf-8", "backslashreplace")  # halves of characters
            self.headers["Content-Length"] = str(len(self.body))
            self.headers["Content-Language"] = lang
        await super().__call__(scope, receive, send)


def preferred_language(headers: Mapping[str, str]) -> Lang:
    """Give Korean to who would rather read it than English.

    >>> read_language({"accept-language": "ko-KR,ko;q=0.9,en;q=0.8"})
    'ko'
    >>> read_language({"accept-language": "en-GB,ko;q=0.5"}), read_language({})
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


def join_messages(messages: Sequence[str], lang: Lang) -> str:
    """Put a reason and its remedy into one line; each may be several, in one language.

    >>> join(["too many requests are waiting", "try again in a moment"], "ko")
    '기다리는 요청이 너무 많습니다. 잠시 뒤에 다시 해 주세요'
    """
    if lang == "en":
        return "; ".join(sentence.replace("\n", " ") for sentence in messages)
    return ". ".join(
        _translate_messages(sentence, lang).replace("\n", " ") for sentence in messages
    )


def _translate_messages(message: str, lang: Lang) -> str:
    """Say a sentence, or several that were put together; what a client wrote may look so, too."""
    parts = message.split("; ")
    translated = [translate_message(part, lang) for part in parts]
    is_all_translated = all(
        translation != part for translation, part in zip(translated, parts, strict=True)
    )
    return "; ".join(translated) if is_all_translated else translate_message(message, lang)


def to_error_response(error: AttendoError) -> ErrorResponse:
    """Turn an error of ours into an answer."""
    messages = (error.reason, error.hint) if error.hint else (error.reason,)
    retry = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, QueueFullError):
        return ErrorResponse(503, *messages, headers=retry)
    if isinstance(error, DeadlineExceededError):
        return ErrorResponse(504, *messages, headers=retry)
    return ErrorResponse(400, *messages)


def format_validation_errors(errors: Sequence[Mapping[str, Any]]) -> str:
    """Word what pydantic found in a request, without the values.

    >>> word_findings([{"loc": ("body", "q"), "msg": "Field required"}])
    'q: Field required'
    """
    messages = []
    for error in errors[:5]:
        location = ".".join(str(part)[:40] for part in error["loc"] if part != "body")
        messages.append(f"{location or 'the request'}: {str(error['msg'])[:200]}")
    return "; ".join(messages)
