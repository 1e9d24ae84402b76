"""Writes the synthetic corpora to files: a TSV file or two text files per split.

The corpora come from `attendo.synthetic.everyday`, `dates`, `number_words` and `sea_temperature`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import ConfigError, InputError
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.synthetic.examples import Example, ExampleSplits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.synthetic.examples import Lang

DEFAULT_COUNTS = {"dates": 50_000, "numbers": 50_000, "pairs": 20_000, "series": 40}
"""The corpora and their default size: number of examples, of the series number of years."""


@dataclass(frozen=True)
class SyntheticRequest:
    """The options of a synthetic corpus."""

    corpus: str
    count: int
    seed: int
    lang: Lang
    dev_fraction: float
    """Fraction of the examples in dev, and the same in test."""
    digits: tuple[int, int]
    typo_rate: float
    is_reversed: bool

    @property
    def num_dev(self) -> int:
        """Number of examples in dev."""
        return round(self.count * self.dev_fraction)


def synthesize_corpus(request: SyntheticRequest, progress: Callable[[int], None]) -> ExampleSplits:
    """Return the examples of a request."""
    if request.corpus == "dates":
        from attendo.synthetic.dates import synthesize_dates

        return synthesize_dates(
            request.count,
            seed=request.seed,
            lang=request.lang,
            typo_rate=request.typo_rate,
            dev_fraction=request.dev_fraction,
            progress=progress,
        )
    if request.corpus == "numbers":
        from attendo.synthetic.number_words import synthesize_numbers

        return synthesize_numbers(
            request.count,
            seed=request.seed,
            lang=request.lang,
            digits=request.digits,
            dev_fraction=request.dev_fraction,
            is_reversed=request.is_reversed,
            progress=progress,
        )
    return synthesize_everyday(request)


def synthesize_everyday(request: SyntheticRequest) -> ExampleSplits:
    """Return everyday Korean-English sentences; dev and test have unseen word combinations."""
    from attendo.synthetic.everyday import Splits, synthesize_pairs, synthesize_splits

    num_dev = request.num_dev
    pair_splits = (
        synthesize_splits(
            train=request.count - 2 * num_dev, dev=num_dev, test=num_dev, seed=request.seed
        )
        if num_dev
        else Splits(synthesize_pairs(request.count, seed=request.seed), [], [])
    )
    form = "en" if request.is_reversed else "ko"
    return ExampleSplits(
        *(
            [
                Example(*(pair[::-1] if request.is_reversed else pair), form, pair.ko)
                for pair in pairs
            ]
            for pairs in pair_splits
        )
    )


def write_series(request: SyntheticRequest, out: Path) -> int:
    """Write the simulated series and return its number of days."""
    from attendo.synthetic.sea_temperature import write_simulated_series

    try:
        return write_simulated_series(out, years=request.count, seed=request.seed)
    except OSError as error:
        raise _write_error(out, error) from None


class OutputFile(NamedTuple):
    """A file to write: the split and the columns that it holds."""

    split: str
    columns: tuple[str, ...]
    path: Path


def plan_outputs(request: SyntheticRequest, out: Path, *, with_forms: bool) -> list[OutputFile]:
    """Return every file that will be written."""
    if request.corpus == "series":
        return [OutputFile("train", (), out)]
    if out.suffix not in ("", ".tsv"):
        reason = message(
            "{out}: the suffix '{suffix}' is not supported", out=out, suffix=out.suffix
        )
        raise ConfigError(reason, hint="use the suffix .tsv, or none for two text files")
    names = ["train", *(["dev", "test"] if request.dev_fraction else [])]
    columns = ("src", "tgt", *(["form"] if with_forms else []))
    outputs = []
    for split in names:
        stem = out.stem if split == "train" else f"{out.stem}.{split}"
        if out.suffix:
            outputs.append(OutputFile(split, columns, out.with_name(f"{stem}{out.suffix}")))
        else:
            outputs += [
                OutputFile(split, (column,), out.with_name(f"{stem}.{column}"))
                for column in columns
            ]
    return outputs


def check_outputs(outputs: Sequence[OutputFile], *, force: bool) -> None:
    """Raise an error if a file exists, and create the folder, before any work."""
    for output in outputs:
        if output.path.exists() and not force:
            raise InputError(
                message("{path} exists", path=output.path), hint="choose another -o, or --force"
            )
    folder = outputs[0].path.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _write_error(folder, error) from None


def write_splits(splits: ExampleSplits, outputs: Sequence[OutputFile]) -> None:
    """Write every file atomically; three columns have a header, so that training finds the pair."""
    for output in outputs:
        header = [output.columns] if len(output.columns) > 2 else []
        rows = (
            map(example._asdict().get, output.columns) for example in getattr(splits, output.split)
        )
        lines = map("\t".join, chain(header, rows))
        try:
            write_atomically(output.path, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            raise _write_error(output.path, error) from None


def _write_error(path: Path, error: OSError) -> InputError:
    return InputError(
        message("{path} could not be written: {detail}", path=path, detail=error.strerror or error),
        hint="choose another path, or free some space",
    )
