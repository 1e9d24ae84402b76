"""Errors as clients get them: a status, and `{"error": ...}` as LibreTranslate words it.

They come in English, or in Korean to who asks for it by `Accept-Language`, as browsers do.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import Response

from attendo.core.speech import say
from attendo.serving.batcher import BusyError, LateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from starlette.types import Receive, Scope, Send

    from attendo.core.errors import AttendoError
    from attendo.core.speech import Lang

RETRY_SECONDS = 1
SAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


class ErrorAnswer(Response):
    """`{"error": ...}`; what a client wrote comes back in letters that no browser reads as HTML."""

    media_type = "application/json"

    def __init__(
        self, status: int, *sentences: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.sentences = sentences
        text = json.dumps({"error": join(sentences, "en")}).translate(SAFE)
        super().__init__(text, status_code=status, headers=dict(headers or {}))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it in the language that the request asks for."""
        lang = read_language(Headers(scope=scope))
        if lang != "en":
            told = {"error": join(self.sentences, lang)}
            text = json.dumps(told, ensure_ascii=False).translate(SAFE)
            self.body = text.encode("utf-8", "backslashreplace")  # halves of characters
            self.headers["Content-Length"] = str(len(self.body))
            self.headers["Content-Language"] = lang
        await super().__call__(scope, receive, send)


def read_language(headers: Mapping[str, str]) -> Lang:
    """Give Korean to who would rather read it than English.

    >>> read_language({"accept-language": "ko-KR,ko;q=0.9,en;q=0.8"})
    'ko'
    >>> read_language({"accept-language": "en-GB,ko;q=0.5"}), read_language({})
    ('en', 'en')
    """
    best, chosen = 0.0, "en"
    for wish in headers.get("accept-language", "").lower().replace(" ", "").split(","):
        code, _, told = wish.partition(";q=")
        try:
            weight = float(told or 1)
        except ValueError:
            continue
        name = code.split("-")[0]
        if name in ("en", "ko") and weight > best:
            best, chosen = weight, name
    return "ko" if chosen == "ko" else "en"


def join(sentences: Sequence[str], lang: Lang) -> str:
    """Put a reason and its remedy into one line; each may be several, in one language.

    >>> join(["too many requests are waiting", "try again in a moment"], "ko")
    '기다리는 요청이 너무 많습니다. 잠시 뒤에 다시 해 주세요'
    """
    if lang == "en":
        return "; ".join(sentence.replace("\n", " ") for sentence in sentences)
    return ". ".join(_say_all(sentence, lang).replace("\n", " ") for sentence in sentences)


def _say_all(told: str, lang: Lang) -> str:
    """Say a sentence, or several that were put together; what a client wrote may look so, too."""
    parts = told.split("; ")
    said = [say(part, lang) for part in parts]
    is_several = all(one != part for one, part in zip(said, parts, strict=True))
    return "; ".join(said) if is_several else say(told, lang)


def answer_error(error: AttendoError) -> ErrorAnswer:
    """Turn an error of ours into an answer."""
    told = (error.reason, error.remedy) if error.remedy else (error.reason,)
    retry = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, BusyError):
        return ErrorAnswer(503, *told, headers=retry)
    if isinstance(error, LateError):
        return ErrorAnswer(504, *told, headers=retry)
    return ErrorAnswer(400, *told)


def word_findings(findings: Sequence[Mapping[str, Any]]) -> str:
    """Word what pydantic found in a request, without the values.

    >>> word_findings([{"loc": ("body", "q"), "msg": "Field required"}])
    'q: Field required'
    """
    told = []
    for finding in findings[:5]:
        place = ".".join(str(part)[:40] for part in finding["loc"] if part != "body")
        told.append(f"{place or 'the request'}: {str(finding['msg'])[:200]}")
    return "; ".join(told)
