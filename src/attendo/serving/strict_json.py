"""Requests with strict JSON: no NaN, no duplicate fields, no lone surrogates in field names.

Python's parser accepts these, and raises several kinds of exceptions for input that is too deep or
too long; here all of that is a `JSONDecodeError`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from fastapi.routing import APIRoute
from starlette.requests import Request

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from starlette.responses import Response


class StrictRequest(Request):
    """A request whose JSON must follow the standard."""

    async def json(self) -> Any:
        """Return the parsed body, or raise a `JSONDecodeError`."""
        body = await self.body()
        try:
            return json.loads(
                body.decode("utf-8"),
                parse_constant=_reject_constant,
                object_pairs_hook=_reject_duplicates,
            )
        except json.JSONDecodeError:
            raise
        except UnicodeDecodeError:
            raise json.JSONDecodeError("not valid UTF-8", "", 0) from None
        except (ValueError, RecursionError):
            raise json.JSONDecodeError(
                "nested too deeply, or a number is too long", "", 0
            ) from None


class StrictRoute(APIRoute):
    """A route that reads `StrictRequest`s."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly


def _reject_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"JSON has no {name}", "", 0)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise json.JSONDecodeError("duplicate field", "", 0)
    if any("\ud800" <= letter <= "\udfff" for name in fields for letter in name):
        raise json.JSONDecodeError("lone surrogate in a field name", "", 0)
    return fields
