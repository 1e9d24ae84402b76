"""Streams the pairs of a corpus in any supported format.

`read_pairs` reads a corpus, `find_selection` returns which of its columns, fields or languages are
read. Two text files are read here; TSV and CSV in `attendo.data.tables`, JSON and Parquet in
`attendo.data.records`, TMX, PO, MO and XLIFF in `attendo.data.exchange_formats`. Nothing is
cleaned: see `attendo.data.cleaning`. What cannot be read raises an `InputError` with the file, the
line and a hint.
"""

from __future__ import annotations

from contextlib import closing
from itertools import chain, islice, starmap, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.corpus_config import Pair
from attendo.data.exchange_formats import open_tmx, read_catalog
from attendo.data.records import open_records
from attendo.data.tables import open_table
from attendo.text.lines import check_gzip, check_readable, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from attendo.data.columns import Selection
    from attendo.data.corpus_config import CorpusConfig

NUM_CHECKED_PAIRS = 2000
"""Number of pairs that are checked, in memory, before the first one is returned."""
MAX_COPY_FRACTION = 0.9


def read_pairs(config: CorpusConfig) -> Iterator[Pair]:
    """Yield every pair of a corpus in order.

    >>> next(read_pairs(CorpusConfig(src="a.ko", tgt="a.en")))  # doctest: +SKIP
    Pair(src='나는 학생이다.', tgt='I am a student.')

    Args:
        config: Location and format of the corpus.

    Returns:
        An iterator over the pairs.

    Raises:
        InputError: If a file is missing or the format unknown (at once), or if a line cannot be
            read (during iteration).

    """
    for path in config.paths:
        check_readable(path)
    config.resolved_format  # noqa: B018 - raises if the suffix is unknown
    return _check_first_pairs(_read_source(config), config)


class _Source(NamedTuple):
    selection: Selection | None
    pairs: Iterator[Pair]


def find_selection(config: CorpusConfig) -> Selection | None:
    """Return which columns, fields or languages of a corpus are read; None for text files."""
    for path in config.paths:
        check_readable(path)
    return _open_source(config).selection


def _open_source(config: CorpusConfig) -> _Source:
    """Open a corpus, and choose source and target from its beginning."""
    name = config.resolved_format
    if config.text is not None:
        return _Source(None, (Pair(line, line) for line in read_lines(config.text)))
    if name == "text":
        return _Source(None, _read_parallel_text(*config.paths))
    (path,) = config.paths
    if name in ("tsv", "csv"):
        return _Source(*open_table(path, config))
    if name in ("jsonl", "json", "parquet"):
        return _Source(*open_records(path, config))
    if name == "tmx":
        return _Source(*open_tmx(path, config))
    return _Source(None, read_catalog(path, config))


def _read_source(config: CorpusConfig) -> Iterator[Pair]:
    """Yield the pairs; if a gzip file is damaged, report that rather than its consequences."""
    try:
        yield from _open_source(config).pairs
    except InputError:
        for path in config.paths:
            check_gzip(path)
        raise


def _check_first_pairs(pairs: Iterator[Pair], config: CorpusConfig) -> Iterator[Pair]:
    """Raise an error if the corpus is empty or its sides are copies, before the first pair."""
    first_pairs = list(islice(pairs, NUM_CHECKED_PAIRS))
    texts = [pair for pair in first_pairs if pair.src.strip() and pair.tgt.strip()]
    if not texts and len(first_pairs) < NUM_CHECKED_PAIRS:
        raise InputError(
            message("{files}: the corpus is empty, no line has text", files=config.title)
            if config.text
            else message(
                "{files}: the corpus is empty, no line has text on both sides", files=config.title
            ),
            hint="give files with at least one text"
            if config.text
            else "give files with at least one sentence pair",
        )
    num_copies = sum(pair.src.strip() == pair.tgt.strip() for pair in texts)
    may_copy = config.allow_copies or config.text is not None
    if num_copies > MAX_COPY_FRACTION * len(texts) and not may_copy:
        raise InputError(
            message(
                "{files}: both sides are the same text in {count} of {total} pairs",
                files=config.title,
                count=num_copies,
                total=len(texts),
            ),
            hint="check that source and target are not the same file; "
            "set allow_copies = true in a config file if copying is the task",
        )
    yield from chain(first_pairs, pairs)


def _read_parallel_text(src_path: Path, tgt_path: Path) -> Iterator[Pair]:
    with closing(read_lines(src_path)) as sources, closing(read_lines(tgt_path)) as targets:
        for before, (src, tgt) in enumerate(zip_longest(sources, targets)):
            if src is None or tgt is None:
                rest = before + 1 + sum(1 for _ in chain(sources, targets))
                counts = (before, rest) if src is None else (rest, before)
                raise InputError(
                    message(
                        "{src} has {num_src} lines, {tgt} has {num_tgt}",
                        src=src_path,
                        num_src=f"{counts[0]:,}",
                        tgt=tgt_path,
                        num_tgt=f"{counts[1]:,}",
                    ),
                    hint=_explain_lengths(src_path, tgt_path),
                )
            yield Pair(src, tgt)


def _explain_lengths(src_path: Path, tgt_path: Path) -> str:
    """Return the hint for files of different lengths: from which line on they are shifted."""
    from attendo.data.alignment import AlignmentTracker

    def read() -> Iterator[Pair]:
        return starmap(Pair, zip(read_lines(src_path), read_lines(tgt_path), strict=False))

    tracker = AlignmentTracker()
    for _ in tracker.watch(read()):
        pass
    found = tracker.find_misalignment(read)
    if found is None or found.shift is None:
        return (
            "both sides need the same number of lines, one sentence per line; "
            "a line may have been split or lost in one of them"
        )
    return message(
        "from about line {line} on the sides are shifted by {shift}: source line {line} belongs to "
        "target line {other_line}; compare both files there",
        line=found.first_line,
        shift=found.shift,
        other_line=found.first_line + found.shift,
    )
