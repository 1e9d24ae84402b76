"""`attendo synthesize`: corpora of our own making as files, always the same for one seed."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, cast

import typer

from attendo.cli.localization import argument, language_or_default, localized_command, option
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
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

    from attendo.i18n.messages import Lang as Spoken
    from attendo.synthetic.examples import Lang
    from attendo.synthetic.files import OutputFile

LANGUAGES = ("ko", "en", "both")
NUM_EXAMPLES_SHOWN = 3
MESSAGES = {
    "en": {"drawing": "drawing", "train": "train on it:"},
    "ko": {"drawing": "만드는 중", "train": "이것으로 학습하려면:"},
}
FILE_LINE = "{count:>9,}  {path}"


@localized_command("직접 만든 말뭉치를 씁니다: 날짜, 숫자, 문장 쌍, 시계열.")
def synthesize(
    what: Annotated[
        str, argument("dates, numbers, pairs or series.", "dates, numbers, pairs, series 중 하나.")
    ],
    out: Annotated[
        Path,
        option(
            "NAME.tsv, or NAME for NAME.src and NAME.tgt; a series: NAME.csv, .parquet, .npz.",
            "NAME.tsv. NAME만 주면 NAME.src와 NAME.tgt. 시계열은 NAME.csv, .parquet, .npz.",
            "--out",
            "-o",
        ),
    ],
    count: Annotated[
        int | None,
        option(
            "How many pairs; of a series, years.",
            "만들 쌍의 수. 시계열이면 햇수.",
        ),
    ] = None,
    seed: Annotated[int, option("One seed, one corpus.", "씨앗이 같으면 말뭉치도 같습니다.")] = 1,
    lang: Annotated[
        str | None,
        option("Of dates and numbers: ko, en or both.", "날짜와 숫자의 언어: ko, en, both."),
    ] = None,
    split: Annotated[
        float,
        option(
            "This share goes to NAME.dev, as much again to NAME.test; they share no source.",
            "이만큼을 NAME.dev로, 또 이만큼을 NAME.test로 뗍니다. 서로 겹치는 원문이 없습니다.",
        ),
    ] = 0.0,
    prefix: Annotated[
        str,
        option(
            "Words before every source, e.g. 'date: '.", "모든 원문 앞에 붙일 말. 예: 'date: '."
        ),
    ] = "",
    swap_sides: Annotated[
        bool,
        option(
            "Swap the sides: digits to words, English to Korean.",
            "두 쪽을 바꿉니다: 숫자를 글자로, 영어를 한국어로.",
            "--turn",
        ),
    ] = False,
    digits: Annotated[
        str, option("Lengths of the numbers, e.g. 1-10.", "숫자의 자릿수. 예: 1-10.")
    ] = "1-10",
    slips: Annotated[
        float,
        option(
            "Share of dates with a slip of the pen.", "오타나 띄어쓰기 실수가 있는 날짜의 비율."
        ),
    ] = 0.1,
    forms: Annotated[
        bool,
        option(
            "Tell how each source is written: a third column, or NAME.form.",
            "원문마다 표기 방식을 적습니다: 셋째 열, 또는 NAME.form.",
            "--forms",
        ),
    ] = False,
    force: Annotated[
        bool, option("Replace files that are there.", "이미 있는 파일을 바꿔 씁니다.", "--force")
    ] = False,
) -> None:
    """Write a corpus of our own making: dates, numbers, sentence pairs, a series."""
    from rich.console import Console

    from attendo.training.progress import ProgressReporter

    request = parse_request(what, count, seed, lang, split, digits, slips, swap_sides)
    check_request(request, prefix=prefix, lang=lang, forms=forms)
    output_lang = language_or_default(lang)
    outputs = plan_outputs(request, out, with_forms=forms)
    check_outputs(outputs, force=force)
    if request.corpus == "series":
        typer.echo(FILE_LINE.format(count=write_series(request, out), path=out))
        return
    with ProgressReporter(Console(stderr=True), lang=output_lang) as bar:
        name = MESSAGES[output_lang]["drawing"]
        parts = synthesize_corpus(request, lambda done: bar.stage(name, done, request.count))
    parts = ExampleSplits(
        *([example._replace(src=prefix + example.src) for example in part] for part in parts)
    )
    write_splits(parts, outputs)
    print_summary(parts, outputs, output_lang)


# --- what is asked for


def parse_request(
    what: str,
    count: int | None,
    seed: int,
    lang: str | None,
    share: float,
    digits: str,
    slips: float,
    is_swapped: bool,
) -> SyntheticRequest:
    """Read the words of the command; what no words mean is refused, all at once."""
    if what not in DEFAULT_COUNTS:
        raise ConfigError(
            message("no corpus '{what}' can be made", what=what), hint=suggest(what, DEFAULT_COUNTS)
        )
    reasons = []
    if lang not in (None, *LANGUAGES):
        reasons.append(f"no language '{lang}': {suggest(str(lang), LANGUAGES)}")
    low, _, high = digits.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal()):
        reasons.append(f"--digits {digits} is no range of lengths: write e.g. 1-10")
    if count is not None and count < 1:
        reasons.append(f"--count {count}: ask for 1 or more")
    if reasons:
        raise ConfigError.from_reasons("attendo synthesize", reasons)
    corpus_lang = cast("Lang", lang or "both")
    size = DEFAULT_COUNTS[what] if count is None else count
    lengths = (int(low), int(high or low))
    return SyntheticRequest(what, size, seed, corpus_lang, share, lengths, slips, is_swapped)


def check_request(request: SyntheticRequest, *, prefix: str, lang: str | None, forms: bool) -> None:
    """Refuse options that would do nothing, all at once."""
    reasons = []
    if lang is not None and request.corpus in ("pairs", "series"):
        reasons.append(f"--lang is about dates and numbers: leave it out for {request.corpus}")
    if forms and request.corpus in ("pairs", "series"):
        reasons.append(f"--forms is about dates and numbers: leave it out for {request.corpus}")
    if request.is_reversed and request.corpus in ("dates", "series"):
        reasons.append(f"--turn is about numbers and pairs: leave it out for {request.corpus}")
    if request.corpus == "series" and (prefix or request.dev_fraction):
        reasons.append("--prefix and --split are about texts: training parts a series by its time")
    if (
        request.corpus != "series"
        and request.dev_fraction
        and not 0 < 2 * request.num_dev < request.count
    ):
        reasons.append(
            f"--split {request.dev_fraction} of {request.count} leaves a part empty: try 0.05"
        )
    if any(character in prefix for character in "\t\r\n"):
        reasons.append("--prefix holds a tab or a new line: choose plain words")
    if reasons:
        raise ConfigError.from_reasons("attendo synthesize", reasons)


# --- what a person sees


def print_summary(parts: ExampleSplits, outputs: Sequence[OutputFile], output_lang: Spoken) -> None:
    """Print the files with their lines, the first examples, and what to do next."""
    messages = MESSAGES[output_lang]
    for output in outputs:
        count = len(getattr(parts, output.split))
        typer.echo(FILE_LINE.format(count=count, path=output.path))
    typer.echo("")
    for example in parts.train[:NUM_EXAMPLES_SHOWN]:
        typer.echo(f"  {example.src}  →  {example.tgt}")
    typer.echo(f"\n{messages['train']}\n  {format_train_command(outputs)}")


def format_train_command(outputs: Sequence[OutputFile]) -> str:
    """Word the command that trains on the files."""
    arguments = ["attendo", "train"]
    for output in outputs:
        if output.split == "train" and len(output.columns) > 1:
            arguments += ["--path", str(output.path)]
        elif output.split != "test" and output.columns[0] != "form" and len(output.columns) == 1:
            option_prefix = "--" if output.split == "train" else f"--{output.split}-"
            arguments += [f"{option_prefix}{output.columns[0]}", str(output.path)]
    return " ".join([*arguments, "--out", f"runs/{outputs[0].path.name.partition('.')[0]}"])
