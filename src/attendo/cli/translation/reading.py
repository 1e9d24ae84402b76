"""The input of `attendo translate`: windows of lines from a file, a pipe or a terminal."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import typer

from attendo.cli.standard_input import read_standard_input
from attendo.cli.translation.progress import progress_bar
from attendo.text.lines import check_readable, read_lines
from attendo.translator.line_stream import batch_arrivals
from attendo.translator.pipeline import Pipeline, group_lines
from attendo.translator.windows import max_window_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import ExitStack
    from pathlib import Path

    from attendo.translator import Translation
    from attendo.translator.partial_output import PartialOutput
    from attendo.translator.windows import WindowTranslator


def translate_input(
    steps: WindowTranslator,
    source: Path | None,
    partial: PartialOutput | None,
    stack: ExitStack,
    *,
    resume: bool,
) -> tuple[Iterator[list[Translation]], int, int]:
    """Translate a file or standard input in windows, with a progress bar.

    Returns:
        The translations of each window, the number of lines if it is known, and how many of them
        were translated before.

    """
    max_lines = max_window_lines(steps.translator.backend.device_type)
    windows, num_lines = input_windows(source, max_lines)
    num_kept = 0
    if partial is not None:
        from attendo.cli.translation.resumable import describe_interruption, explain_interruption

        if resume:
            num_kept = partial.prepare(map(len, input_windows(source, max_lines)[0]))
        windows = partial.remaining_windows(windows)
        stack.enter_context(explain_interruption(lambda: describe_interruption(partial, num_lines)))
    progress = stack.enter_context(progress_bar(num_lines, start=num_kept))
    results = stack.enter_context(closing(Pipeline(steps, windows, progress).run()))
    return results, num_lines, num_kept


def input_windows(source: Path | None, max_lines: int) -> tuple[Iterable[list[str]], int]:
    """Return the lines in windows, and their number if they come from a file."""
    if source is not None and str(source) != "-":
        check_readable(source)
        if not source.is_file():  # a pipe can be read only once
            return batch_arrivals(read_lines(source), max_lines=max_lines), 0
        return group_lines(read_lines(source), max_lines), sum(1 for _ in read_lines(source))
    if sys.stdin.isatty():
        typer.echo("type a sentence and press Enter; Ctrl-D exits", err=True)
    return batch_arrivals(read_standard_input(), max_lines=max_lines), 0
