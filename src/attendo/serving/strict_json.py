"""Requests read strictly: JSON as its standard has it, and every fault named at once.

Python's reader takes NaN, takes a field that comes twice, and gives up in several ways on what is
too deep or too long; here all of that is a request that cannot be used.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from starlette.responses import Response

MAX_REASONS = 8
MAX_SHOWN_CHARACTERS = 60
"""Characters of a field's name that an error repeats."""


class StrictRequest(Request):
    """A request whose JSON is read as the standard has it."""

    async def json(self) -> Any:
        """Give the body; what is no JSON is a `JSONDecodeError`, whatever is wrong with it."""
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
            raise json.JSONDecodeError("it is no UTF-8", "", 0) from None
        except (ValueError, RecursionError):
            raise json.JSONDecodeError("too deep, or a number too long", "", 0) from None


class StrictRoute(APIRoute):
    """A route that reads `StrictRequest`s and words what is wrong with them as an `InputError`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Wrap the handler."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            try:
                return await handle(StrictRequest(request.scope, request.receive))
            except RequestValidationError as error:
                raise to_input_error(error.errors()) from None

        return handle_strictly


def to_input_error(errors: Sequence[Any]) -> InputError:
    """Word what pydantic found, all reasons at once."""
    reasons = list(dict.fromkeys(_format_error(details) for details in errors))
    message = "; ".join(reasons[:MAX_REASONS])
    return InputError(message, hint="/openapi.json tells what a request may hold")


def _format_error(details: dict[str, Any]) -> str:
    location = ".".join(
        str(part)[:MAX_SHOWN_CHARACTERS]
        for part in details["loc"][1:]
        if not _is_union_branch(part)
    )
    if details["type"] == "json_invalid":
        return message(
            "the body is no valid JSON: {cause}", cause=details.get("ctx", {}).get("error", "")
        )
    if details["type"] == "missing" and not location:
        return "the body is missing: send JSON with Content-Type: application/json"
    if details["type"] in ("model_attributes_type", "dict_type") and not location:
        return "the body is no JSON object: send one with Content-Type: application/json"
    return f"{location}: {details['msg']}" if location else str(details["msg"])


def _is_union_branch(part: str | int) -> bool:
    """Tell pydantic's own names, of the branches of a union, from those of fields."""
    return isinstance(part, str) and (not part or "[" in part or part.startswith("constrained-"))


def _reject_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"JSON has no {name}", "", 0)


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise json.JSONDecodeError("a field comes twice", "", 0)
    if any("\ud800" <= letter <= "\udfff" for name in fields for letter in name):
        raise json.JSONDecodeError("the name of a field has half a surrogate pair", "", 0)
    return fields
