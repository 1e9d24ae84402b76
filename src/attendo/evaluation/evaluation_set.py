"""The texts of a test set: read, checked for equal length, scanned for anomalies."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.text.lines import check_readable, read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MORE_REFERENCES = re.compile(r"ref\d+")
SYSTEM_PREFIX = "system:"
"""Begins the name of a file with the outputs of another system."""
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
    """Translations read from files: "outputs", "against" and "system:NAME"."""
    more_references: list[list[str]] = field(default_factory=list)
    """Further references of each line."""

    @property
    def all_references(self) -> list[list[str]]:
        """Every set of references, aligned by line."""
        return [self.references, *self.more_references]

    def describe(self, lang: str | None) -> dict[str, Any]:
        """Return the entries of the report."""
        names = {name: str(path) for name, path in self.files.items()}
        more = [names[name] for name in names if MORE_REFERENCES.fullmatch(name)]
        return {
            "src": names.get("src"),
            "ref": names["ref"],
            **({"more_refs": more} if more else {}),
            "tok_ref": names.get("tok_ref"),
            "num_sentences": len(self.references),
            "lang": lang,
        }


def read_test_set(files: dict[str, Path]) -> EvaluationSet:
    """Read those of the files "ref", "src", "tok_ref", "outputs" and "against" that are given.

    Further references are "ref2", "ref3" and so on, outputs of other systems "system:NAME".
    """
    test_set = {}
    for name, path in files.items():
        check_readable(path)
        test_set[name] = list(read_lines(path))
    counts = {name: len(lines) for name, lines in test_set.items()}
    if len(set(counts.values())) > 1:
        raise InputError(
            join_messages(
                ", ",
                [
                    message("{path} has {count:,} lines", path=files[name], count=count)
                    for name, count in counts.items()
                ],
            ),
            hint="all need the same number of lines, one sentence per line; a line may have been "
            "split or lost in one of them",
        )
    more_names = [name for name in files if MORE_REFERENCES.fullmatch(name)]
    for name in ("ref", *more_names, "tok_ref"):
        if name in test_set and not any(text.strip() for text in test_set[name]):
            raise InputError(
                message("{files} has no text", files=files[name]),
                hint="pass at least one reference",
            )
    system_outputs = {
        name: lines
        for name, lines in test_set.items()
        if name in ("outputs", "against") or name.startswith(SYSTEM_PREFIX)
    }
    return EvaluationSet(
        files,
        test_set["ref"],
        test_set.get("src"),
        test_set.get("tok_ref"),
        system_outputs,
        [test_set[name] for name in more_names],
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
