"""Corpora of our own making as files: a TSV, or two text files line by line, dev and test beside.

`attendo.data.sample`, `sample_dates`, `sample_numbers` and `sample_series` make them; here is only
what becomes of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import ConfigError, InputError
from attendo.core.files import write_atomically
from attendo.data.sample_numbers import Example, Parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.data.sample_numbers import Lang

COUNTS = {"dates": 50_000, "numbers": 50_000, "pairs": 20_000, "series": 40}
"""What can be made, and how much of it when nothing is said; a series counts years."""


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
