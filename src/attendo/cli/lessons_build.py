"""`attendo lessons build`: the track from an empty file to a Transformer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from attendo.lessons.prose import Prose
from attendo.lessons.track.folder import TrackFolder
from attendo.lessons.track.run_checks import run_checks
from attendo.lessons.track.steps import STEPS, imports

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.lessons.blocks import Lang
    from attendo.lessons.track.run_checks import CheckResult, Report

prose = Prose("attendo.lessons.track")


def build_track(path: Path, lang: Lang, *, num_hints: int, has_solution: bool) -> bool:
    """Begin the track, help with the current step, or check it; return whether nothing failed."""
    console = Console(highlight=False)
    folder = TrackFolder(path)
    if not folder.file.exists():
        folder.create(lang)
        _print(console, prose("created", file=folder.file, path=path).localize(lang))
        return True
    if num_hints:
        step = folder.step
        title = prose("hint", number=step.number, title=step.title).localize(lang)
        _print(console, f"{title}\n{step.hint(num_hints).localize(lang)}")
        return True
    if has_solution:
        step = folder.step
        code = step.solution if step.number > 1 else f"{imports()}\n\n\n{step.solution}"
        _print(console, code)
        return True
    return _check(console, folder, lang)


def _check(console: Console, folder: TrackFolder, lang: Lang) -> bool:
    folder.restore(lang)
    report = run_checks(folder.file)
    _print_report(console, report, lang)
    if not report.passes:
        _print(console, prose("try-again", path=folder.path).localize(lang), style="dim")
        return False
    if report.step == len(STEPS):
        lines = len(folder.read().splitlines())
        _print(console, prose("finished", lines=lines).localize(lang), style="bold green")
        return True
    next_step = STEPS[report.step]
    folder.append_step(next_step, lang)
    added = prose("added", number=next_step.number, title=next_step.title, file=folder.file)
    _print(console, added.localize(lang), style="bold")
    return True


def _print_report(console: Console, report: Report, lang: Lang) -> None:
    for step in STEPS[: report.step]:
        results = [one for one in report.results if one.step == step.number]
        is_passed = all(one.reason is None for one in results)
        mark = "[green]✓[/green]" if is_passed else "[red]✗[/red]"
        console.print(f"{mark} {step.number}. {step.title.localize(lang)}")
        if step.number == report.step:
            for one in results:
                _print_result(console, one, lang)


def _print_result(console: Console, result: CheckResult, lang: Lang) -> None:
    mark = "✗" if result.reason else "✓"
    _print(console, f"    {mark} {result.title.localize(lang)}")
    if result.reason is None:
        return
    _print(console, f"      {result.reason.localize(lang)}", style="yellow")
    for name, value in (("expected", result.expected), ("found", result.found)):
        if value:
            _print(console, f"      {prose(f'label-{name}').localize(lang)}: {value}", style="dim")


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, soft_wrap=True)
