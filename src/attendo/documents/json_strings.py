"""JSON: the strings that are values are translated; keys and everything else keep their bytes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.documents.document import TextDocument
from attendo.documents.inline import (
    is_message_format,
    is_translatable,
    read_message,
    render_message,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.documents.markup import MarkedText

STRING = re.compile(r'"((?:[^"\\]|\\.)*+)"(\s*+:)?')


def read_json(source: str) -> TextDocument:
    """Read a JSON document.

    >>> document = read_json('{"title": "My page", "id": "my_page"}')
    >>> [segment.text for segment in document.segments]
    ['My page']
    """
    try:
        json.loads(source)
    except (ValueError, RecursionError) as error:
        reason = message("the file is not valid JSON: {reason}", reason=str(error))
        raise InputError(reason, hint="correct it, or use --format txt") from None
    document = TextDocument(source)
    for found in STRING.finditer(source):
        if found[2] is None:
            value = json.loads(f'"{found[1]}"', strict=False)
            add_value(document, *found.span(1), value, escape_json)
    return document


def escape_json(text: str) -> str:
    """Return the content of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def add_value(
    document: TextDocument, start: int, end: int, value: str, escape: Callable[[str], str]
) -> None:
    """Add a value of a file of strings, if it has words for people."""
    if is_message_format(value):
        note = message(
            "messages with plural or select forms are not translated, for example: {text}",
            text=value[:60],
        )
        if not document.notes:
            document.notes.append(note)
        return
    if not is_translatable(value):
        return
    before, marked, after = read_message(value)
    if not is_translatable(marked.text):
        return

    def render(translated: MarkedText) -> str:
        return escape(render_message(before, translated, after))

    document.add(start, end, marked, render)
