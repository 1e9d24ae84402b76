"""Errors as clients get them: a status, and `{"error": ...}` as LibreTranslate words it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from attendo.serving.batcher import BusyError, LateError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.core.errors import AttendoError

RETRY_SECONDS = 1
SAFE = {ord("<"): "\\u003c", ord(">"): "\\u003e", ord("&"): "\\u0026"}


class ErrorAnswer(Response):
    """`{"error": ...}`; what a client wrote comes back in letters that no browser reads as HTML."""

    media_type = "application/json"

    def __init__(
        self, status: int, error: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        text = json.dumps({"error": error}).translate(SAFE)
        super().__init__(text, status_code=status, headers=dict(headers or {}))


def answer_error(error: AttendoError) -> ErrorAnswer:
    """Turn an error of ours into an answer."""
    told = error.reason.replace("\n", " ")
    told = f"{told}; {error.remedy}" if error.remedy else told
    retry = {"Retry-After": str(RETRY_SECONDS)}
    if isinstance(error, BusyError):
        return ErrorAnswer(503, told, headers=retry)
    if isinstance(error, LateError):
        return ErrorAnswer(504, told, headers=retry)
    return ErrorAnswer(400, told)


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
