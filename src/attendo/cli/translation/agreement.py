"""`attendo translate --agree-with`: of each n-best list the translation closest to a reference."""

from __future__ import annotations

from collections import deque
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from attendo.translator import Translation

MAX_PROCESSES = 8
MIN_LINES_IN_PROCESSES = 2_000
"""Starting processes takes longer than to choose among fewer lines."""
GROUP_LINES = 256
"""Lines that are written together."""


def check_references(source: Path | None, references: Path, n_best: int, *, as_json: bool) -> None:
    """Raise unless there is a reference for each line of the input, and something to choose."""
    from attendo.text.lines import check_readable, read_lines

    if source is None or not source.is_file() or as_json:
        raise ConfigError(
            "--agree-with needs --input, a file, and no --json",
            hint="pass the sources as a file with -i",
        )
    if n_best < 2:
        raise ConfigError(
            "--agree-with needs several translations to choose from",
            hint="pass --n-best 4 (with --beam-size 4 or more, or --sample)",
        )
    check_readable(references)
    counts = [sum(1 for _ in read_lines(path)) for path in (source, references)]
    if counts[0] != counts[1]:
        raise ConfigError(
            message(
                "{src} has {num_src} lines, {tgt} has {num_tgt}",
                src=source,
                num_src=f"{counts[0]:,}",
                tgt=references,
                num_tgt=f"{counts[1]:,}",
            ),
            hint="both need the same number of lines, one sentence per line",
        )


def describe_output(references: Path | None, tag: str) -> dict[str, Any]:
    """Return what determines the output besides the translations, for `--resume`."""
    from attendo.core.files import checksum

    chosen = {} if references is None else {"agree_with": checksum(references), "n_best": 1}
    return {**chosen, **({"tag": tag} if tag else {})}


def choose_translations(
    groups: Iterable[list[Translation]], references: Path, *, start: int, num_lines: int
) -> Iterator[list[Translation]]:
    """Yield the translation of each n-best list that agrees most with its reference, in groups.

    Args:
        groups: the best translations with their alternatives.
        references: one line per source.
        start: the line of the first translation.
        num_lines: of the whole file; many lines are chosen among in other processes.

    """
    chosen = _choose_each(chain.from_iterable(groups), references, start, num_lines)
    while group := list(islice(chosen, GROUP_LINES)):
        yield group


def _choose_each(
    translations: Iterable[Translation], references: Path, start: int, num_lines: int
) -> Iterator[Translation]:
    from attendo.core.hardware import usable_cores
    from attendo.evaluation.agreement import choose_each
    from attendo.text.lines import read_lines

    waiting: deque[Translation] = deque()

    def pairs() -> Iterator[tuple[list[str], str]]:
        lines = islice(read_lines(references), start, None)
        for translation, reference in zip(translations, lines, strict=False):
            waiting.append(translation)
            yield [str(one) for one in (translation, *translation.alternatives)], reference

    num_processes = min(usable_cores() - 1, MAX_PROCESSES)
    if num_lines < MIN_LINES_IN_PROCESSES:
        num_processes = 0
    for index in choose_each(pairs(), num_processes=num_processes):
        best = waiting.popleft()
        chosen = best if index == 0 else best.alternatives[index - 1]
        chosen.notes = best.notes
        yield chosen
