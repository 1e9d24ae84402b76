"""Error rates: for tasks with a right answer, such as letters to phones.

A source may have several right answers: lines with the same source are one case, and the nearest of
their references counts. Tokens are what white space parts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class ErrorRates(NamedTuple):
    """Shares from 0 up; of tokens more than 1 is possible."""

    sequence: float
    """Cases whose output equals none of their references (letters to phones: WER)."""
    token: float
    """Edits to the nearest reference, over the tokens of those references (there: PER)."""
    num_cases: int


def error_rates(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> ErrorRates:
    """Compare outputs with every reference of the same source.

    >>> error_rates(["read", "read"], ["R IY D", "R IY D"], ["R EH D", "R IY D"])
    ErrorRates(sequence=0.0, token=0.0, num_cases=1)
    """
    cases: dict[str, tuple[str, list[str]]] = {}
    for source, output, reference in zip(sources, outputs, references, strict=True):
        cases.setdefault(source, (output, []))[1].append(reference)
    num_wrong = num_edits = num_tokens = 0
    for output, answers in cases.values():
        said = output.split()
        each = [(count_edits(said, answer.split()), len(answer.split())) for answer in answers]
        edits, length = min(each, key=lambda pair: (pair[0], -pair[1]))
        num_wrong += edits > 0
        num_edits += edits
        num_tokens += length
    num_cases = len(cases)
    return ErrorRates(num_wrong / max(num_cases, 1), num_edits / max(num_tokens, 1), num_cases)


def count_edits(said: Sequence[str], wanted: Sequence[str]) -> int:
    """Count the insertions, deletions and substitutions between two sequences (Levenshtein).

    >>> count_edits("R EH D".split(), "R IY D Z".split())
    2
    """
    row = list(range(len(wanted) + 1))
    for place, token in enumerate(said, 1):
        before, row[0] = row[0], place
        for column, other in enumerate(wanted, 1):
            changed = before + (token != other)
            before = row[column]
            row[column] = min(changed, row[column] + 1, row[column - 1] + 1)
    return row[-1]
