"""Messages that keep their template, so that they can be shown in another language.

A `Message` is an ordinary English string that also keeps the template and the values it was
rendered from. To show it in another language, the template is looked up in a catalog
(`attendo.i18n`); the rendered text is never parsed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


class Message(str):
    """A rendered English text with its template and values."""

    __slots__ = ("template", "values")

    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, values: dict[str, Any]) -> Self:
        """Render the template."""
        self = super().__new__(cls, template.format(**values))
        self.template = template
        self.values = values
        return self

    def __reduce__(self) -> tuple[type[Message], tuple[str, dict[str, Any]]]:
        return Message, (self.template, self.values)


def message(template: str, /, **values: Any) -> str:
    """Return a `Message`; a value may itself be one.

    >>> message("no lesson {number}", number=99)
    'no lesson 99'
    >>> message("no lesson {number}", number=99).template
    'no lesson {number}'
    """
    return Message(template, values)


def join_messages(separator: str, parts: Iterable[str]) -> str:
    """Join texts like `str.join`, keeping each message among them."""
    values = {f"part{index}": part for index, part in enumerate(parts)}
    literal = separator.replace("{", "{{").replace("}", "}}")
    return Message(literal.join(f"{{{name}}}" for name in values), values)
