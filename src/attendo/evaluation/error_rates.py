"""Error rates for tasks with a correct answer, such as grapheme-to-phoneme conversion.

A source may have several correct answers: lines with the same source are one case, and the nearest
of their references counts. Tokens are separated by white space and compared as a whole: where
phones carry stress marks, "EH1" instead of "EH0" is an error. Remove the marks from outputs and
references for figures without stress.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


class ErrorRates(NamedTuple):
    """Error rates from 0; that of tokens can exceed 1."""

    sequence: float
    """Cases whose output equals none of their references (letters to phones: WER)."""
    token: float
    """Edits to the nearest reference, over the tokens of those references (there: PER)."""
    num_cases: int


def error_rates(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str]
) -> ErrorRates:
    """Return the error rates over all references of a source; only its first output counts.

    >>> error_rates(["read", "read"], ["R IY D", "R IY D"], ["R EH D", "R IY D"])
    ErrorRates(sequence=0.0, token=0.0, num_cases=1)
    """
    cases: dict[str, tuple[str, list[str]]] = {}
    for source, output, reference in zip(sources, outputs, references, strict=True):
        cases.setdefault(source, (output, []))[1].append(reference)
    num_errors = num_edits = num_tokens = 0
    for output, case_references in cases.values():
        hypothesis = output.split()
        candidates = [
            (edit_distance(hypothesis, reference_text.split()), len(reference_text.split()))
            for reference_text in case_references
        ]
        edits, length = min(candidates, key=lambda pair: (pair[0], -pair[1]))
        num_errors += edits > 0
        num_edits += edits
        num_tokens += length
    num_cases = len(cases)
    return ErrorRates(num_errors / max(num_cases, 1), num_edits / max(num_tokens, 1), num_cases)


def error_rates_by(
    kinds: Iterable[str],
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
) -> dict[str, ErrorRates]:
    """Return the error rates of each kind of line (a task, a notation), worst first.

    >>> rates = error_rates_by(["ko", "en"], ["삼", "four"], ["3", "5"], ["3", "4"])
    >>> [(kind, rates.sequence) for kind, rates in rates.items()]
    [('en', 1.0), ('ko', 0.0)]
    """
    lines: dict[str, list[tuple[str, str, str]]] = {}
    for kind, *line in zip(kinds, sources, outputs, references, strict=True):
        lines.setdefault(kind, []).append((line[0], line[1], line[2]))
    rates = {kind: error_rates(*zip(*subset, strict=True)) for kind, subset in lines.items()}
    return dict(sorted(rates.items(), key=lambda item: (-item[1].sequence, item[0])))


def edit_distance(hypothesis: Sequence[str], reference: Sequence[str]) -> int:
    """Return the Levenshtein distance of two sequences.

    >>> edit_distance("R EH D".split(), "R IY D Z".split())
    2
    """
    row = list(range(len(reference) + 1))
    for row_index, token in enumerate(hypothesis, 1):
        previous, row[0] = row[0], row_index
        for column, other in enumerate(reference, 1):
            changed = previous + (token != other)
            previous = row[column]
            row[column] = min(changed, row[column] + 1, row[column - 1] + 1)
    return row[-1]
