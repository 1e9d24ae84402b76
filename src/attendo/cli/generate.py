"""`attendo generate`: corpora of our own making as files, always the same for one seed.

`attendo.data.sample`, `sample_dates`, `sample_numbers` and `sample_series` make them; here is only
what becomes of them: a TSV file, or two text files line by line, with dev and test beside them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, NamedTuple, cast

import typer

from attendo.cli.speech import argument, guess_language, option, speaking
from attendo.core.errors import ConfigError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.data.sample_numbers import Example, Lang, Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.core.speech import Lang as Spoken

COUNTS = {"dates": 50_000, "numbers": 50_000, "pairs": 20_000, "series": 40}
"""What can be made, and how much of it when nothing is said; a series counts years."""
LANGUAGES = ("ko", "en", "both")
NUM_SHOWN = 3
TEXTS = {
    "en": {"drawing": "drawing", "train": "train on it:"},
    "ko": {"drawing": "만드는 중", "train": "이것으로 학습하려면:"},
}
WRITTEN = "{count:>9,}  {path}"


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    what: str
    count: int
    seed: int
    lang: Lang
    share: float
    """Of dev; test has as much."""
    digits: tuple[int, int]
    slips: float
    is_turned: bool

    @property
    def held(self) -> int:
        """How many examples dev has."""
        return round(self.count * self.share)


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


# --- what is made


def draw(wish: Wish, progress: Callable[[int], None]) -> Parts:
    """Make the examples of a wish."""
    if wish.what == "dates":
        from attendo.data.sample_dates import draw_dates

        return draw_dates(
            wish.count,
            seed=wish.seed,
            lang=wish.lang,
            slips=wish.slips,
            share=wish.share,
            progress=progress,
        )
    if wish.what == "numbers":
        from attendo.data.sample_numbers import draw_numbers

        return draw_numbers(
            wish.count,
            seed=wish.seed,
            lang=wish.lang,
            digits=wish.digits,
            share=wish.share,
            is_turned=wish.is_turned,
            progress=progress,
        )
    return draw_pairs(wish)


def draw_pairs(wish: Wish) -> Parts:
    """Take the embedded Korean and English; dev and test have combinations that train has not."""
    from attendo.data.sample import Splits, splits
    from attendo.data.sample import generate as generate_pairs

    held = wish.held
    parts = (
        splits(train=wish.count - 2 * held, dev=held, test=held, seed=wish.seed)
        if held
        else Splits(generate_pairs(wish.count, seed=wish.seed), [], [])
    )
    form = "en" if wish.is_turned else "ko"
    return Parts(
        *(
            [Example(*(pair[::-1] if wish.is_turned else pair), form, pair.ko) for pair in part]
            for part in parts
        )
    )


def write_series(wish: Wish, out: Path) -> int:
    """Write the sample series, years of days; give the number of days."""
    from attendo.data.sample_series import write_sample_series

    try:
        return write_sample_series(out, years=wish.count, seed=wish.seed)
    except OSError as error:
        raise _unwritable(out, error) from None


# --- where it is written


class Place(NamedTuple):
    """One file: which part of the corpus, and which of its columns."""

    part: str
    fields: tuple[str, ...]
    path: Path


def plan_files(wish: Wish, out: Path, *, forms: bool) -> list[Place]:
    """Name every file that will be written."""
    if wish.what == "series":
        return [Place("train", (), out)]
    if out.suffix not in ("", ".tsv"):
        reason = f"{out}: '{out.suffix}' is no form that is written"
        raise ConfigError(reason, remedy="name a file *.tsv, or give a name without a suffix")
    names = ["train", *(["dev", "test"] if wish.share else [])]
    columns = ("src", "tgt", *(["form"] if forms else []))
    places = []
    for part in names:
        stem = out.stem if part == "train" else f"{out.stem}.{part}"
        if out.suffix:
            places.append(Place(part, columns, out.with_name(f"{stem}{out.suffix}")))
        else:
            places += [Place(part, (one,), out.with_name(f"{stem}.{one}")) for one in columns]
    return places


def check_places(places: Sequence[Place], *, force: bool) -> None:
    """Refuse to replace files, and make the folder, before any work."""
    for place in places:
        if place.path.exists() and not force:
            raise InputError(f"{place.path} exists", remedy="choose another -o, or --force")
    folder = places[0].path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def write_parts(parts: Parts, places: Sequence[Place]) -> None:
    """Write every file, each whole or not at all."""
    for place in places:
        lines = (
            "\t".join(map(one._asdict().get, place.fields)) for one in getattr(parts, place.part)
        )
        try:
            write_atomically(place.path, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            raise _unwritable(place.path, error) from None


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(
        f"{path} could not be written: {error.strerror or error}",
        remedy="choose another place, or make room",
    )


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
