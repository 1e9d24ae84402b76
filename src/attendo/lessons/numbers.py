"""How a lesson writes its numbers, in every outlet the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import say

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label, Lang

LARGEST_WHOLE = 1e15


def write_number(value: float, digits: int) -> str:
    """Write a number; whole ones without a point, small ones by their power.

    >>> write_number(4.0, 3), write_number(0.13613, 3), write_number(0.0000761, 3)
    ('4', '0.136', '7.61e-05')
    """
    if float(value).is_integer() and abs(value) < LARGEST_WHOLE:
        return f"{value:,.0f}"
    if abs(value) < 10.0**-digits:
        return f"{value:.2e}"
    return f"{value:,.{digits}f}"


def write_cell(value: Label | float | None, digits: int, lang: Lang) -> str:
    """Write what stands in a table: nothing, a number or a label."""
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return write_number(float(value), 0 if isinstance(value, int) else digits)
    return say(value, lang)
