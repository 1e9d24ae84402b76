"""The texts of a test set: read, checked for equal length, scanned for anomalies."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.text.lines import check_readable, read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MAX_COPY_FRACTION = 0.9
"""Above this share of equal lines, source and reference are suspected to be the same file."""


@dataclass(frozen=True)
class EvaluationSet:
    """Sources, outputs and references of a test set, aligned by line."""

    files: dict[str, Path]
    references: list[str]
    sources: list[str] | None = None
    tokenized_references: list[str] | None = None
    """References that are already tokenized."""
    outputs: dict[str, list[str]] = field(default_factory=dict)
    """Translations read from files: "outputs" and "against"."""

    def describe(self, lang: str | None) -> dict[str, Any]:
        """Return the entries of the report."""
        names = {name: str(path) for name, path in self.files.items()}
        return {
            "src": names.get("src"),
            "ref": names["ref"],
            "tok_ref": names.get("tok_ref"),
            "num_sentences": len(self.references),
            "lang": lang,
        }


def read_test_set(files: dict[str, Path]) -> EvaluationSet:
    """Read those of the files "ref", "src", "tok_ref", "outputs" and "against" that are given."""
    test_set = {}
    for name, path in files.items():
        check_readable(path)
        test_set[name] = list(read_lines(path))
    counts = {name: len(lines) for name, lines in test_set.items()}
    if len(set(counts.values())) > 1:
        raise InputError(
            ", ".join(f"{files[name]} has {count:,} lines" for name, count in counts.items()),
            hint="all need the same number of lines, one sentence per line; a line may have been "
            "split or lost in one of them",
        )
    for name in ("ref", "tok_ref"):
        if name in test_set and not any(text.strip() for text in test_set[name]):
            raise InputError(f"{files[name]} has no text", hint="pass at least one reference")
    system_outputs = {
        name: lines for name, lines in test_set.items() if name in ("outputs", "against")
    }
    return EvaluationSet(
        files, test_set["ref"], test_set.get("src"), test_set.get("tok_ref"), system_outputs
    )


def find_anomalies(test_set: EvaluationSet) -> list[str]:
    """Return notes about anomalies in the texts, each with its first line."""
    sides = {"sources": test_set.sources or [], "references": test_set.references}
    notes = [
        f"{len(lines):,} of the {side} are empty, the first is line {lines[0]}"
        for side, one in sides.items()
        if (lines := [number for number, text in enumerate(one, 1) if not text.strip()])
    ]
    anomalous = [
        number
        for number, text in enumerate(test_set.references, 1)
        if not unicodedata.is_normalized("NFC", text)
    ]
    if anomalous:
        notes.append(
            f"{len(anomalous):,} of the references are not in Unicode's NFC, "
            f"the first is line {anomalous[0]}: "
            "characters that look the same count as different"
        )
    copies = sum(map(str.__eq__, test_set.sources or [], test_set.references))
    if copies > MAX_COPY_FRACTION * len(test_set.references):
        notes.append(f"source and reference are identical in {copies:,} lines: is that intended?")
    return notes


def count_empty_outputs(sources: Sequence[str], outputs: Sequence[str]) -> int:
    """Return the number of non-empty sources with an empty output.

    >>> count_empty_outputs(["a", "b", ""], ["", "B", ""])
    1
    """
    pairs = zip(sources, outputs, strict=True)
    return sum(bool(source.strip()) and not output.strip() for source, output in pairs)
