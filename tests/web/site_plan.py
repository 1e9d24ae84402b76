"""The page of `attendo export --to web`, and what Python says of the lines that it translates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.interop.web.export import export_web
from attendo.lessons.machine_values import page_drawing
from attendo.synthetic.everyday import synthesize_pairs
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

NUM_LINES = 20


def write_site(folder: Path, model: Path) -> dict[str, str]:
    """Export a model as a folder and as a file, and return the variables of the specs."""
    lines = [pair.ko for pair in synthesize_pairs(NUM_LINES, seed=3)]
    export_web(
        [model, model], folder / "site", precision="float32", examples=lines[:1], draw=page_drawing
    )
    export_web([model], folder / "site.html", examples=lines[:1], draw=page_drawing)
    translations = Translator.load(model).translate(lines, copy_spans="never")
    return {
        "SITE_FOLDER": str(folder / "site"),
        "SITE_FILE": str(folder / "site.html"),
        "SITE_LINES": "|".join(lines),
        "SITE_TRANSLATIONS": "|".join(map(str, translations)),
    }
