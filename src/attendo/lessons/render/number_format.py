"""The format of numbers in lessons, the same in every renderer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import localize

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label, Lang

MAX_EXACT_INTEGER = 1e15


def format_number(value: float, digits: int) -> str:
    """Return a number as text: integers without a point, small numbers with an exponent.

    >>> format_number(4.0, 3), format_number(0.13613, 3), format_number(0.0000761, 3)
    ('4', '0.136', '7.61e-05')
    """
    if float(value).is_integer() and abs(value) < MAX_EXACT_INTEGER:
        return f"{value:,.0f}"
    if abs(value) < 10.0**-digits:
        return f"{value:.2e}"
    return f"{value:,.{digits}f}"


def format_answer(value: float) -> str:
    """Return the answer to a question with its significant digits.

    >>> format_answer(16.0), format_answer(1 / 3), format_answer(-1.499998)
    ('16', '0.33333', '-1.5')
    """
    return format_number(value, 0) if float(value).is_integer() else f"{value:.5g}"


def format_cell(value: Label | float | None, digits: int, lang: Lang) -> str:
    """Return the text of a table cell: nothing, a number or a label."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return format_number(float(value), 0 if isinstance(value, int) else digits)
    return localize(value, lang)
