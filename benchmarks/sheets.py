"""Tables of a benchmark, once for the terminal (rich) and once for Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table


class Sheet(NamedTuple):
    """A table and what to know before reading it."""

    title: str
    note: str
    headers: list[str]
    rows: list[list[str]]


def to_rich(sheet: Sheet) -> Table:
    """Make a table for the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=sheet.title, caption=sheet.note, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title_justify = table.caption_justify = "left"
    for place, header in enumerate(sheet.headers):
        table.add_column(header, justify="left" if place == 0 else "right", no_wrap=place == 0)
    for row in sheet.rows:
        table.add_row(*row)
    return table


def to_markdown_table(sheet: Sheet) -> str:
    """Make a table for Markdown: words to the left, figures to the right."""
    rule = ["---", *["---:"] * (len(sheet.headers) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (sheet.headers, rule, *sheet.rows))
