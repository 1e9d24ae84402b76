"""Requests with strict JSON: no NaN, no duplicate fields, no lone surrogates in field names.

Python's parser accepts these, and raises several kinds of exceptions for input that is too deep or
too long; here all of that is a `JSONDecodeError`. Two things that real clients send are accepted: a
byte order mark, and half of a surrogate pair (of an emoji that was cut), which is replaced.
"""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from fastapi.routing import APIRoute
from starlette.requests import Request

from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response

SURROGATE = re.compile("[\ud800-\udfff]")
STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
"""Without the last `?`, each quote in a string that never ends would be tried as a beginning."""
VALUE_MARKS = (b"[", b"{", b":")
MAX_VALUES = 100_000
"""Lists, objects and fields of a body: each costs as much as a long text."""
MAX_BYTES_ON_LOOP = 65_536
"""Larger bodies are parsed in a thread, so that the event loop is not blocked."""
ResultT = TypeVar("ResultT")
OWN_REASONS = (
    "NaN and Infinity are not JSON",
    "duplicate field",
    "lone surrogate in a field name",
    "nested too deeply, or too many fields",
)
"""Reasons of the checks below; Python's own are about its parser."""


class StrictRequest(Request):
    """A request whose JSON must follow the standard."""

    async def json(self) -> Any:
        """Return the parsed body, or raise a `JSONDecodeError`."""
        return await parse_off_loop(parse_json, await self.body())


class StrictRoute(APIRoute):
    """A route that reads `StrictRequest`s."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly


async def parse_off_loop(parse: Callable[[bytes], ResultT], body: bytes) -> ResultT:
    """Parse a body; large ones one by one in a thread."""
    if len(body) > MAX_BYTES_ON_LOOP:
        return await asyncio.get_running_loop().run_in_executor(_get_parser(), parse, body)
    return parse(body)


@cache
def _get_parser() -> ThreadPoolExecutor:
    """Return the one thread for all bodies: several would compete with the event loop."""
    return ThreadPoolExecutor(1, thread_name_prefix="attendo-parse")


def parse_json(body: bytes) -> Any:
    r"""Parse a JSON document, or raise a `JSONDecodeError`.

    >>> parse_json(b'{"text": "cut \\ud83d"}')
    {'text': 'cut �'}
    """
    if count_values(body) > MAX_VALUES:
        raise json.JSONDecodeError("nested too deeply, or too many fields", "", 0)
    try:
        parsed = json.loads(
            body.decode("utf-8-sig"),
            parse_constant=_reject_constant,
            object_pairs_hook=_reject_duplicates,
        )
        return replace_surrogates(parsed) if b"\\u" in body else parsed
    except json.JSONDecodeError as error:
        raise json.JSONDecodeError(_own_reason(error), "", error.pos) from None
    except UnicodeDecodeError:
        raise json.JSONDecodeError("not valid UTF-8", "", 0) from None
    except (ValueError, RecursionError):
        raise json.JSONDecodeError("nested too deeply, or a number is too long", "", 0) from None


def count_values(body: bytes) -> int:
    """Return about how many lists, objects and fields a JSON document has.

    >>> count_values(b'[{"a": 1}, "[[["]')
    6
    """
    count = sum(map(body.count, VALUE_MARKS))
    if count > MAX_VALUES:  # they may be part of a text
        count = sum(map(STRING.sub(b"", body).count, VALUE_MARKS))
    return count


def replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which JSON can express but UTF-8 cannot, in a JSON value."""
    if isinstance(value, str):
        if not SURROGATE.search(value):
            return value
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {key: replace_surrogates(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    return value


def _own_reason(error: json.JSONDecodeError) -> str:
    if error.msg in OWN_REASONS:
        return error.msg
    return message("syntax error at character {position}", position=error.pos + 1)


def _reject_constant(_name: str) -> NoReturn:
    raise json.JSONDecodeError("NaN and Infinity are not JSON", "", 0)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise json.JSONDecodeError("duplicate field", "", 0)
    if not all(map(str.isascii, fields)) and any(map(SURROGATE.search, fields)):
        raise json.JSONDecodeError("lone surrogate in a field name", "", 0)
    return fields
