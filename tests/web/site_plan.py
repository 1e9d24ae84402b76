"""The page of `attendo export --to web`, and what Python says of the lines that it translates."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from attendo.core.run_folder import ModelFolder
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
    named = _name_languages(model, folder / "named")
    export_web(
        [named, named], folder / "site", precision="float32", examples=lines[:1], draw=page_drawing
    )
    export_web([model], folder / "site.html", examples=lines[:1], draw=page_drawing)
    export_web([model], folder / "webgpu", precision="float32", examples=lines[:1], webgpu=True)
    translations = Translator.load(model).translate(lines, copy_spans="never")
    return {
        "SITE_FOLDER": str(folder / "site"),
        "SITE_WEBGPU_FOLDER": str(folder / "webgpu"),
        "SITE_FILE": str(folder / "site.html"),
        "SITE_LINES": "|".join(lines),
        "SITE_TRANSLATIONS": "|".join(map(str, translations)),
    }


def _name_languages(model: Path, folder: Path) -> Path:
    """Copy a model, which then records its languages."""
    copy = ModelFolder(shutil.copytree(ModelFolder.find(model).path, folder))
    index = copy.read_index()
    index["about"] = {**index["about"], "src_lang": "ko", "tgt_lang": "en"}
    copy.index_path.write_text(json.dumps(index), encoding="utf-8")
    return copy.path
