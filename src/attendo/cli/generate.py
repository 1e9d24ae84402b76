"""`attendo generate`: corpora of our own making as files, always the same for one seed."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, cast

import typer

from attendo.cli.speech import argument, guess_language, option, speaking
from attendo.core.errors import ConfigError, suggest
from attendo.data.sample_files import (
    COUNTS,
    Wish,
    check_places,
    draw,
    plan_files,
    write_parts,
    write_series,
)
from attendo.data.sample_numbers import Parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.core.speech import Lang as Spoken
    from attendo.data.sample_files import Place
    from attendo.data.sample_numbers import Lang

LANGUAGES = ("ko", "en", "both")
NUM_SHOWN = 3
TEXTS = {
    "en": {"drawing": "drawing", "train": "train on it:"},
    "ko": {"drawing": "만드는 중", "train": "이것으로 학습하려면:"},
}
WRITTEN = "{count:>9,}  {path}"


@speaking("직접 만든 말뭉치를 씁니다: 날짜, 숫자, 문장 쌍, 시계열.")
def generate(
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
    turn: Annotated[
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

    from attendo.training.progress import Bar

    wish = read_wish(what, count, seed, lang, split, digits, slips, turn)
    check_wish(wish, prefix=prefix, lang=lang, forms=forms)
    spoken = guess_language(lang)
    places = plan_files(wish, out, forms=forms)
    check_places(places, force=force)
    if wish.what == "series":
        typer.echo(WRITTEN.format(count=write_series(wish, out), path=out))
        return
    with Bar(Console(stderr=True), lang=spoken) as bar:
        name = TEXTS[spoken]["drawing"]
        parts = draw(wish, lambda done: bar.stage(name, done, wish.count))
    parts = Parts(*([one._replace(src=prefix + one.src) for one in part] for part in parts))
    write_parts(parts, places)
    show(parts, places, spoken)


# --- what is asked for


def read_wish(
    what: str,
    count: int | None,
    seed: int,
    lang: str | None,
    share: float,
    digits: str,
    slips: float,
    is_turned: bool,
) -> Wish:
    """Read the words of the command; what no words mean is refused, all at once."""
    if what not in COUNTS:
        raise ConfigError(f"no corpus '{what}' can be made", remedy=suggest(what, COUNTS))
    reasons = []
    if lang not in (None, *LANGUAGES):
        reasons.append(f"no language '{lang}': {suggest(str(lang), LANGUAGES)}")
    low, _, high = digits.partition("-")
    if not (low.isdecimal() and (high or low).isdecimal()):
        reasons.append(f"--digits {digits} is no range of lengths: write e.g. 1-10")
    if count is not None and count < 1:
        reasons.append(f"--count {count}: ask for 1 or more")
    if reasons:
        raise ConfigError.gather("attendo generate", reasons)
    chosen = cast("Lang", lang or "both")
    size = COUNTS[what] if count is None else count
    lengths = (int(low), int(high or low))
    return Wish(what, size, seed, chosen, share, lengths, slips, is_turned)


def check_wish(wish: Wish, *, prefix: str, lang: str | None, forms: bool) -> None:
    """Refuse options that would do nothing, all at once."""
    reasons = []
    if lang is not None and wish.what in ("pairs", "series"):
        reasons.append(f"--lang is about dates and numbers: leave it out for {wish.what}")
    if forms and wish.what in ("pairs", "series"):
        reasons.append(f"--forms is about dates and numbers: leave it out for {wish.what}")
    if wish.is_turned and wish.what in ("dates", "series"):
        reasons.append(f"--turn is about numbers and pairs: leave it out for {wish.what}")
    if wish.what == "series" and (prefix or wish.share):
        reasons.append("--prefix and --split are about texts: training parts a series by its time")
    if wish.what != "series" and wish.share and not 0 < 2 * wish.held < wish.count:
        reasons.append(f"--split {wish.share} of {wish.count} leaves a part empty: try 0.05")
    if any(sign in prefix for sign in "\t\r\n"):
        reasons.append("--prefix holds a tab or a new line: choose plain words")
    if reasons:
        raise ConfigError.gather("attendo generate", reasons)


# --- what a person sees


def show(parts: Parts, places: Sequence[Place], spoken: Spoken) -> None:
    """Print the files with their lines, the first examples, and what to do next."""
    texts = TEXTS[spoken]
    for place in places:
        count = len(getattr(parts, place.part))
        typer.echo(WRITTEN.format(count=count, path=place.path))
    typer.echo("")
    for example in parts.train[:NUM_SHOWN]:
        typer.echo(f"  {example.src}  →  {example.tgt}")
    typer.echo(f"\n{texts['train']}\n  {train_command(places)}")


def train_command(places: Sequence[Place]) -> str:
    """Word the command that trains on the files."""
    words = ["attendo", "train"]
    for place in places:
        if place.part == "train" and len(place.fields) > 1:
            words += ["--path", str(place.path)]
        elif place.part != "test" and place.fields[0] != "form" and len(place.fields) == 1:
            before = "--" if place.part == "train" else f"--{place.part}-"
            words += [f"{before}{place.fields[0]}", str(place.path)]
    return " ".join([*words, "--out", f"runs/{places[0].path.name.partition('.')[0]}"])
