"""One offline page: the built front end with a record inside it."""

from __future__ import annotations

import html
from importlib.resources import files
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError

if TYPE_CHECKING:
    from attendo.inspection.record import Record

RECORD_PLACEHOLDER = "__ATTENDO_RECORD__"
NOTEBOOK_HEIGHT = 720


def render_page(record: Record) -> str:
    """Return the page of a record as HTML: no server, nothing fetched, under 5 MB.

    The record is embedded as JSON, with `<` escaped so that no text can end its element.
    """
    page = read_template()
    return page.replace(RECORD_PLACEHOLDER, record.to_json().replace("<", "\\u003c"), 1)


def render_iframe(record: Record) -> str:
    """Return the page in an iframe, for a notebook."""
    page = html.escape(render_page(record), quote=True)
    return (
        f'<iframe srcdoc="{page}" style="width: 100%; height: {NOTEBOOK_HEIGHT}px; border: 0" '
        f'title="Attendo: {html.escape(record.src["text"], quote=True)}"></iframe>'
    )


def read_template() -> str:
    """Return the page that `make web` builds; it is part of the wheel."""
    template = files("attendo.inspection") / "static" / "look.html"
    try:
        page = template.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AttendoError(
            "the page is not built", hint="run make web in the checkout, once"
        ) from None
    if RECORD_PLACEHOLDER not in page:
        raise AttendoError(
            "the built page has no placeholder for a record", hint="run make web again"
        )
    return page
