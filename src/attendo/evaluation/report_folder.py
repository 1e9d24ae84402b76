"""The folder of an evaluation: `outputs.txt`, `report.json`, `report.md` and its plots.

`report.json` holds everything (its keys: docs/guides/evaluate.md); `report.md` and the
plots are derived from it.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError, InputError, MissingExtraError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.evaluation.markdown import PLOT_TITLES, render_markdown
from attendo.evaluation.plots import plot_report

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

REPORT_KIND, FORMAT_VERSION = "attendo evaluation", 1
REPORT_FILE, MARKDOWN_FILE = "report.json", "report.md"
OUTPUTS_FILE, AGAINST_FILE = "outputs.txt", "against.txt"
KNOWN_FILES = {REPORT_FILE, MARKDOWN_FILE, OUTPUTS_FILE, AGAINST_FILE, *PLOT_TITLES}


def prepare_folder(directory: Path, known_files: Collection[str] = KNOWN_FILES) -> None:
    """Create the folder before any work; reject one with files that no evaluation wrote."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = message(
            "{directory} cannot be created: {detail}",
            directory=directory,
            detail=error.strerror or error,
        )
        raise InputError(reason, hint="name another folder with --out") from None
    existing = [path.name for path in directory.iterdir() if path.suffix != ".partial"]
    foreign = sorted(name for name in existing if name not in known_files)
    hint = "choose another --out: nothing in it was changed"
    if foreign:
        listing = ", ".join(foreign[:4]) + (" ..." if len(foreign) > 4 else "")
        raise InputError(
            message(
                "{directory} contains files that no evaluation wrote: {listing}",
                directory=directory,
                listing=listing,
            ),
            hint=hint,
        )
    if existing and not _is_evaluation_folder(directory / REPORT_FILE):
        raise InputError(
            message("{directory} is not empty and is not an evaluation", directory=directory),
            hint=hint,
        )


def _is_evaluation_folder(path: Path) -> bool:
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(report, dict) and report.get("kind") == REPORT_KIND


def save_outputs(directory: Path, outputs: Sequence[str], against: Sequence[str] | None) -> None:
    """Write the translations before they are scored: they cost most and must not be lost."""
    try:
        marker = {"kind": REPORT_KIND, "format_version": FORMAT_VERSION, "finished": False}
        write_atomically(directory / REPORT_FILE, json.dumps(marker, indent=2) + "\n")
        for name in (MARKDOWN_FILE, *PLOT_TITLES):  # of an earlier evaluation
            (directory / name).unlink(missing_ok=True)
        for name, texts in ((OUTPUTS_FILE, outputs), (AGAINST_FILE, against)):
            if texts is None:
                (directory / name).unlink(missing_ok=True)
            else:
                write_atomically(directory / name, "".join(f"{text}\n" for text in texts))
    except OSError as error:
        raise _write_error(directory, error, "run the same command again") from error


def save_report(directory: Path, report: dict[str, Any]) -> None:
    """Write plots and Markdown, and last the JSON, which marks the report as complete."""
    try:
        plots = plot_report(report)
    except MissingExtraError as error:
        report["notes"].append(f"no plots: {error.reason}; {error.hint}")
        plots = {}
    try:
        for name, plot in plots.items():
            write_atomically(directory / name, plot)
        write_atomically(directory / MARKDOWN_FILE, render_markdown(report, list(plots)))
        write_atomically(directory / REPORT_FILE, to_json(report))
    except OSError as error:
        hint = message(
            "score what {directory} holds with --outputs", directory=directory / OUTPUTS_FILE
        )
        raise _write_error(directory, error, hint) from error


def to_json(report: dict[str, Any]) -> str:
    """Write a report as JSON; NaN and infinity become null."""
    return (
        json.dumps(_replace_non_finite(report), indent=2, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_non_finite(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_replace_non_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write_error(directory: Path, error: OSError, hint: str) -> AttendoError:
    reason = message(
        "{path} could not be written: {detail}",
        path=error.filename or directory,
        detail=error.strerror or error,
    )
    return AttendoError(reason, hint=message("free disk space, then {hint}", hint=hint))
