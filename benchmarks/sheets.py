"""Tables of a benchmark, for the terminal (rich) and for Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table


class Sheet(NamedTuple):
    """A table with a title and a note."""

    title: str
    note: str
    headers: list[str]
    rows: list[list[str]]


def to_rich(sheet: Sheet) -> Table:
    """Return the table for the terminal."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=sheet.title, caption=sheet.note, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.title_justify = table.caption_justify = "left"
    for index, header in enumerate(sheet.headers):
        table.add_column(header, justify="left" if index == 0 else "right", no_wrap=index == 0)
    for row in sheet.rows:
        table.add_row(*row)
    return table


def to_markdown_table(sheet: Sheet) -> str:
    """Return the table in Markdown: text to the left, numbers to the right."""
    rule = ["---", *["---:"] * (len(sheet.headers) - 1)]
    return "\n".join("| " + " | ".join(row) + " |" for row in (sheet.headers, rule, *sheet.rows))
