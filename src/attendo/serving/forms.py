"""URL-encoded forms.

Starlette decodes characters that are not percent-encoded as Latin-1, but curl sends them as UTF-8.
"""

from __future__ import annotations

from urllib.parse import parse_qsl

from attendo.core.errors import InputError
from attendo.core.message import message

MAX_FIELDS = 1000


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
