"""`attendo synthesize`: synthetic corpora as files, reproducible by seed."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, cast

import typer

from attendo.cli.console import make_console
from attendo.cli.localization import language_or_default
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.i18n.messages import translate_message
from attendo.synthetic.examples import ExampleSplits
from attendo.synthetic.files import (
    DEFAULT_COUNTS,
    SyntheticRequest,
    check_outputs,
    plan_outputs,
    synthesize_corpus,
    write_series,
    write_splits,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.i18n.messages import Lang as OutputLang
    from attendo.synthetic.examples import Lang
    from attendo.synthetic.files import OutputFile

LANGUAGES = ("ko", "en", "both")
NUM_EXAMPLES_SHOWN = 3
FILE_LINE = "{count:>9,}  {path}"


def synthesize(
    what: Annotated[
        str, typer.Argument(help="Corpus to generate: dates, numbers, pairs or series.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="NAME.tsv, or NAME for NAME.src and NAME.tgt; series: NAME.csv, .parquet, .npz.",
        ),
    ],
    count: Annotated[
        int | None,
        typer.Option(help="Number of pairs; for series, of years."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Random seed; equal seeds give equal corpora.")] = 1,
    lang: Annotated[
        str | None,
        typer.Option(help="Language of dates and numbers: ko, en or both."),
    ] = None,
    split: Annotated[
        float,
        typer.Option(
            help="Fraction for NAME.dev, and the same for NAME.test; the splits share no source."
        ),
    ] = 0.0,
    prefix: Annotated[
        str,
        typer.Option(help="Text before every source, e.g. 'date: '."),
    ] = "",
    swap_sides: Annotated[
        bool,
        typer.Option("--reverse", help="Swap the sides: digits to words, English to Korean."),
    ] = False,
    digits: Annotated[str, typer.Option(help="Number of digits, e.g. 1-10.")] = "1-10",
    typo_rate: Annotated[
        float,
        typer.Option(help="Fraction of dates with a typo."),
    ] = 0.1,
    formats: Annotated[
        bool,
        typer.Option(
            "--formats",
            help="Also write the format of each source: as a third column, or to NAME.form.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Generate a synthetic corpus (dates, numbers, sentence pairs, a time series)."""
    from attendo.training.progress import ProgressReporter

    request = parse_request(what, count, seed, lang, split, digits, typo_rate, swap_sides)
    check_request(request, prefix=prefix, lang=lang, formats=formats)
    output_lang = language_or_default(lang)
    outputs = plan_outputs(request, out, with_forms=formats)
    check_outputs(outputs, force=force)
    if request.corpus == "series":
        typer.echo(FILE_LINE.format(count=write_series(request, out), path=out))
        return
    with ProgressReporter(make_console(stderr=True), lang=output_lang) as bar:
        parts = synthesize_corpus(
            request, lambda done: bar.stage("generating", done, request.count)
        )
    parts = ExampleSplits(
        *([example._replace(src=prefix + example.src) for example in part] for part in parts)
    )
    write_splits(parts, outputs)
    print_summary(parts, outputs, output_lang)


# --- the request


def parse_request(
    what: str,
    count: int | None,
    seed: int,
    lang: str | None,
    share: float,
    digits: str,
    typo_rate: float,
    is_swapped: bool,
) -> SyntheticRequest:
    """Return the request; the error lists all invalid options."""
    if what not in DEFAULT_COUNTS:
        raise ConfigError(
            message("no corpus '{what}'", what=what), hint=suggest(what, DEFAULT_COUNTS)
        )
    reasons = []
    if lang not in (None, *LANGUAGES):
        reasons.append(
            message(
                "no language '{lang}': {detail}", lang=lang, detail=suggest(str(lang), LANGUAGES)
            )
        )
    low, _, high = digits.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal()):
        reasons.append(message("--digits {digits} is not a range: use e.g. 1-10", digits=digits))
    if count is not None and count < 1:
        reasons.append(message("--count {count}: must be at least 1", count=count))
    if reasons:
        raise ConfigError.from_reasons("attendo synthesize", reasons)
    corpus_lang = cast("Lang", lang or "both")
    size = DEFAULT_COUNTS[what] if count is None else count
    lengths = (int(low), int(high or low))
    return SyntheticRequest(what, size, seed, corpus_lang, share, lengths, typo_rate, is_swapped)


def check_request(
    request: SyntheticRequest, *, prefix: str, lang: str | None, formats: bool
) -> None:
    """Raise an error that lists all options without effect."""
    reasons = []
    if lang is not None and request.corpus in ("pairs", "series"):
        reasons.append(
            message("--lang is for dates and numbers: omit it for {corpus}", corpus=request.corpus)
        )
    if formats and request.corpus in ("pairs", "series"):
        reasons.append(
            message(
                "--formats is for dates and numbers: omit it for {corpus}", corpus=request.corpus
            )
        )
    if request.is_reversed and request.corpus in ("dates", "series"):
        reasons.append(
            message(
                "--reverse is for numbers and pairs: omit it for {corpus}", corpus=request.corpus
            )
        )
    if request.corpus == "series" and (prefix or request.dev_fraction):
        reasons.append(
            message("--prefix and --split are for texts: training splits a time series by time")
        )
    if (
        request.corpus != "series"
        and request.dev_fraction
        and not 0 < 2 * request.num_dev < request.count
    ):
        reasons.append(
            message(
                "--split {dev_fraction} of {count} leaves a split empty: try 0.05",
                dev_fraction=request.dev_fraction,
                count=request.count,
            )
        )
    if any(character in prefix for character in "\t\r\n"):
        reasons.append(message("--prefix contains a tab or a line break: remove it"))
    if reasons:
        raise ConfigError.from_reasons("attendo synthesize", reasons)


# --- the output


def print_summary(
    parts: ExampleSplits, outputs: Sequence[OutputFile], output_lang: OutputLang
) -> None:
    """Print the files with their number of lines, some examples, and the command to train."""
    for output in outputs:
        count = len(getattr(parts, output.split))
        typer.echo(FILE_LINE.format(count=count, path=output.path))
    typer.echo("")
    for example in parts.train[:NUM_EXAMPLES_SHOWN]:
        typer.echo(f"  {example.src}  →  {example.tgt}")
    heading = translate_message("To train on it:", output_lang)
    typer.echo(f"\n{heading}\n  {format_train_command(outputs)}")


def format_train_command(outputs: Sequence[OutputFile]) -> str:
    """Return the command that trains on the files."""
    arguments = ["attendo", "train"]
    for output in outputs:
        if output.split == "train" and len(output.columns) > 1:
            arguments += ["--path", str(output.path)]
        elif output.split != "test" and output.columns[0] != "form" and len(output.columns) == 1:
            option_prefix = "--" if output.split == "train" else f"--{output.split}-"
            arguments += [f"{option_prefix}{output.columns[0]}", str(output.path)]
    return " ".join([*arguments, "--out", f"runs/{outputs[0].path.name.partition('.')[0]}"])
