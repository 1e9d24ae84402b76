"""The folder of an evaluation: `outputs.txt`, `report.json`, `report.md` and its pictures.

`report.json` is the whole truth (docs/guides/evaluate.md tells its keys); `report.md` and the
pictures are drawn from it alone.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.files import write_atomically
from attendo.evaluation.page import PICTURES, render
from attendo.evaluation.plots import draw_plots

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

KIND, FORMAT_VERSION = "attendo evaluation", 1
REPORT, PAGE = "report.json", "report.md"
OUTPUTS, AGAINST = "outputs.txt", "against.txt"
FILES = {REPORT, PAGE, OUTPUTS, AGAINST, *PICTURES}


def open_folder(directory: Path) -> None:
    """Make the folder, before any work; refuse one with anything that no evaluation wrote."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{directory} cannot be made: {error.strerror or error}"
        raise InputError(reason, remedy="name another folder with --out") from None
    found = [path.name for path in directory.iterdir() if path.suffix != ".partial"]
    foreign = sorted(name for name in found if name not in FILES)
    remedy = "choose another --out: nothing in it was touched"
    if foreign:
        listing = ", ".join(foreign[:4]) + (" ..." if len(foreign) > 4 else "")
        raise InputError(f"{directory} holds what no evaluation wrote: {listing}", remedy=remedy)
    if found and not _is_ours(directory / REPORT):
        raise InputError(f"{directory} is not empty and holds no evaluation", remedy=remedy)


def _is_ours(path: Path) -> bool:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("kind") == KIND


def save_outputs(directory: Path, outputs: Sequence[str], against: Sequence[str] | None) -> None:
    """Write the translations before they are scored: they cost most, and shall not be lost."""
    try:
        marker = {"kind": KIND, "format_version": FORMAT_VERSION, "finished": False}
        write_atomically(directory / REPORT, json.dumps(marker, indent=2) + "\n")
        for name in (PAGE, *PICTURES):  # of an earlier evaluation
            (directory / name).unlink(missing_ok=True)
        for name, texts in ((OUTPUTS, outputs), (AGAINST, against)):
            if texts is None:
                (directory / name).unlink(missing_ok=True)
            else:
                write_atomically(directory / name, "".join(f"{text}\n" for text in texts))
    except OSError as error:
        raise _unwritable(directory, error, "run the same command again") from error


def save_report(directory: Path, report: dict[str, Any]) -> None:
    """Write the pictures, the page and last the JSON, which says that all is there."""
    try:
        pictures = draw_plots(report)
    except MissingExtraError as error:
        report["notes"].append(f"no pictures: {error.reason}; {error.remedy}")
        pictures = {}
    try:
        for name, picture in pictures.items():
            write_atomically(directory / name, picture)
        write_atomically(directory / PAGE, render(report, list(pictures)))
        write_atomically(directory / REPORT, to_json(report))
    except OSError as error:
        remedy = f"score what {directory / OUTPUTS} holds with --outputs"
        raise _unwritable(directory, error, remedy) from error


def to_json(report: dict[str, Any]) -> str:
    """Write a report as JSON; what is no number becomes null."""
    return json.dumps(_finite(report), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _unwritable(directory: Path, error: OSError, then: str) -> AttendoError:
    reason = f"{error.filename or directory} could not be written: {error.strerror or error}"
    return AttendoError(reason, remedy=f"make room, then {then}")
