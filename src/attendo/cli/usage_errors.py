"""Errors about wrong options: the English texts of typer as messages that can be translated.

typer renders them before they can be seen, so that their templates are found again by comparison.
"""

from __future__ import annotations

import re
from functools import cache
from string import Formatter
from typing import TYPE_CHECKING

from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE_ERRORS = (
    "No such option: {name} (Possible options: {names})",
    "No such option: {name}",
    "No such command {name}. Did you mean {names}?",
    "No such command {name}.",
    "Missing argument {name}.",
    "Missing option {name}.",
    "Option {name} requires an argument.",
    "Option {name} does not take a value.",
    "Got unexpected extra argument(s) ({names})",
    "Got unexpected extra argument ({names})",
    "Got unexpected extra arguments ({names})",
    "Invalid value for {name}: {detail}",
)
"""Templates of typer; the first one that fits is taken."""
VALUE_ERRORS = (
    "Input should be greater than or equal to {ge}",
    "Input should be less than or equal to {le}",
)
"""Templates of pydantic for the limits of a number."""


def parse_usage_error(text: str) -> str:
    """Return a text of typer as a message, or as it is if its template is not known.

    >>> parse_usage_error("Missing option '--out'.").template
    'Missing option {name}.'
    """
    found = _find_template(text, USAGE_ERRORS)
    if found is None:
        return text
    template, values = found
    if "detail" in values:
        inner = _find_template(values["detail"], VALUE_ERRORS)
        values["detail"] = message(inner[0], **inner[1]) if inner else values["detail"]
    return message(template, **values)


def _find_template(text: str, templates: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """Return the first template that a text was rendered from, and its values."""
    for template in templates:
        match = _to_pattern(template).fullmatch(text)
        if match is not None:
            return template, match.groupdict()
    return None


@cache
def _to_pattern(template: str) -> re.Pattern[str]:
    parts = [
        re.escape(literal) + (f"(?P<{name}>.+)" if name else "")
        for literal, name, _, _ in Formatter().parse(template)
    ]
    return re.compile("".join(parts), re.DOTALL)
