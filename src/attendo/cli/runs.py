"""`attendo runs`: list training runs, compare them, delete checkpoints that are not needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from attendo.diagnosis.run_list import RunStatus
    from attendo.i18n.messages import Lang

DEFAULT_FOLDER = "runs"
STATE_COLORS = {"training": "cyan", "stopped": "yellow", "finished": "green", "failed": "red"}
MAX_VALUE_LENGTH = 60


def runs(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FOLDER]...",
            help="Folders with runs, or runs; by default runs, or the current folder.",
            show_default=False,
        ),
    ] = None,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare", help="Compare runs: differing settings, scores, and the curves of dev."
        ),
    ] = False,
    clean: Annotated[
        bool,
        typer.Option("--clean", help="Delete the checkpoints of finished runs; their models stay."),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
    as_json: JsonOption = False,
    lang: LangOption = None,
) -> None:
    """List training runs: state, steps, scores, size; compare them, free disk space."""
    from attendo.diagnosis.run_list import find_runs, read_status

    if compare and clean:
        raise ConfigError("both --compare and --clean", hint="use one of them")
    output_lang = choose_language(lang)
    roots = folders or [_default_folder()]
    found = {run.path: read_status(run, root) for root in roots for run in find_runs(root)}
    statuses = sorted(found.values(), key=lambda status: status.updated, reverse=True)
    if compare:
        compare_runs(list(found.values()), as_json=as_json, lang=output_lang)
    elif clean:
        clean_runs(statuses, yes=yes, as_json=as_json, lang=output_lang)
    elif as_json:
        typer.echo(json.dumps([one.to_json() for one in statuses], ensure_ascii=False, indent=2))
    else:
        print_runs(statuses, roots, output_lang)


def _default_folder() -> Path:
    folder = Path(DEFAULT_FOLDER)
    return folder if folder.is_dir() else Path()


# -- list


def print_runs(statuses: Sequence[RunStatus], roots: Sequence[Path], lang: Lang) -> None:
    """Print the runs as a table, the newest first."""
    if not statuses:
        listing = ", ".join(map(str, roots))
        typer.echo(translate_message(message("no runs in {path}", path=listing), lang))
        return
    headings = (
        "run", "state", "step", "best on dev", "pairs", "parameters", "minutes", "size", "changed",
    )  # fmt: skip
    rows = [
        [
            status.name,
            translate_message(status.state, lang),
            _format_steps(status),
            _format_best(status, lang),
            _format_count(status.num_pairs),
            _format_count(status.num_parameters),
            f"{status.minutes:.0f}" if status.minutes >= 10 else f"{status.minutes:.1f}",
            format_size(status.num_bytes),
            status.updated.astimezone().strftime("%Y-%m-%d %H:%M"),
        ]
        for status in statuses
    ]
    console = make_console()
    localized = [translate_message(heading, lang) for heading in headings]
    styles = [STATE_COLORS[status.state] for status in statuses]
    _print_table(console, localized, rows, right=range(2, 8), styles=styles)
    for line in _suggest_commands(statuses):
        console.print(translate_message(line, lang), style="dim", highlight=False, markup=False)


def _suggest_commands(statuses: Sequence[RunStatus]) -> list[str]:
    """Return what to do about stopped runs and about checkpoints that are not needed."""
    lines = []
    stopped = [status for status in statuses if status.state == "stopped" and status.step]
    if stopped:
        text = "attendo finish {run} ends a stopped run; the command that started it resumes it"
        lines.append(message(text, run=stopped[0].folder.path))
    num_bytes = sum(status.checkpoint_bytes for status in statuses if status.can_clean)
    if num_bytes:
        text = "attendo runs --clean deletes the checkpoints of finished runs: {size}"
        lines.append(message(text, size=format_size(num_bytes)))
    return lines


def _format_steps(status: RunStatus) -> str:
    total = "" if status.max_steps is None else f"/{status.max_steps:,}"
    return f"{status.step:,}{total}"


def _format_best(status: RunStatus, lang: Lang) -> str:
    from attendo.diagnosis.run_log import LABELS, format_score

    if status.best is None:
        return "-"
    text = message(
        "{metric} {value} (step {step})",
        metric=message(LABELS[status.metric]),
        value=format_score(status.metric, status.best.value),
        step=f"{status.best.step:,}",
    )
    return translate_message(text, lang)


def _format_count(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"


def format_size(num_bytes: int) -> str:
    """Return a number of bytes for people.

    >>> format_size(1_234), format_size(56_700_000), format_size(8_900_000_000)
    ('1 kB', '57 MB', '8.9 GB')
    """
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if num_bytes >= size:
            value = num_bytes / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"
    return f"{num_bytes / 1e3:.0f} kB"


# -- compare


def compare_runs(statuses: Sequence[RunStatus], *, as_json: bool, lang: Lang) -> None:
    """Print what differs between runs, their scores side by side, and their curves."""
    from attendo.diagnosis.run_list import compare_settings
    from attendo.diagnosis.run_log import LABELS, TrainingLog
    from attendo.diagnosis.text_plot import plot_curves

    if len(statuses) < 2:
        raise ConfigError(
            message("{count} runs to compare", count=len(statuses)),
            hint="give two or more: attendo runs --compare runs/a runs/b",
        )
    differences = compare_settings([status.folder for status in statuses])
    if as_json:
        payload = {"runs": [one.to_json() for one in statuses], "settings": differences}
        typer.echo(json.dumps(payload, ensure_ascii=False, indent=2))
        return
    names = _unique_names(statuses)
    console = make_console()
    headings = ["", *names]
    if differences:
        rows = [[key, *map(_format_value, values)] for key, values in differences.items()]
        _print_table(console, [translate_message("settings that differ", lang), *names], rows)
    else:
        console.print(translate_message("all settings are equal", lang), highlight=False)
    console.print()
    _print_table(console, headings, _score_rows(statuses, lang), right=range(1, len(headings)))
    logs = [TrainingLog.read(status.folder) for status in statuses]
    metrics = {status.metric for status in statuses}
    metric = metrics.pop() if len(metrics) == 1 else "loss"
    curves = {name: log.curve("validation", metric) for name, log in zip(names, logs, strict=True)}
    lines = plot_curves(curves)
    if lines:
        title = message("{metric} on dev", metric=message(LABELS[metric]))
        console.print("\n" + translate_message(title, lang), highlight=False)
        console.print("\n".join(lines), highlight=False, markup=False)


def _score_rows(statuses: Sequence[RunStatus], lang: Lang) -> list[list[str]]:
    from attendo.diagnosis.run_log import LABELS, format_score

    rows: list[tuple[str, list[str]]] = [
        ("state", [translate_message(one.state, lang) for one in statuses]),
        ("step", [_format_steps(one) for one in statuses]),
        ("best on dev", [_format_best(one, lang) for one in statuses]),
    ]
    for metric, label in LABELS.items():
        values = [one.dev.get(metric) for one in statuses]
        if any(value is not None for value in values):
            cells = ["-" if one is None else format_score(metric, one) for one in values]
            heading = message("finished model: {metric}", metric=message(label))
            rows.append((heading, cells))
    rows += [
        ("pairs", [_format_count(one.num_pairs) for one in statuses]),
        ("parameters", [_format_count(one.num_parameters) for one in statuses]),
        ("minutes", [f"{one.minutes:.1f}" for one in statuses]),
    ]
    return [[translate_message(heading, lang), *cells] for heading, cells in rows]


def _unique_names(statuses: Sequence[RunStatus]) -> list[str]:
    """Return the names of the runs, or their paths where two have the same name."""
    names = [status.name for status in statuses]
    return [
        str(status.folder.path) if names.count(status.name) > 1 else status.name
        for status in statuses
    ]


def _format_value(value: Any) -> str:
    """Return a setting as text; of tables, only what is set."""
    shown = _without_none(value)
    text = "-" if shown is None else shown if isinstance(shown, str) else json.dumps(shown)
    return text if len(text) <= MAX_VALUE_LENGTH else text[: MAX_VALUE_LENGTH - 1] + "…"


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(one) for key, one in value.items() if one is not None}
    return [_without_none(one) for one in value] if isinstance(value, list) else value


# -- clean


def clean_runs(statuses: Sequence[RunStatus], *, yes: bool, as_json: bool, lang: Lang) -> None:
    """Delete the checkpoints of finished runs, after a confirmation."""
    from attendo.diagnosis.run_list import delete_checkpoints

    chosen = [status for status in statuses if status.can_clean]
    if not chosen:
        typer.echo("[]" if as_json else translate_message("nothing to delete", lang))
        return
    if not yes:
        for status in chosen:
            size = format_size(status.checkpoint_bytes)
            typer.echo(f"{size:>8}  {status.folder.checkpoints_dir}", err=True)
        note = "without its checkpoints a run cannot be resumed; its model and report stay"
        typer.echo(translate_message(note, lang), err=True)
        if not sys.stdin.isatty():
            raise ConfigError("cannot ask: the input is not a terminal", hint="add --yes")
        total = format_size(sum(status.checkpoint_bytes for status in chosen))
        question = message("delete {size} of checkpoints?", size=total)
        typer.confirm(translate_message(question, lang), abort=True, err=True)
    freed = {str(status.folder.path): delete_checkpoints(status.folder) for status in chosen}
    if as_json:
        typer.echo(json.dumps([{"path": path, "freed": size} for path, size in freed.items()]))
        return
    done = message(
        "deleted checkpoints, runs: {count}, freed: {size} ({num_bytes} bytes)",
        count=len(freed),
        size=format_size(sum(freed.values())),
        num_bytes=f"{sum(freed.values()):,}",
    )
    typer.echo(translate_message(done, lang))


# -- tables


def _print_table(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    right: Sequence[int] = (),
    styles: Sequence[str] = (),
) -> None:
    """Print rows of plain texts; `styles` are those of the second column."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number in right else "left", overflow="fold")
    for number, row in enumerate(rows):
        cells = [Text(cell) for cell in row]
        if styles:
            cells[1].stylize(styles[number])
        table.add_row(*cells)
    console.print(table, highlight=False)
