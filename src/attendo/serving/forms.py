"""Forms, URL-encoded or multipart; nothing is written to a disk.

Starlette decodes characters that are not percent-encoded as Latin-1, but curl sends them as UTF-8.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from starlette.datastructures import FormData, Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException, MultiPartParser

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, MutableMapping

    from starlette.requests import Request

MAX_FIELDS, MAX_FILES = 1000, 1
MULTIPART = "multipart/form-data"
CHARSET_PARAMETER = re.compile(r""";\s*charset\s*=\s*(?:"[^"]*"|[^;"]*)""", re.IGNORECASE)
"""It has no meaning for forms (RFC 7578), and Starlette would use any codec of Python."""


def read_form(body: bytes) -> list[tuple[str, str]]:
    """Return the fields of a form, percent-encoded or in plain UTF-8.

    >>> read_form("q=나는+가%26&target=en".encode())
    [('q', '나는 가&'), ('target', 'en')]
    """
    try:
        text = body.decode("utf-8")
        return parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise InputError("the form is not valid UTF-8", hint="encode the form as UTF-8") from None
    except ValueError:
        reason = message("more than {count} fields", count=MAX_FIELDS)
        raise InputError(reason, hint="send the texts as a JSON list") from None


class InMemoryParser(MultiPartParser):
    """Keeps files in memory: the whole request is there already, and it is limited in size."""

    spool_max_size = sys.maxsize


async def read_multipart(scope: MutableMapping[str, Any], body: bytes) -> FormData:
    """Return the fields and the file of a multipart form, parsed once per request."""
    state = scope.setdefault("state", {})
    if "form" not in state:
        content_type = Headers(scope=scope).get("content-type", "")
        parser = InMemoryParser(
            Headers({"content-type": CHARSET_PARAMETER.sub("", content_type)}),
            _yield_once(body),
            max_files=MAX_FILES,
            max_fields=MAX_FIELDS,
            max_part_size=max(len(body), 1),
        )
        try:
            state["form"] = await parser.parse()
        except MultiPartException as error:
            raise HTTPException(400, error.message) from None
    form: FormData = state["form"]
    return form


async def read_upload(request: Request) -> FormData:
    """Return the form of an upload; empty if the body is not one."""
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith(MULTIPART):
        return FormData()
    return await read_multipart(request.scope, await request.body())


async def close_form(scope: MutableMapping[str, Any]) -> None:
    """Release the memory of a form that was parsed."""
    form: FormData | None = scope.get("state", {}).pop("form", None)
    if form is not None:
        await form.close()


async def _yield_once(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
