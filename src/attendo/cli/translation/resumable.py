"""Translating a file so that an interruption loses nothing: `attendo translate --resume`."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from attendo.translator.partial_output import PartialOutput


def make_partial_output(
    source: Path | None,
    output: Path | None,
    models: Sequence[Path],
    options: dict[str, Any],
    *,
    has_trace: bool,
    resume: bool,
    force: bool,
) -> PartialOutput | None:
    """Return the output of a translation from file to file, checked; None for any other."""
    is_file_to_file = (
        source is not None
        and source.is_file()
        and output is not None
        and str(output) != "-"
        and (output.is_file() or not output.exists())
    )
    if source is None or output is None or not is_file_to_file or has_trace:
        if resume:
            raise ConfigError(
                "--resume needs --input and --output, both files, and no --trace",
                hint="leave out --resume",
            )
        return None
    if resume and force:
        raise ConfigError("both --resume and --force", hint="use one of them")
    from attendo.translator.partial_output import PartialOutput, describe_job

    job = describe_job(source, models, options)
    n_best = 1 if options["json"] else options["n_best"]  # lines per text, at most
    partial = PartialOutput(output, job, n_best=n_best)
    if resume:
        partial.check_can_resume()
    elif not force:
        partial.check_can_start()
    return partial


@contextmanager
def explain_interruption(describe: Callable[[], str | None]) -> Iterator[None]:
    """Print what `describe` returns, if anything, after Ctrl-C, SIGTERM or an error."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except BaseException:
        text = describe()
        if text is not None:
            typer.echo(translate_message(text, choose_language()), err=True)
        raise
    finally:
        signal.signal(signal.SIGTERM, previous)


def describe_interruption(partial: PartialOutput, num_lines: int) -> str | None:
    """Return how to resume the translation of a file; None if nothing is translated."""
    if not partial.num_done:
        return None
    return message(
        "stopped after {done} of {count} lines, which are kept in {path}; the same command "
        "with --resume continues",
        done=f"{partial.num_done:,}",
        count=f"{num_lines:,}",
        path=partial.partial,
    )
