"""`attendo translate --cluster`: files of any number of lines on the machines of a Ray cluster."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from attendo.cli.translation.resumable import explain_interruption
from attendo.cli.translation.writing import MAX_NOTES, LineFormat
from attendo.core.errors import AttendoError, ConfigError
from attendo.core.files import checksum
from attendo.core.message import join_messages, message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from attendo.cluster.formats import Format
    from attendo.cluster.job import ClusterJob, JobProgress
    from attendo.translator import Translation, Translator

FAILED_EXIT_CODE = 1
LOG_SECONDS = 60.0
"""Between two lines about the progress, where there is no terminal."""
MAX_UNREADABLE = 10
"""Files that an error names."""


@dataclass(frozen=True)
class OutputFormatter:
    """Makes the output of each row on a worker, as `attendo translate` without a cluster does.

    Args:
        n_best: translations per row.
        as_json: whether the output is JSON.
        tag: begins each output.
        has_references: whether the translation closest to a reference is chosen.
        has_confidence: whether the output has the confidence.
        min_confidence: outputs of less are left empty or marked.
        below: empty or mark.

    """

    n_best: int = 1
    as_json: bool = False
    tag: str = ""
    has_references: bool = False
    has_confidence: bool = False
    min_confidence: float | None = None
    below: str = "empty"

    def __call__(
        self,
        translations: Sequence[Translation],
        references: Sequence[str],
        translator: Translator,
    ) -> list[str]:
        """Return the outputs."""
        from attendo.cli.translation.confidence import ConfidenceFilter

        chosen = list(translations)
        if self.has_references:
            chosen = [
                choose_closest(one, reference)
                for one, reference in zip(translations, references, strict=True)
            ]
        if self.min_confidence is not None:
            chosen = ConfidenceFilter(translator, self.min_confidence, self.below)(chosen)
        line_format = LineFormat(
            as_json=self.as_json,
            n_best=1 if self.has_references else self.n_best,
            tag=self.tag,
            has_confidence=self.has_confidence,
        )
        return [line_format.format(one) for one in chosen]


def choose_closest(translation: Translation, reference: str) -> Translation:
    """Return the translation of an n-best list that agrees most with the reference."""
    from attendo.evaluation.agreement import choose_best

    candidates = [translation, *translation.alternatives]
    chosen = candidates[choose_best([str(one) for one in candidates], reference)]
    chosen.notes = translation.notes
    return chosen


def check_cluster_options(
    source: str | None,
    output: str | None,
    *,
    texts: Sequence[str] | None,
    has_trace: bool,
    resume: bool,
    force: bool,
) -> None:
    """Raise unless the options can be used with --cluster."""
    if not source or not output or source == "-" or output == "-" or texts:
        raise ConfigError(
            "--cluster needs --input and --output",
            hint="e.g. -i 'mono/*.en.gz' -o out/ --cluster auto; quote the pattern",
        )
    if has_trace:
        raise ConfigError("--cluster writes no --trace", hint="leave out --trace")
    if resume and force:
        raise ConfigError("both --resume and --force", hint="use one of them")


def check_table_output(row_format: Format, formatter: OutputFormatter) -> None:
    """Raise unless each row of a table has one translation and nothing else."""
    from attendo.cluster.formats import TextLines

    has_more = formatter.as_json or formatter.has_confidence
    has_more |= formatter.n_best > 1 and not formatter.has_references
    if has_more and not isinstance(row_format, TextLines):
        raise ConfigError(
            "JSON lines and Parquet get one translation per row",
            hint="leave out --json, --confidence and --n-best, or translate a text file",
        )


def start_cluster_job(
    models: Sequence[Path],
    source: str,
    output: str,
    decoder: dict[str, Any],
    options: dict[str, Any],
    *,
    address: str,
    agree_with: Path | None,
    output_options: dict[str, Any],
    batch_size: int | None,
    column: str,
    resume: bool,
    force: bool,
    **job_options: Any,
) -> None:
    """Run `attendo translate` with these options on a cluster."""
    from attendo.cluster.job import ClusterJob
    from attendo.text.glossary import Glossary

    glossary = options["glossary"]
    search = options["options"]
    if agree_with is not None and search.n_best < 2:
        raise ConfigError(
            "--agree-with needs several translations to choose from",
            hint="pass --n-best 4 (with --beam-size 4 or more, or --sample)",
        )
    settings = {**search.model_dump(mode="json"), **options, **output_options}
    del settings["options"]
    settings |= {"glossary": glossary and glossary.read_text("utf-8"), "batch_size": batch_size}
    settings |= {"engine": decoder["engine"], "precision": decoder["precision"], "column": column}
    settings["agree_with"] = None if agree_with is None else checksum(agree_with)
    job = ClusterJob(
        models=models,
        source=source,
        output=output,
        decoder=decoder,
        options={**options, "glossary": glossary and Glossary.load(glossary)},
        formatter=OutputFormatter(
            n_best=search.n_best, has_references=agree_with is not None, **output_options
        ),
        settings=settings,
        references=None if agree_with is None else str(agree_with),
        column=column,
        max_batch_tokens=batch_size,
        **job_options,
    )
    translate_on_cluster(job, address, resume=resume, force=force)


def translate_on_cluster(job: ClusterJob, address: str, *, resume: bool, force: bool) -> None:
    """Run a job with its progress, and end the command with an error if something is missing."""
    from attendo.cluster.formats import choose_format
    from attendo.cluster.job import ClusterTranslation

    formatter = job.formatter
    if isinstance(formatter, OutputFormatter):
        check_table_output(choose_format(job.source), formatter)
    notes = _NotePrinter()
    with show_progress() as on_progress:
        run = ClusterTranslation(
            job, address, on_progress=on_progress, on_note=notes.print, report=_report
        )
        with explain_interruption(lambda: _describe_interruption(run.progress, job.output)):
            progress = run.run(resume=resume, force=force)
    notes.count_rest(progress.num_notes)
    _report(_summarize(progress))
    if progress.unreadable:
        raise _unreadable_error(progress)
    if progress.num_failed:
        _report(
            message(
                "{count} lines could not be translated; their output is empty",
                count=progress.num_failed,
            )
        )
        raise typer.Exit(FAILED_EXIT_CODE)


def _summarize(progress: JobProgress) -> str:
    text = message(
        "{lines} lines of {files} files are translated, {kept} of them earlier",
        lines=f"{progress.num_rows:,}",
        files=f"{progress.num_files_done:,}",
        kept=f"{progress.num_kept:,}",
    )
    if not progress.num_lost:
        return text
    lost = message(
        "{lost} workers were lost, {repeated} shards were given to others",
        lost=progress.num_lost,
        repeated=progress.num_repeated,
    )
    return join_messages("; ", [text, lost])


def _unreadable_error(progress: JobProgress) -> AttendoError:
    errors = progress.unreadable
    listing = join_messages("\n  - ", ["", *(one.reason for one in errors[:MAX_UNREADABLE])])
    return AttendoError(
        message(
            "{count} of {total} files could not be read to the end:{listing}",
            count=len(errors),
            total=progress.num_files,
            listing=listing,
        ),
        hint="everything else is translated; correct the files, then run the same command with "
        "--resume",
    )


def _report(text: str) -> None:
    typer.echo(translate_message(text, choose_language()), err=True)


class _NotePrinter:
    """Prints the first notes about lines on stderr."""

    def __init__(self) -> None:
        self.num_printed = 0

    def print(self, file: str, row: int, note: str) -> None:
        if self.num_printed < MAX_NOTES:
            shown = translate_message(note, choose_language())
            typer.echo(f"{file}, line {row}: {shown}", err=True)
            self.num_printed += 1

    def count_rest(self, num_notes: int) -> None:
        if num_notes > self.num_printed:
            _report(
                message("{count:,} more notes are not shown", count=num_notes - self.num_printed)
            )


def _describe_interruption(progress: JobProgress, output: str) -> str | None:
    """Return how to resume; None if nothing is translated."""
    if not progress.num_rows:
        return None
    return message(
        "stopped after {done} lines, which are kept in {path}; the same command with "
        "--resume continues",
        done=f"{progress.num_rows:,}",
        path=output,
    )


@contextmanager
def show_progress() -> Iterator[Callable[[JobProgress], None]]:
    """Yield what is called after each shard: a bar on a terminal, else a line per minute."""
    from attendo.cli.console import make_console

    console = make_console(stderr=True)
    speed = _Speed()
    if not console.is_terminal:
        last = time.monotonic()

        def write_line(progress: JobProgress) -> None:
            nonlocal last
            speed.update(progress)
            if time.monotonic() - last >= LOG_SECONDS:
                last = time.monotonic()
                _report(describe_progress(progress, speed.lines_per_second))

        yield write_line
        return
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        BarColumn(bar_width=24), TaskProgressColumn(), TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )  # fmt: skip
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("", total=None)

        def update(progress: JobProgress) -> None:
            speed.update(progress)
            text = describe_progress(progress, speed.lines_per_second)
            bar.update(
                task,
                completed=progress.num_bytes,
                total=progress.total_bytes or None,
                description=translate_message(text, choose_language()),
            )

        yield update


class _Speed:
    """Lines per second since the first shard was written."""

    def __init__(self) -> None:
        self._start: tuple[float, int] | None = None
        self.lines_per_second: float | None = None

    def update(self, progress: JobProgress) -> None:
        now, count = time.monotonic(), progress.num_rows - progress.num_kept
        if self._start is None:
            self._start = now, count
        elif now > self._start[0]:
            self.lines_per_second = (count - self._start[1]) / (now - self._start[0])


def describe_progress(progress: JobProgress, lines_per_second: float | None) -> str:
    """Return one line: lines, files, workers and the speed."""
    from attendo.cli.translation.progress import describe_speed

    text = message(
        "{lines} lines, {done}/{files} files, {workers} workers",
        lines=f"{progress.num_rows:,}",
        done=progress.num_files_done,
        files=progress.num_files,
        workers=progress.num_workers,
    )
    speed = describe_speed(lines_per_second)
    return join_messages(", ", [text, speed]) if speed else text
