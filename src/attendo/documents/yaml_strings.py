"""YAML: the strings that are values are translated; keys, comments and the layout are kept.

PyYAML reads the events of the file, which have positions. Nothing is constructed, and aliases are
not expanded.
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.message import message
from attendo.documents.document import TextDocument
from attendo.documents.json_strings import add_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STRING_TAG = "tag:yaml.org,2002:str"
INDENT = re.compile(r"\n([ \t]+)\S")
MAX_ERROR_CHARACTERS = 200
MAX_DEPTH = 200


def read_yaml(source: str) -> TextDocument:
    r"""Read a YAML document.

    >>> document = read_yaml("title: My page  # shown\ncount: 3\n")
    >>> [segment.text for segment in document.segments]
    ['My page']
    """
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise MissingExtraError("PyYAML", "documents") from None
    document = TextDocument(source)
    # PyYAML counts a byte order mark as a character, which was removed before.
    try:
        for event in _values(yaml, source):
            start, end = event.start_mark.index, event.end_mark.index
            raw = source[start:end]
            add_value(document, start, end, event.value, _escaper(yaml, event, raw))
    except yaml.YAMLError as error:
        reason = message(
            "the file is not valid YAML: {reason}", reason=str(error)[:MAX_ERROR_CHARACTERS]
        )
        raise InputError(reason, hint="correct it, or use --format txt") from None
    return document


def _values(yaml: Any, source: str) -> Iterator[Any]:
    """Yield the events of scalars that are values and strings."""
    resolver = yaml.resolver.Resolver()
    stack: list[list[Any]] = []  # of each collection: whether it is a mapping, number of nodes
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast
    for event in yaml.parse(source, Loader=loader):
        is_start = isinstance(event, yaml.CollectionStartEvent)
        is_node = is_start or isinstance(event, (yaml.ScalarEvent, yaml.AliasEvent))
        is_key = bool(is_node and stack and stack[-1][0] and stack[-1][1] % 2 == 0)
        if is_node and stack:
            stack[-1][1] += 1
        if is_start:
            stack.append([isinstance(event, yaml.MappingStartEvent), 0])
            if len(stack) > MAX_DEPTH:
                reason = message("more than {count} nested levels", count=MAX_DEPTH)
                raise InputError(reason, hint="split the file")
        elif isinstance(event, yaml.CollectionEndEvent):
            stack.pop()
        elif isinstance(event, yaml.ScalarEvent) and not is_key:
            tag = event.tag or resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
            if tag == STRING_TAG:
                yield event


def _escaper(yaml: Any, event: Any, raw: str) -> Callable[[str], str]:
    """Return a function that writes a value in the style of the source, if that is possible."""

    def escape(text: str) -> str:
        if event.style == "|" and "\n" in raw:
            header, _, body = raw.partition("\n")
            found = INDENT.search("\n" + body)
            if found and header[1:].strip("+-") == "" and text == text.strip(" \t"):
                lines = text.rstrip("\n").split("\n")
                made = "\n".join(found[1] + line if line else "" for line in lines)
                return f"{header}\n{made}" + raw[len(raw.rstrip("\n")) :]
        if event.style is None and "\n" not in text and _is_plain(yaml, text):
            return text
        if event.style == "'" and "\n" not in text:
            return "'" + text.replace("'", "''") + "'"
        quoted = json.dumps(text, ensure_ascii=False)
        return quoted + raw[len(raw.rstrip("\n")) :] if event.style in ("|", ">") else quoted

    return escape


def _is_plain(yaml: Any, text: str) -> bool:
    """Return whether a text needs no quotes, in any context."""
    try:
        return bool(yaml.safe_load(f"- [{text}]\n") == [[text]])
    except yaml.YAMLError:
        return False
    except ValueError:  # a wrong date
        return False
