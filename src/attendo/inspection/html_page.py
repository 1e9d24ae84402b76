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

    The record stands in it as JSON, with `<` spelt so that no text can end its element.
    """
    page = read_template()
    return page.replace(RECORD_PLACEHOLDER, record.to_json().replace("<", "\\u003c"), 1)


def render_iframe(record: Record) -> str:
    """Return the page for a notebook: a frame that holds it whole."""
    page = html.escape(render_page(record), quote=True)
    return (
        f'<iframe srcdoc="{page}" style="width: 100%; height: {NOTEBOOK_HEIGHT}px; border: 0" '
        f'title="Attendo: {html.escape(record.src["text"], quote=True)}"></iframe>'
    )


def read_template() -> str:
    """Read what `make web` has built; it comes with the wheel."""
    template = files("attendo.inspection") / "static" / "look.html"
    try:
        page = template.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AttendoError(
            "the page is not built", hint="run make web in the checkout, once"
        ) from None
    if RECORD_PLACEHOLDER not in page:
        raise AttendoError("the built page has no place for a record", hint="run make web again")
    return page
